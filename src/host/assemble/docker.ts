/**
 * The docker backend as a host wants it: the operator's engine and root, drivers' packages as layers, and a proxy that
 * lets the build of a layer reach package mirrors alone.
 *
 * Guarantees: a build has no secret, no workspace and no service of a call; it reaches the hosts of this machine's own
 * apt sources and nothing else. With `rootfs: host` nothing is ever built.
 * Assumes: the base image's distribution is served by the mirrors that this machine uses.
 */
import { cliOf } from "../../manifest/kinds/body.ts"
import { readdirSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { type EgressEntry, parseEgressEntry } from "../../manifest/values/egress-entry.ts"
import type { Channel, Executables, SandboxBackend } from "../../sandbox/backend.ts"
import type { BuildService } from "../../sandbox/docker/images/builder-network.ts"
import type { OperatorConfig } from "../config/types.ts"
import type { Registry } from "../registry/types.ts"

const readFolder = (folder: string): string[] => {
  try {
    return readdirSync(folder).map((name) => join(folder, name))
  } catch {
    return []
  }
}
const readText = (file: string): string => {
  try {
    return readFileSync(file, "utf8")
  } catch {
    return ""
  }
}

/** The hosts that apt fetches from, by the sources of an apt folder, as egress entries. */
export const mirrorsOf = (apt = "/etc/apt"): readonly EgressEntry[] => {
  const files = [join(apt, "sources.list"), ...readFolder(join(apt, "sources.list.d"))]
  const lines = files
    .filter((file) => /\.(list|sources)$/.test(file))
    .flatMap((file) => readText(file).split("\n"))
    .filter((line) => !line.trimStart().startsWith("#"))
  const found = new Map<string, EgressEntry>()
  for (const [, scheme = "", host = "", port] of lines
    .join("\n")
    .matchAll(/\b(https?):\/\/([A-Za-z0-9._-]+)(?::(\d{1,5}))?/g)) {
    const parsed = parseEgressEntry(`${host.toLowerCase()}:${port ?? (scheme === "http" ? 80 : 443)}`)
    if (parsed.ok) found.set(parsed.entry.text, parsed.entry)
  }
  return [...found.values()]
}

/** The apt packages of the drivers whose programs are among these. */
export const packagesFor = (drivers: Registry["drivers"], executables: Executables): readonly string[] => {
  const names = new Set([basename(executables.program), ...Object.keys(executables.spawn)])
  const packages = drivers
    .filter(({ contract }) => names.has(basename(cliOf(contract)?.bin ?? "")))
    .flatMap(({ contract }) =>
      contract.install.flatMap((each) => (each.usable && each.method === "apt" ? [each.package] : [])),
    )
  return [...new Set(packages)].sort()
}

export interface DockerHostOptions {
  readonly data: string
  readonly config: OperatorConfig
  /** asked for when a layer is wanted: by then manifests are read */
  readonly registry: () => Registry
}

export const makeDockerBackend = async ({ data, config, registry }: DockerHostOptions): Promise<SandboxBackend> => {
  const { createDockerBackend } = await import("../../sandbox/docker/backend.ts")
  const { engine, rootfs, pool } = config.docker
  const common = {
    data,
    rootfs,
    pool: { perProfile: pool },
    ...(engine === undefined ? {} : { engine }),
  }
  if (rootfs === "host") return createDockerBackend(common)
  const serveBuild = async (channel: Channel): Promise<BuildService> => {
    const denied: string[] = []
    const { createEgressProxy } = await import("../../egress-proxy/index.ts")
    const proxy = await createEgressProxy({
      egress: mirrorsOf().map(({ text }) => text),
      services: config.egress.services,
      private: config.egress.private,
      onVerdict: ({ decision, host, port }) => {
        if (decision !== "allow" && host !== undefined) denied.push(port === undefined ? host : `${host}:${port}`)
      },
    })
    void proxy.serve(channel)
    return { denied: () => denied, [Symbol.asyncDispose]: () => proxy.close() }
  }
  return createDockerBackend({
    ...common,
    layerFor: (executables) => ({ packages: packagesFor(registry().drivers, executables) }),
    serveBuild,
  })
}
