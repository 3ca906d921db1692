/** What the steps of a held call's life may use. */
import type { HostCore } from "../call/core.ts"
import type { AuditLog } from "../receipts/log.ts"
import type { Store } from "../store/store.ts"

export interface HeldContext {
  readonly core: HostCore
  readonly log: AuditLog
  /** opened at first need */
  store(): Promise<Store>
}
