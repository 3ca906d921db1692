/** Which driver would serve a call, why each other would not, and what the call would be held to. */
import type { CostClass, DriverKind } from "../../manifest/types.ts"
import type { SandboxProfile } from "../../sandbox/backend.ts"
import type { CallError } from "../failure.ts"

export type RoutePhase = "candidates" | "capability" | "policy" | "pin" | "rank" | "selected"

export interface RouteRow {
  readonly driver: string
  readonly kind: DriverKind
  /** the phase that dropped it, or `selected` / `rank` for the ones that lived */
  readonly phase: RoutePhase
  readonly reason: string
  /** the stable word for the reason, of those that were dropped */
  readonly code?: string
  readonly fix?: string
  readonly costUnitsPerCall?: number
  /** of the units; absent: USD */
  readonly currency?: string
  readonly costClass?: CostClass
}

/** What a call is held to. Without `executables` no program is run and no sandbox made: the host itself acts. */
export interface CallProfile extends Omit<SandboxProfile, "executables"> {
  readonly executables?: SandboxProfile["executables"]
}

export interface WhyReport {
  readonly tool: string
  readonly selected?: string
  readonly error?: CallError
  readonly rows: readonly RouteRow[]
  /** the command line: as it would be where the input was given whole, else the driver's templates */
  readonly argv?: readonly string[]
  /** hosts that the call could reach: what the driver declares and the operator allows */
  readonly egress?: readonly string[]
  readonly mutates?: readonly string[]
  /** who has to say yes, and about what: the strictest of contract, action, policy and host */
  readonly approval?: { readonly class: string; readonly effects: "commit" | "ask" }
  /** the sealed profile the call would get; secrets never in it */
  readonly profile?: CallProfile
  readonly profileDigest?: string
}
