/** What a call answers, and each thing that it changed or was denied. */
import type { JsonValue } from "../../manifest/types.ts"
import type { Denial } from "../../sandbox/backend.ts"
import type { Effect } from "../../sandbox/effects/types.ts"
import type { AccessRecord } from "../access-record/types.ts"
import type { CallError } from "../failure.ts"

export type ReportedDenial = Denial & { readonly message: string; readonly hint: string }

export type ReportedEffect = Effect & { readonly declared: boolean; readonly committed: boolean }

/** One effect as a person reads it. */
export interface ContentChange {
  readonly kind: ReportedEffect["kind"]
  readonly path: string
  readonly declared: boolean
  /** lines of a unified diff, without its names; absent where there is no text to compare */
  readonly diff?: string
  /** what stands in its place, or what was cut off it */
  readonly note?: string
  /** octal, before and after */
  readonly mode?: string
  readonly target?: string
  readonly from?: string
}

interface EnvelopeBase {
  readonly call: string
  /** `jq@1`; absent when no driver was chosen */
  readonly driver?: string
  readonly effects: readonly ReportedEffect[]
  readonly denied: readonly ReportedDenial[]
  readonly receipt: string
  /** of a call that was observed, once it ran */
  readonly access?: AccessRecord
}

export type Envelope =
  | (EnvelopeBase & {
      readonly ok: true
      readonly value: JsonValue
      /** the end of what the program said beside its value */
      readonly stderr?: string
      readonly notes?: readonly string[]
    })
  | (EnvelopeBase & {
      readonly ok: false
      readonly error: CallError
      readonly notes?: readonly string[]
      /** its effects are held, and approving commits exactly those; the address is the API's */
      readonly approval?: { readonly id: string; readonly url: string; readonly expires: string }
    })
