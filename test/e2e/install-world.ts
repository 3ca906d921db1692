/** A data folder of its own with the install room of a real host, and a registry made for the test. */
import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { openWholeCore } from "../support/open-core.ts"
import type { HostCore } from "../../src/host/call/core.ts"
import { loadConfig } from "../../src/host/config/load.ts"
import { openDataFolder } from "../../src/host/data/folder.ts"
import type { Installs } from "../../src/host/install/installs.ts"
import type { FrozenLayer, InstallProgress, InstallSpec } from "../../src/host/install/types.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { type PackageRegistry, startPackageRegistry } from "../support/servers/package-registry.ts"

export interface InstallWorld extends AsyncDisposable {
  readonly folder: string
  readonly data: string
  readonly core: HostCore
  readonly installs: Installs
  readonly registry: PackageRegistry
  readonly told: InstallProgress[]
}

export const npm = (name: string, version?: string): InstallSpec => ({
  source: "npm",
  packages: [{ name, ...(version === undefined ? {} : { version }) }],
})
export const pip = (name: string, version?: string): InstallSpec => ({
  source: "pip",
  packages: [{ name, ...(version === undefined ? {} : { version }) }],
})

export const openInstallCore = (data: string, backend: "namespace" | "docker" = "namespace") =>
  openWholeCore({
    record: async () => undefined,
    data: openDataFolder(data),
    config: loadConfig(data, undefined),
    catalogue: join(import.meta.dirname, "../../manifests"),
    manifests: [],
    backend,
    warm: false,
    closing: new AbortController().signal,
  })

export const openInstallWorld = async (
  more = "",
  backend: "namespace" | "docker" = "namespace",
): Promise<InstallWorld> => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-install-")))
  const data = join(folder, "data")
  mkdirSync(data, { mode: 0o700 })
  const registry = await startPackageRegistry()
  writeFileSync(join(data, "caisson.yaml"), `${registry.config}${more}`, { mode: 0o600 })
  const core = await openInstallCore(data, backend)
  return {
    folder,
    data,
    core,
    installs: core.installs,
    registry,
    told: [],
    async [Symbol.asyncDispose]() {
      await core[Symbol.asyncDispose]()
      await registry[Symbol.asyncDispose]()
      removeFolder(folder)
    },
  }
}

/** The layer, or the failure as an error of the test. */
export const layerOf = (answer: Awaited<ReturnType<Installs["ensure"]>>): FrozenLayer => {
  if (!answer.ok) throw new Error(`${answer.code}: ${answer.message}\n${JSON.stringify(answer.details, null, 2)}`)
  return answer.value
}
