/** A host whose drivers come by install methods, with a web server that they come from. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { auditLogFile, installBuildsFolder, installedLayersFolder } from "../../src/data-folder/paths.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { type DownloadServer, startDownloadServer } from "../support/servers/download-server.ts"
import { openWorld, type World } from "./host-world.ts"

export interface MethodsWorld extends AsyncDisposable {
  readonly world: World
  readonly server: DownloadServer
}

interface DriverText {
  readonly id: string
  /** YAML of the list */
  readonly install: string
  readonly bin?: string
  readonly range?: string
  readonly versionCmd?: string
  readonly argv?: string
  readonly more?: string
}

/** Prints its version, or what it is told; needs nothing of the machine's but a shell. */
export const program = (version = "1.2.3"): string =>
  `#!/bin/sh\nif [ "$1" = --version ]; then echo ${version}; else echo "hello $2"; fi\n`

export const driverText = ({
  id,
  install,
  bin = id,
  range = "^1.2.0",
  versionCmd = `${bin} --version`,
  argv = '[--, "${input.name}"]',
  more = "",
}: DriverText): string => `---
name: ${id}
id: ${id}
description: A program by an install method.
version: 1.0.0
kind: cli
bin: ${bin}
install: ${install}
version_check: { cmd: ${versionCmd}, parse: '(\\d+\\.\\d+(?:\\.\\d+)?)', range: "${range}", timeout_ms: 60000 }
sandbox:
  network: { egress: [], ingress: [] }
  fs: { read: [], write: [], deny: [] }
  exec: { allow: true, spawn: [] }
  env: { pass: [], set: {} }
output: { default_format: text }
${more}
implements:
  - tool: ./TOOL.md
    version: ^1.0.0
    metadata: { cli: { argv: ${argv}, output_format: text } }
---
`
export const toolText = (id: string): string => `---
name: ${id}
id: fixture.${id}
description: Runs a program that an install method brought.
version: 1.0.0
inputs:
  type: object
  additionalProperties: false
  properties: { name: { type: string } }
  required: [name]
outputs: { type: string }
mutates: []
idempotent: true
approval: auto
timeout_ms: 120000
---
`

export const writeDriver = (folder: string, driver: DriverText): void => {
  mkdirSync(join(folder, driver.id), { recursive: true })
  writeFileSync(join(folder, driver.id, "DRIVER.md"), driverText(driver))
  writeFileSync(join(folder, driver.id, "TOOL.md"), toolText(driver.id))
}

interface Asked {
  readonly drivers: (server: DownloadServer) => readonly DriverText[]
  /** below `install:` */
  readonly install?: string
  /** further lines of caisson.yaml */
  readonly config?: string
  /** further entries of `egress.services` */
  readonly services?: readonly string[]
  readonly backend?: "namespace" | "docker"
}

export const openMethodsWorld = async ({
  drivers,
  install = "",
  config = "",
  services = [],
  backend = "namespace",
}: Asked): Promise<MethodsWorld> => {
  await using opening = new AsyncDisposableStack()
  const server = opening.use(await startDownloadServer())
  const manifests = realpathSync(mkdtempSync(join(tmpdir(), "caisson-methods-")))
  opening.defer(() => removeFolder(manifests))
  for (const driver of drivers(server)) writeDriver(manifests, driver)
  const lines = [
    `egress: { services: { ${[server.service, ...services].join(", ")} } }`,
    `install: { ${install} }`,
    `manifests: ["${manifests}"]`,
    config,
    "",
  ]
  const world = opening.use(await openWorld(lines.join("\n"), { manifests: [], backend }))
  const scope = opening.move()
  return {
    world,
    server,
    async [Symbol.asyncDispose]() {
      await scope.disposeAsync()
    },
  }
}

/** What of an installation is in the data folder: builds under way, layers. */
export const leftIn = (data: string): { builds: readonly string[]; layers: readonly string[] } => {
  const names = (folder: string): readonly string[] => (existsSync(folder) ? readdirSync(folder) : [])
  return { builds: names(installBuildsFolder(data)), layers: names(installedLayersFolder(data)) }
}

/** The last entry of the audit log. */
export const lastReceipt = (data: string): string =>
  readFileSync(auditLogFile(data), "utf8").trim().split("\n").at(-1) ?? ""
