/**
 * What outlives every generation of manifests and config: the sandbox backend, the store, the vault, layers.
 *
 * Guarantees: each is made at first need, once, and disposed of with this; one that could not be made is tried again, because
 * what stood in its way may be gone. Where the config asks for others, they are those of a host that starts anew.
 */
import { isDeepStrictEqual } from "node:util"
import type { SandboxBackend } from "../../sandbox/backend.ts"
import type { HostedLayers } from "../../sandbox/layers/hosted/layers.ts"
import type { OperatorConfig } from "../config/types.ts"
import type { Registry } from "../registry/types.ts"
import { type HoldingVault, withMemory } from "../secrets/in-memory.ts"
import { openVault } from "../secrets/open-vault.ts"
import type { Store } from "../store/store.ts"
import type { HostOptions } from "../types.ts"
import type { DockerHostOptions } from "./docker.ts"
import { storeFor } from "./open-store.ts"

/** Settings that these are made by. */
const FIXED = ["backend", "docker", "vault", "store", "receipts"] as const

export interface Ground extends AsyncDisposable {
  readonly backend: () => Promise<SandboxBackend>
  /** as the operator or the program named it */
  readonly backendName: SandboxBackend["name"]
  readonly store: () => Promise<Store>
  readonly storeIsUsed: () => boolean
  readonly vault: HoldingVault
  readonly layers: () => Promise<HostedLayers>
  /** the generation whose drivers' packages are made ready from now on */
  serve(registry: Registry): void
  /** a setting that is another one there than what this was made by */
  otherIn(config: OperatorConfig): string | undefined
}

interface GroundOptions {
  readonly data: string
  readonly config: OperatorConfig
  readonly backend?: HostOptions["backend"]
  readonly warm: boolean
}

/** Loaded when it is needed: a host that only lists or validates never loads a sandbox. */
const makeBackend = async (name: "namespace" | "docker", options: DockerHostOptions): Promise<SandboxBackend> => {
  if (name === "docker") return (await import("./docker.ts")).makeDockerBackend(options)
  return (await import("../../sandbox/namespace/backend.ts")).createNamespaceBackend({ data: options.data })
}

const notYet = (): Registry => {
  throw new Error("the registry is not read yet")
}

export const openGround = async ({
  data,
  config,
  backend: wanted = config.backend,
  warm,
}: GroundOptions): Promise<Ground> => {
  await using failed = new AsyncDisposableStack()
  const own = typeof wanted === "string"
  let registry = notYet
  let made: Promise<SandboxBackend> | undefined
  const backend = (): Promise<SandboxBackend> => {
    if (made !== undefined) return made
    const making = own ? makeBackend(wanted, { data, config, registry: () => registry() }) : Promise.resolve(wanted)
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
  const remembered = storeFor(data, config)
  const store = remembered.open
  const kept = await openVault(data, config)
  const vault = withMemory(kept)
  let hosted: Promise<HostedLayers> | undefined
  const layers = (): Promise<HostedLayers> =>
    (hosted ??= import("../../sandbox/layers/hosted/layers.ts").then(({ createHostedLayers }) =>
      createHostedLayers(data),
    ))
  failed.move()
  return {
    backend,
    backendName: own ? wanted : wanted.name,
    store,
    storeIsUsed: remembered.isUsed,
    vault,
    layers,
    serve: (now) => void (registry = () => now),
    otherIn: (other) => FIXED.find((setting) => !isDeepStrictEqual(other[setting], config[setting])),
    async [Symbol.asyncDispose]() {
      await kept[Symbol.asyncDispose]()
      await (await hosted)?.[Symbol.asyncDispose]()
      const last = await made?.catch(() => undefined)
      if (own) await last?.[Symbol.asyncDispose]()
      await remembered[Symbol.asyncDispose]()
    },
  }
}
