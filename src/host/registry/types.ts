/** What the registry holds: contracts, drivers bound to them, and what did not make it, each with the reason. */
import type {
  ActionContract,
  Claims,
  Diagnostic,
  DriverContract,
  Implementation,
  ManifestKind,
  PolicyContract,
  SecretEntry,
  ToolContract,
} from "../../manifest/types.ts"
import type { ArgvProgram, StdinProgram } from "../invoke/template.ts"
import type { ReasonCode } from "../reasons.ts"
import type { Availability } from "../types.ts"

/** One `implements[]` entry that holds against one registered contract. */
export interface Binding {
  readonly tool: ToolContract
  readonly implementation: Implementation
  /** kind cli: templates, compiled; absent for other kinds */
  readonly argv?: ArgvProgram
  readonly stdin?: StdinProgram
}

/** Why a driver that loaded can never serve a call. */
export interface Refusal {
  readonly code: ReasonCode
  readonly reason: string
  readonly fix: string
}

export interface RegisteredDriver {
  /** `jq@1`: the stable identity in routes, receipts, grants and caches */
  readonly key: string
  readonly contract: DriverContract
  /** empty when refused */
  readonly bindings: readonly Binding[]
  readonly refusal?: Refusal
  /** the operator vouches for its folder: the bundled catalogue, or one that the config names */
  readonly vouched: boolean
  /** its id without a major means the drivers of its folder */
  readonly ownsId: boolean
  /** the declared policy tags that the operator vouches for; others are claims and satisfy no allow list */
  readonly verifiedTags: readonly string[]
}

export interface FailedManifest {
  readonly file: string
  readonly kind: ManifestKind | "unknown"
  /** what it says of itself, for messages alone */
  readonly claims: Claims
  readonly diagnostics: readonly Diagnostic[]
}

/** What each driver narrows, by `driver@major` and tool: kept by the host to hold a re-registration to its major. */
export type Narrowings = Readonly<
  Record<string, Readonly<Record<string, { readonly inputs: readonly string[]; readonly outputs: readonly string[] }>>>
>

export interface Registry {
  readonly tools: readonly ToolContract[]
  readonly drivers: readonly RegisteredDriver[]
  readonly secrets: readonly SecretEntry[]
  readonly actions: readonly ActionContract[]
  readonly policies: readonly PolicyContract[]
  /** those of folders that the operator vouches for */
  readonly vouchedPolicies: readonly PolicyContract[]
  readonly failed: readonly FailedManifest[]
  readonly diagnostics: readonly Diagnostic[]
  readonly narrowings: Narrowings
  /** by `id@major`, or by `id`: the highest major of the folder that owns the id */
  tool(ref: string): ToolContract | undefined
  /** all that the name may mean, the one that `tool` gives first */
  toolsNamed(ref: string): readonly ToolContract[]
  driver(ref: string): RegisteredDriver | undefined
  action(ref: string): ActionContract | undefined
  /** every driver whose `implements` names the tool, refused ones included, for `why` */
  driversFor(tool: ToolContract): readonly RegisteredDriver[]
}

/** A program found on this machine, and what starts it. */
export interface Program {
  /** the name it was asked for, for argv[0] */
  readonly name: string
  /** where the name leads before links are followed */
  readonly found: string
  /** absolute, without links */
  readonly path: string
  /** `#!` interpreters in the order the kernel starts them: absolute, without links (`env`, then what it starts) */
  readonly interpreters: readonly string[]
  /** the same as scripts name them, links not followed (`/bin/sh`): what has to be visible for the kernel to find them */
  readonly called?: readonly string[]
  /** set for a vendored program: the driver's folder, which must be visible (read-only) for it to run */
  readonly bundle?: string
  readonly identity: {
    readonly mtimeMs: number
    readonly ctimeMs: number
    readonly ino: number
    readonly size: number
  }
}

export type DriverAvailability =
  | (Extract<Availability, { available: true }> & { readonly program?: Program })
  | Extract<Availability, { available: false }>

/** A version check to be run inside the sandbox: no network, no workspace, no secrets. */
export interface ProbeRequest {
  readonly driver: DriverContract
  /** what is started: the driver's program, another one its command names, or `sh` when `shell` */
  readonly program: Program
  /** argv[0] and on */
  readonly argv: readonly string[]
  readonly timeoutMs: number
  /** the command needs a shell (C-32): `argv` is `sh -c COMMAND`, and `spawn` lists what it may start */
  readonly shell: boolean
  readonly spawn: Readonly<Record<string, Program>>
}
export type ProbeResult =
  /** `exit` is null when it was ended by a limit or a signal */
  | { readonly ran: true; readonly exit: number | null; readonly stdout: string; readonly stderr: string }
  | { readonly ran: false; readonly reason: string; readonly fix: string }
export type Probe = (request: ProbeRequest) => Promise<ProbeResult>
