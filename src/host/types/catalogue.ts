/** What is registered, and whether it could serve a call. */
import type { Claims, DriverContract, ToolContract } from "../../manifest/types.ts"
import type { CallError } from "../failure.ts"
import type { ReasonCode } from "../reasons.ts"

export type Availability =
  | { readonly available: true; readonly version?: string }
  | { readonly available: false; readonly code: ReasonCode; readonly reason: string; readonly fix: string }

export interface ToolListing {
  readonly contract: ToolContract
  readonly drivers: readonly string[]
  /** of those, how many a call could not be served by: for want of a login or set-up, or for anything else */
  readonly unauthed: number
  readonly unavailable: number
  readonly availability: Availability
}

export interface DriverListing {
  readonly contract: DriverContract
  readonly availability: Availability
}

export interface UnloadedListing {
  readonly file: string
  readonly kind: "tool" | "driver"
  /** what it says of itself */
  readonly claims: Claims
  readonly availability: Availability
}

export type ReloadReport =
  | { readonly ok: true; readonly generation: number; readonly tools: number; readonly drivers: number }
  /** `details.faults`: file, path, message and fix of each */
  | { readonly ok: false; readonly error: CallError }
