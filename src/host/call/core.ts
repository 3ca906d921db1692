/** What the steps of a call may use of the host. Everything here outlives the call. */
import type { Dialled, HostedDial } from "../../egress-proxy/serve/hosted.ts"
import type { Tape } from "../../egress-proxy/tape/words.ts"
import type { TokenKeep } from "../../egress-proxy/tokens/held.ts"
import type { EgressPolicy } from "../../egress-proxy/types.ts"
import type { Channel, Denial, SandboxBackend } from "../../sandbox/backend.ts"
import type { FolderIdentity } from "../../sandbox/folder.ts"
import type { HostedLayers } from "../../sandbox/layers/hosted/layers.ts"
import type { OperatorConfig } from "../config/types.ts"
import type { DriverAvailability } from "../drivers/kind.ts"
import type { Checkable } from "../health/check.ts"
import type { SealedHomes } from "../homes/sealed-homes.ts"
import type { Installs } from "../install/installs.ts"
import type { Logins } from "../login/logins.ts"
import type { Program } from "../drivers/program/program.ts"
import type { RunInModule } from "../drivers/runner/run-in-module.ts"
import type { HoldingVault } from "../secrets/in-memory.ts"
import type { RegisteredDriver, Registry } from "../registry/types.ts"
import type { EventDraft } from "../receipts/event.ts"
import type { Reviews } from "../review/reviews.ts"
import type { Keeper } from "./running/kept/keeper.ts"
import type { KeptServer } from "./running/kept/server.ts"
import type { HealthStatus } from "../resolver/types.ts"
import type { Store } from "../store/store.ts"

/** A declared host that a call was let through to. */
export interface Reached {
  /** `host:port` */
  readonly target: string
  readonly count: number
  /** what the proxy carried there and back */
  readonly bytesOut: number
  readonly bytesIn: number
}

/** What serves one call's channel and keeps count of what it let through and what it stopped. */
export interface ServedEgress extends AsyncDisposable {
  /** what was allowed */
  reached(): readonly Reached[]
  /** what the sandbox must be given to trust it: path inside → content */
  readonly files: Readonly<Record<string, Uint8Array>>
  /** Until disposed of, which is done at once. */
  serve(channel: Channel): Disposable
  /** For another call of the same sandbox: an account and budgets of its own; what the sandbox trusts stays the same. */
  heir(policy: EgressPolicy, tokens?: TokenKeep): Promise<ServedEgress>
  /** a connection for the host's own code, for a call that has no sandbox */
  dial(to: HostedDial): Promise<Dialled>
  denials(): readonly Denial[]
  /** what was allowed and could not be carried, so that the proxy's own 502 is told from a site's */
  failures(): readonly Denial[]
  /** the declared name that an address inside the sandbox stands for */
  nameFor(address: string): string | undefined
}

/** A folder, or with `file` a file, by its real path. */
export interface InUse {
  readonly path: string
  readonly what: string
  readonly file: boolean
}

export interface HostCore {
  readonly data: string
  /** the bundled catalogue's folder */
  readonly catalogue: string
  readonly config: OperatorConfig
  readonly registry: Registry
  /** is the driver's program there, in the right version? Answered from memory where nothing changed. */
  availability(driver: RegisteredDriver): Promise<DriverAvailability>
  /** a program by name in the host's own search path, for `exec.spawn` */
  findProgram(name: string): Program | undefined
  /** one function of a driver's own module, without network, secrets or workspace */
  readonly runInModule: RunInModule
  /** how drivers that are there fare, checked again where that is stale and they may be asked about */
  health(
    drivers: readonly Checkable[],
    mayAsk?: (driver: RegisteredDriver) => boolean,
  ): Promise<ReadonlyMap<string, HealthStatus>>
  /** started at first need */
  backend(): Promise<SandboxBackend>
  /** for calls that have no sandbox; loaded at first need */
  layers(): Promise<HostedLayers>
  /** `tokens`: where a policy that captures keeps what it captures */
  /** `tape`: what passes is kept, or answered from a recording */
  egressProxy(policy: EgressPolicy, tokens?: TokenKeep, tape?: Tape): Promise<ServedEgress>
  /** what a crashed commit of any process left in this workspace is finished or undone, before each call on it */
  recover(workspace: FolderIdentity, cancel: AbortSignal): Promise<void>
  /** what must outlive the process; opened at first need */
  store(): Promise<Store>
  /** may it hold anything; asked without opening or making one */
  storeIsUsed(): boolean
  /** what was accepted of what servers say of themselves */
  readonly reviews: Reviews
  /** secrets; what a call gets of them `secrets/bind.ts` decides */
  readonly vault: HoldingVault
  /** what drivers keep of their logins, encrypted */
  readonly homes: SealedHomes
  /** servers that outlive their call */
  readonly kept: Keeper<KeptServer>
  /** a line of the audit log that is no call's */
  record(draft: EventDraft): Promise<unknown>
  /** where logins stand, and what moves them */
  readonly logins: Logins
  /** packages of drivers, installed and frozen */
  readonly installs: Installs
  /** what this host reads or runs: no call may write there, whatever its contract says */
  readonly inUse: readonly InUse[]
}
