/** The evidence as it is asked for. */
import type { CallError } from "../failure.ts"
import type { AuditEvent } from "../receipts/event.ts"
import type { ListOptions } from "./asking.ts"

/** Which entries of the log; all that is given must fit. */
export interface ReceiptsOptions extends ListOptions {
  readonly call?: string
  /** `id@major`, or `id` of any */
  readonly tool?: string
  /** whose call it was */
  readonly user?: string
  /** `ok`, or the reason's code */
  readonly verdict?: string
  /** ISO date-times, or days; `until` is not included */
  readonly since?: string
  readonly until?: string
  /** an absolute path: what was committed there or below it */
  readonly wrote?: string
  /** `host` or `host:port` that was reached */
  readonly host?: string
  /** something was denied, or the call itself was */
  readonly denied?: boolean
  readonly limit?: number
  /** what the page before said */
  readonly cursor?: string
}

export type ReceiptsReport =
  | {
      readonly ok: true
      /** entries as they lie in the log, the latest first */
      readonly receipts: readonly AuditEvent[]
      /** for the next page; absent: this was the last */
      readonly next?: string
    }
  | { readonly ok: false; readonly error: CallError }

export type ReceiptsExport =
  /** each line with its newline */
  { readonly ok: true; readonly lines: AsyncIterable<string> } | { readonly ok: false; readonly error: CallError }
