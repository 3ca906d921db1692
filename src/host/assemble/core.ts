/**
 * The parts that calls of one generation share: registry, availability, logins, kept servers, recovery.
 *
 * Guarantees: opening reads manifests, or what is known of them, and looks into modules of Amplifier's that are not known
 * yet, in a sandbox, and does nothing else; what outlives a generation is the ground's.
 * A workspace is made whole before each call on it, whoever left it half-way.
 */
import { dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import type { DefinedManifest } from "../../manifest/read/defined.ts"
import type { FolderIdentity } from "../../sandbox/folder.ts"
import type { HostCore, InUse } from "../call/core.ts"
import { createBuilder } from "../call/running/outside/builder.ts"
import { Transactions } from "../../sandbox/layers/transactions.ts"
import { openSealedHomes } from "../homes/sealed-homes.ts"
import { createFetcher } from "../call/running/outside/fetcher.ts"
import { createInstalls } from "../install/installs.ts"
import { createProbe, ProbeNotSealed } from "../call/running/outside/probe.ts"
import { createModuleRunner } from "../call/running/outside/run-in-module.ts"
import { createKeeper } from "../call/running/kept/keeper.ts"
import type { KeptServer } from "../call/running/kept/server.ts"
import { createTalk } from "../call/running/outside/talk.ts"
import type { OperatorConfig } from "../config/types.ts"
import { runCheck } from "../health/check.ts"
import { createHealthChecks } from "../health/health-checks.ts"
import { openHealthRecords } from "../health/records.ts"
import type { BuiltinFunctions } from "../drivers/embedded/functions.ts"
import { createAvailability } from "../drivers/availability.ts"
import { thisMachine } from "../drivers/program/machine.ts"
import { locateSystemProgram } from "../drivers/program/program.ts"
import type { DriverAvailability } from "../drivers/kind.ts"
import type { RegisteredDriver, Registry } from "../registry/types.ts"
import { checkEgress, serveEgress } from "./egress.ts"
import { createReviews } from "../review/reviews.ts"
import type { Ground } from "./ground.ts"
import { amplify } from "./amplifier.ts"
import { assembleLogins } from "./logins.ts"
import type { EventDraft } from "../receipts/event.ts"
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
  /** shared with the generations before and after this one */
  readonly ground: Ground
  /** throws where these are not to be taken; before anything of them is kept */
  readonly accept?: (registry: Registry) => void
  /** what is to be on record beside the calls */
  readonly record: (draft: EventDraft) => Promise<unknown>
  /** aborted when the host does not wait any longer for what is under way */
  readonly closing: AbortSignal
}

export interface OpenCore extends HostCore, AsyncDisposable {}

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

/** Modules of Amplifier's and hooks: a tool that could change them would be another one. */
const shownBy = ({ amplifier, amplifierHooks }: OperatorConfig): readonly string[] => [
  ...amplifier.map(({ path }) => path),
  ...amplifierHooks.map(({ module }) => module),
]

export const openCore = async ({
  data,
  config,
  catalogue,
  manifests,
  defined = [],
  builtins = new Map(),
  ground,
  accept,
  record,
  closing,
}: CoreOptions): Promise<OpenCore> => {
  await checkEgress(config)
  const { backend, store, vault, layers } = ground
  const folders = [
    ...config.manifests.map((dir) => ({ dir, trusted: true })),
    { dir: catalogue, trusted: true },
    ...manifests.map((dir) => ({ dir, trusted: false })),
  ]
  const installs = createInstalls({
    data,
    config,
    build: createBuilder({ config, backend, egressProxy: serveEgress }),
    ask: createFetcher({ config, egressProxy: serveEgress }),
    recover: async (folder) => (await backend()).recover(folder, closing),
    closing,
  })
  const runInModule = createModuleRunner(data, backend, closing)
  const amplified = await amplify(data, config, runInModule)
  const registry = await readRegistry(data, folders, defined, config.ceiling, accept, config.annotations, amplified)
  const reviews = createReviews(catalogue, store)
  const transactions = new Transactions(data)
  const homes = openSealedHomes({ data, vault, recover: (folder) => transactions.recover(folder, closing) })
  const probe = createProbe(data, backend, closing)
  const checker = createAvailability({
    installs,
    mayInstall: config.install.onDemand,
    prefer: config.install.prefer,
    runInModule,
    builtins,
    builtinHosts: config.builtinHosts,
    amplifierHooks: config.amplifierHooks,
    amplifierTools: amplified.tools,
    interpreters: config.interpreters,
    talk: createTalk({ data, backend, reviewOf: reviews.of, closing }),
    imageProgram: async (question) => {
      const { name, imageProgram } = await backend()
      return (
        (await imageProgram?.call(await backend(), question)) ?? {
          ok: false,
          message: `the ${name} backend has no images`,
          fix: "use `--backend docker` with an engine that has the image",
        }
      )
    },
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
  const kept = createKeeper<KeptServer>()
  const shared = {
    data,
    catalogue,
    config: { ...config, backend: ground.backendName },
    registry,
    availability,
    findProgram: (name: string) => {
      const located = locateSystemProgram(name)
      return located.ok ? located.program : undefined
    },
    vault,
    homes,
    store,
    storeIsUsed: ground.storeIsUsed,
    backend,
    egressProxy: serveEgress,
  }
  const logins = assembleLogins(shared, record, closing)
  return {
    ...shared,
    logins,
    record,
    runInModule,
    health: health.of,
    installs,
    inUse: inUseBy([catalogue, ...config.manifests, ...manifests, ...modulesOf(defined), ...shownBy(config)]),
    reviews,
    layers,
    kept,
    recover,
    async [Symbol.asyncDispose]() {
      await logins.settled()
      await kept[Symbol.asyncDispose]()
    },
  }
}
