/**
 * The parts that calls share, opened once: registry, availability, sandbox backend, recovery.
 *
 * Guarantees: opening reads manifests, or what is known of them, and nothing else; the backend is made at first need and disposed of with this.
 * A workspace is made whole before each call on it, whoever left it half-way.
 */
import { dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import type { DefinedManifest } from "../../manifest/read/defined.ts"
import type { SandboxBackend } from "../../sandbox/backend.ts"
import type { FolderIdentity } from "../../sandbox/folder.ts"
import type { HostedLayers } from "../../sandbox/layers/hosted/layers.ts"
import type { HostCore, InUse } from "../call/core.ts"
import { createBuilder } from "../call/running/builder.ts"
import { openFileVault } from "../secrets/file-vault.ts"
import { createInstalls } from "../install/installs.ts"
import { createProbe, ProbeNotSealed } from "../call/running/probe.ts"
import { createModuleRunner } from "../call/running/run-in-module.ts"
import { createTalk } from "../call/running/talk.ts"
import type { OperatorConfig } from "../config/types.ts"
import { runCheck } from "../health/check.ts"
import { createHealthChecks } from "../health/health-checks.ts"
import { openHealthRecords } from "../health/records.ts"
import type { BuiltinFunctions } from "../drivers/embedded/functions.ts"
import { createAvailability } from "../drivers/availability.ts"
import { thisMachine } from "../drivers/machine.ts"
import { locateSystemProgram } from "../drivers/program.ts"
import type { DriverAvailability } from "../drivers/kind.ts"
import type { RegisteredDriver } from "../registry/types.ts"
import type { HostOptions } from "../types.ts"
import type { DockerHostOptions } from "./docker.ts"
import { checkEgress, serveEgress } from "./egress.ts"
import { createReviews } from "../review/reviews.ts"
import type { Store } from "../store/store.ts"
import { storeFile } from "../../data-folder/paths.ts"
import { readRegistry } from "./manifests.ts"
import { openVersionStore } from "./versions.ts"

interface CoreOptions {
  readonly data: string
  readonly config: OperatorConfig
  /** the bundled catalogue's folder */
  readonly catalogue: string
  readonly manifests: readonly string[]
  readonly defined?: readonly DefinedManifest[]
  readonly builtins?: BuiltinFunctions
  readonly backend?: NonNullable<HostOptions["backend"]>
  readonly warm: boolean
  /** aborted when the host does not wait any longer for what is under way */
  readonly closing: AbortSignal
}

interface OpenCore extends HostCore, AsyncDisposable {}

/** Loaded when it is needed: a host that only lists or validates never loads a sandbox. */
const makeBackend = async (name: "namespace" | "docker", options: DockerHostOptions): Promise<SandboxBackend> => {
  if (name === "docker") return (await import("./docker.ts")).makeDockerBackend(options)
  return (await import("../../sandbox/namespace/backend.ts")).createNamespaceBackend({ data: options.data })
}

/** The parts of this package that it runs from; a clone may hold workspaces beside them. */
const CODE = ["bin", "dist", "src", "schemas", "node_modules"] as const

const inUseBy = (manifests: readonly string[]): readonly InUse[] => {
  const own = fileURLToPath(new URL("../../..", import.meta.url))
  return [
    ...manifests.map((path) => ({ path: resolve(path), what: "manifests", file: false })),
    ...CODE.map((name) => ({ path: join(own, name), what: "its own code", file: false })),
    { path: join(own, "package.json"), what: "its own code", file: true },
  ]
}

const modulesOf = (defined: readonly DefinedManifest[]): readonly string[] =>
  defined.flatMap(({ code }) => (code?.module === undefined ? [] : [dirname(code.module)]))

export const openCore = async ({
  data,
  config,
  catalogue,
  manifests,
  defined = [],
  builtins = new Map(),
  backend: wanted = config.backend,
  warm,
  closing,
}: CoreOptions): Promise<OpenCore> => {
  await checkEgress(config)
  await using failed = new AsyncDisposableStack()
  const own = typeof wanted === "string"
  let made: Promise<SandboxBackend> | undefined
  /** One that could not be made is made anew at the next call: what stood in its way may be gone. */
  const backend = (): Promise<SandboxBackend> => {
    if (made !== undefined) return made
    const making = own ? makeBackend(wanted, { data, config, registry: () => registry }) : Promise.resolve(wanted)
    made = making
    making.catch(() => {
      if (made === making) made = undefined
    })
    return making
  }
  if (warm) {
    const early = await backend()
    if (own) failed.use(early)
    void early.start?.().catch(() => undefined)
  }
  const folders = [
    ...config.manifests.map((dir) => ({ dir, trusted: true })),
    { dir: catalogue, trusted: true },
    ...manifests.map((dir) => ({ dir, trusted: false })),
  ]
  const registry = await readRegistry(data, folders, defined, config.ceiling)
  const installs = createInstalls({
    data,
    config,
    build: createBuilder({ config, backend, egressProxy: serveEgress }),
    recover: async (folder) => (await backend()).recover(folder, closing),
    closing,
  })
  const runInModule = createModuleRunner(data, backend, closing)
  let opened: Promise<Store> | undefined
  const store = (): Promise<Store> => {
    if (opened !== undefined) return opened
    const opening = import("../store/sqlite.ts").then(({ openSqliteStore }) => openSqliteStore(storeFile(data)))
    opened = opening
    // One that could not be opened is tried again.
    opening.catch(() => (opened = undefined))
    return opening
  }
  const reviews = createReviews(catalogue, store)
  const probe = createProbe(data, backend, closing)
  const checker = createAvailability({
    installs,
    mayInstall: config.install.onDemand,
    runInModule,
    builtins,
    builtinHosts: config.builtinHosts,
    interpreters: config.interpreters,
    talk: createTalk({ data, backend, reviewOf: reviews.of, closing }),
    machine: await thisMachine(data),
    probe,
    store: openVersionStore(data),
  })

  const availability = async (driver: RegisteredDriver): Promise<DriverAvailability> => {
    try {
      return await checker.of(driver)
    } catch (error) {
      if (error instanceof ProbeNotSealed)
        return { available: false, code: "sandbox_unavailable", reason: error.message, fix: error.fix }
      throw error
    }
  }

  const recover = async (workspace: FolderIdentity, cancel: AbortSignal): Promise<void> =>
    (await backend()).recover(workspace, cancel)

  const checkOptions = { config, probe, egressProxy: serveEgress }
  const health = createHealthChecks({
    run: (of, check) => runCheck(checkOptions, of, check, closing),
    records: openHealthRecords(data),
    closing,
  })
  let hosted: Promise<HostedLayers> | undefined
  const layers = (): Promise<HostedLayers> =>
    (hosted ??= import("../../sandbox/layers/hosted/layers.ts").then(({ createHostedLayers }) =>
      createHostedLayers(data),
    ))
  failed.move()
  return {
    data,
    catalogue,
    config: { ...config, backend: own ? wanted : wanted.name },
    registry,
    availability,
    findProgram: (name) => {
      const located = locateSystemProgram(name)
      return located.ok ? located.program : undefined
    },
    runInModule,
    health: health.of,
    installs,
    vault: openFileVault(data),
    inUse: inUseBy([catalogue, ...config.manifests, ...manifests, ...modulesOf(defined)]),
    store,
    reviews,
    backend,
    layers,
    egressProxy: serveEgress,
    recover,
    async [Symbol.asyncDispose]() {
      await (await hosted)?.[Symbol.asyncDispose]()
      const last = await made?.catch(() => undefined)
      if (own) await last?.[Symbol.asyncDispose]()
      const remembering = await opened?.catch(() => undefined)
      await remembering?.[Symbol.asyncDispose]()
    },
  }
}
