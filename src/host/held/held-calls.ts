/**
 * The held calls of one host: kept, told of, decided, tended.
 *
 * Guarantees: the store is asked only where something was ever remembered on this data folder. What
 * dead hosts left is tended before the first call and before every answer about held calls; what this host held is thrown
 * away when its time is over, for as long as the host lives.
 */
import type { Caller } from "../access/caller.ts"
import type { HostCore } from "../call/core.ts"
import type { Holder, HoldOutcome, Judged } from "../call/steps.ts"
import type { Success } from "../failure.ts"
import { lookBounds } from "../diffs/changes.ts"
import { hostLimits } from "../limits.ts"
import type { AuditLog } from "../receipts/log.ts"
import type { Store } from "../store/store.ts"
import type { Envelope, HeldApproval, HeldApprovalDetail } from "../types.ts"
import type { HeldContext } from "./context.ts"
import { decide } from "./decide.ts"
import { heldOnDisk, isCallId } from "./files.ts"
import { hold } from "./hold.ts"
import { listRequests, showRequest } from "./requests.ts"
import { listHeld, showHeld } from "./list.ts"
import { tend } from "./tend.ts"

/** After the moment itself, so that it is over by then. */
const MARGIN_MS = 50

export class HeldCalls implements Holder, AsyncDisposable {
  readonly #context: HeldContext
  readonly #closing: AbortSignal
  #next: NodeJS.Timeout | undefined
  #tending: Promise<void> | undefined
  constructor(core: HostCore, log: AuditLog, closing: AbortSignal) {
    this.#context = { core, log, store: () => core.store() }
    this.#closing = closing
  }
  #open(): Promise<Store> {
    return this.#context.core.store()
  }
  get #isUsed(): boolean {
    const { core } = this.#context
    return core.storeIsUsed() || heldOnDisk(core.data).length > 0
  }

  /** Finish what dead hosts left, and throw away what expired. */
  async tend(): Promise<void> {
    if (this.#isUsed) await tend(this.#context, this.#closing)
  }
  async hold(judged: Judged, answer: Success, scope: AsyncDisposableStack): Promise<HoldOutcome> {
    const outcome = await hold(this.#context, judged, answer, scope)
    if (outcome.ok) this.#tendLater()
    return outcome
  }
  /** When the call that was held last is over, so are those before it; again while any is left. No reason to stay alive. */
  #tendLater(inMs = this.#context.core.config.approvals.holdMs + MARGIN_MS): void {
    clearTimeout(this.#next)
    this.#next = setTimeout(
      () => {
        this.#tending = this.#tendOpen().catch(() => undefined)
      },
      Math.min(inMs, hostLimits.holdCheckMs.value),
    ).unref()
  }
  async #tendOpen(): Promise<void> {
    await tend(this.#context, this.#closing)
    const open = await (await this.#open()).heldList({ states: ["held", "deciding"] })
    if (open.length > 0) this.#tendLater(hostLimits.holdCheckMs.value)
  }
  async receipted(call: string, receipt: string): Promise<void> {
    await (await this.#open()).receipted(call, receipt)
  }
  async list(caller: Caller): Promise<readonly HeldApproval[]> {
    if (!this.#isUsed) return []
    await this.tend()
    const store = await this.#open()
    return [...(await listHeld(store, caller)), ...(await listRequests(store, caller))]
  }
  async show(id: string, caller: Caller): Promise<HeldApprovalDetail | undefined> {
    if (!this.#isUsed || !isCallId(id)) return undefined
    await this.tend()
    const look = async (held: { readonly at: string; readonly digest: string }) =>
      (await import("../../sandbox/layers/settling/settling.ts")).settle({ do: "look-held", held, bounds: lookBounds })
    const store = await this.#open()
    return (await showHeld(store, this.#context.core.data, caller, id, look)) ?? (await showRequest(store, caller, id))
  }
  decide(asked: Parameters<typeof decide>[1], cancel: AbortSignal): Promise<Envelope> {
    return decide(this.#context, asked, cancel)
  }
  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#next)
    await this.#tending
    clearTimeout(this.#next)
  }
}
