/**
 * The calls that this daemon makes: each with its events, and a way to end it.
 *
 * Guarantees: a call ends when it is cancelled, when its caller leaves without having given it a name of its own (a key) or
 * asked for an answer later, or when the daemon closes; never because nobody listens to its events.
 */
import type { Caller, CallsOwner } from "../host/access/caller.ts"
import { tenantOf } from "../host/access/caller.ts"
import type { CallEvent } from "../host/events.ts"
import type { BegunCall, CallOptions, CallRequest, ContentChange, Envelope, Host } from "../host/types.ts"
import { Tape, Tapes } from "./events/tape.ts"
import { daemonLimits } from "./limits.ts"
import { refuse } from "./http/problem.ts"
import type { Places } from "./ops/places.ts"

interface UnderWay extends CallsOwner {
  readonly cancel: AbortController
}
interface Plan extends CallsOwner {
  readonly changes: readonly ContentChange[]
}

interface CallTrace {
  readonly hear: (event: CallEvent) => void
  readonly ended: (envelope: Envelope) => void
}
/** What the daemon wants to know of every call. */
export interface CallWatch {
  /** throws where none is to be begun */
  readonly before: () => void
  /** hears of the call while it happens; `ended` is for those that were made here */
  readonly trace?: (caller: Caller, traceparent: string | undefined) => CallTrace | undefined
  readonly ended: (envelope: Envelope, caller: Caller, kind: string | undefined, ms: number) => void
}

type Wishes = Pick<CallOptions, "key" | "approved" | "empty" | "wait" | "elicit" | "approve"> & {
  /** the caller's own trace, as its header says */
  readonly traceparent?: string
}

export class CallsUnderWay {
  readonly #host: Host
  readonly #tapes = new Tapes()
  readonly #plans = new Map<string, Plan>()
  readonly #open = new Map<string, UnderWay>()
  readonly #waiting = new Set<() => void>()
  #isClosing = false
  readonly #places: Places
  readonly #watch: CallWatch
  constructor(host: Host, places: Places, watch: CallWatch) {
    this.#host = host
    this.#watch = watch
    this.#places = places
  }
  get count(): number {
    return this.#places.count
  }

  async begin(
    request: CallRequest,
    caller: Caller,
    { traceparent, ...wishes }: Wishes,
    listen?: (event: CallEvent) => void,
  ): Promise<BegunCall & { readonly cancel: () => void }> {
    if (this.#isClosing)
      throw refuse("overloaded", "this daemon is closing", "try again when it is back", { "retry-after": "5" })
    this.#watch.before()
    const cancel = new AbortController()
    const began = performance.now()
    const whose = { user: caller.user, tenant: tenantOf(caller), workspace: request.workspace ?? "" }
    const place = this.#places.enter(whose)
    const trace = this.#watch.trace?.(caller, traceparent)
    // Events may come before the call's id is known here.
    let tape: Tape | undefined
    let planned: readonly ContentChange[] | undefined
    const early: CallEvent[] = []
    let kind: string | undefined
    // A call that its key stood for has ended before, and was told of then.
    let isOwn = false
    const hear = (event: CallEvent): void => {
      if (event.type === "routed") kind = event.kind
      if (event.type === "settled") isOwn = true
      trace?.hear(event)
      listen?.(event)
      if (tape === undefined) early.push(event)
      else tape.hear(event)
    }
    try {
      const begun = await this.#host.begin(request, {
        ...wishes,
        caller,
        signal: cancel.signal,
        onChanges: (changes) => void (planned = changes),
        onEvent: hear,
      })
      // A call that its key stood for has its own tape.
      const made = this.#tapes.find(begun.call) ?? new Tape(begun.call, whose)
      tape = made
      for (const event of early) tape.hear(event)
      if (begun.call !== "none") this.#tapes.add(made)
      // A call that its key stood for ends by whoever began it, and by nobody who asked again.
      if (!this.#open.has(begun.call)) this.#open.set(begun.call, { cancel, ...whose })
      const heard = begun.envelope.then((told) => {
        if (isOwn) this.#watch.ended(told, caller, kind, performance.now() - began)
        if (isOwn) trace?.ended(told)
        return told
      })
      const envelope = heard.finally(() => {
        place[Symbol.dispose]()
        for (const told of this.#waiting) told()
        if (this.#open.get(begun.call)?.cancel === cancel) this.#open.delete(begun.call)
        made.end()
        // Nothing was heard of one that ended before: its record tells how.
        if (made.isEmpty) this.#tapes.drop(made)
        if (planned !== undefined) this.#keepPlan(begun.call, { ...whose, changes: planned })
      })
      return { call: begun.call, envelope, cancel: () => cancel.abort() }
    } catch (error) {
      place[Symbol.dispose]()
      throw error
    }
  }

  /** False where this daemon makes no such call for this caller. */
  cancel(call: string, mayReach: (whose: CallsOwner) => boolean): boolean {
    const found = this.#open.get(call)
    if (found === undefined || !mayReach(found)) return false
    found.cancel.abort()
    return true
  }
  /** What a plan would change; of the last ones. */
  planned(call: string, mayReach: (whose: CallsOwner) => boolean): readonly ContentChange[] | undefined {
    const found = this.#plans.get(call)
    return found !== undefined && mayReach(found) ? found.changes : undefined
  }
  #keepPlan(call: string, plan: Plan): void {
    this.#plans.set(call, plan)
    const oldest = this.#plans.size > daemonLimits.plans.value ? this.#plans.keys().next().value : undefined
    if (oldest !== undefined) this.#plans.delete(oldest)
  }
  tape(call: string): Tape | undefined {
    return this.#tapes.find(call)
  }
  /** Until one ends, or the time is over. */
  nextEnd(waitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(late)
        this.#waiting.delete(done)
        resolve()
      }
      const late = setTimeout(done, waitMs)
      this.#waiting.add(done)
    })
  }
  /** From now on none begins. */
  refuseNew(): void {
    this.#isClosing = true
  }
  cancelAll(): void {
    for (const { cancel } of this.#open.values()) cancel.abort()
  }
}
