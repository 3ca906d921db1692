/**
 * Calls on record: what was asked under which key, and what came of it, beyond the process that made the call.
 *
 * Guarantees: a call with a key is on disk before anything of it runs, so that the same key never runs it again, whoever
 * died in between: it is given the first answer, or told that it runs, or that nobody knows what became of it. What a call
 * answered is kept before a caller with a key hears it; without a key it is kept beside the answer, and a crash may lose
 * that record, never the receipt. A call is told of to whom it was made for, where they may name its folder, and to operators,
 * of its own tenant.
 * Where the store cannot be used, a call with a key is refused before it runs; one that ran meanwhile is told of from here,
 * and kept as soon as the store can be used again.
 */
import type { JsonObject } from "../../manifest/types.ts"
import { type Caller, isOperator, mayActForUser, mayName, mayReach, tenantOf } from "../access/caller.ts"
import { callErrorOf, type Failure } from "../failure.ts"
import { hostLimits } from "../limits.ts"
import { type CallRecord, type NewCall, singleHost, type Store, StoreUnavailable } from "../store/store.ts"
import type { BegunCall, CallRequest, Envelope, RecordedCall } from "../types.ts"
import { callKeyOf, isCallKey } from "./call-key.ts"
import { isAbandoned, markUnderWay, removeAbandoned } from "./under-way.ts"

interface Asked {
  readonly call: string
  readonly request: CallRequest
  readonly caller: Caller
  readonly key: string | undefined
}
interface Running {
  readonly of: NewCall
  readonly done: Promise<Envelope>
}

interface Unkept {
  readonly of: NewCall
  readonly envelope: Envelope
  readonly endedMs: number
  readonly underWay: Disposable
}

const keep = { keepMs: hostLimits.callRecordMs.value, keepKeyedMs: hostLimits.keyedCallMs.value }

const envelopeOf = (call: string, failure: Failure): Envelope => ({
  ok: false,
  error: callErrorOf(failure),
  call,
  effects: [],
  denied: [],
  receipt: "none",
})

const refused = (failure: Failure): BegunCall => ({
  call: "none",
  envelope: Promise.resolve(envelopeOf("none", failure)),
})

const badKey: Failure = {
  ok: false,
  code: "input_invalid",
  message: "the idempotency key is not 1 to 255 printable characters without blanks",
  details: { field: "Idempotency-Key" },
}
const otherPayload = ({ id }: CallRecord): Failure => ({
  ok: false,
  code: "conflict",
  message: `this key stands for another call, ${id}, that asked for something else`,
  hint: "use a new key for a new call",
  retryable: false,
  details: { call: id },
})
const stillRunning = ({ id }: CallRecord): Failure => ({
  ok: false,
  code: "conflict",
  message: `the call that this key stands for, ${id}, is under way in another process`,
  hint: "ask again with the same key when it has ended",
  details: { call: id, state: "running" },
})
/** What was asked may have been done: it is not run again by itself. */
const lost: Failure = {
  ok: false,
  code: "timeout",
  message: "the host ended while this call ran; whether its effects were committed is not known",
  hint: "`caisson receipts --call ID` tells what is on record; look at the workspace, then use a new key",
  retryable: false,
  details: { commit: "unknown" },
}
const unavailable = (error: StoreUnavailable): Failure => ({
  ok: false,
  code: "internal",
  message: `the call was not made, because its key could not be kept: ${error.message}`,
  hint: error.fix,
  retryable: error.kind === "busy" || error.kind === "unreachable" || error.kind === "full",
  details: { commit: "none" },
})

export class RecordedCalls {
  readonly #data: string
  readonly #store: () => Promise<Store>
  readonly #keeping = new Map<string, Promise<unknown>>()
  readonly #running = new Map<string, Running>()
  /** what calls with a key answered while the store could not be used */
  readonly #unkept = new Map<string, Unkept>()
  #keeper: NodeJS.Timeout | undefined
  #keepingUnkept: Promise<void> | undefined
  readonly #all: boolean
  readonly #isUsed: () => boolean
  /** `all`: what calls without a key answered is remembered too. */
  constructor(
    data: string,
    { store, storeIsUsed }: { store: () => Promise<Store>; storeIsUsed: () => boolean },
    all: boolean,
  ) {
    this.#data = data
    this.#store = store
    this.#isUsed = storeIsUsed
    this.#all = all
  }

  /** Make the call, or give back the one that its key stands for. */
  async begin({ call: id, request, caller, key }: Asked, make: () => Promise<Envelope>): Promise<BegunCall> {
    const call: NewCall = {
      ...singleHost,
      id,
      tenant: tenantOf(caller),
      user: caller.user,
      actor: caller.actor,
      workspace: typeof request.workspace === "string" ? request.workspace.slice(0, hostLimits.nameChars.value) : "",
      tool: typeof request.tool === "string" ? request.tool.slice(0, hostLimits.nameChars.value) : "?",
      beganMs: Date.now(),
    }
    if (key === undefined) return this.#run(call, make)
    if (!isCallKey(key)) return refused(badKey)
    // It is refused, and not told what another of the same user's answered there.
    if (!mayName(caller, call.workspace)) return this.#run(call, make)
    const named = callKeyOf(key, caller, request)
    return named === undefined ? this.#run(call, make) : await this.#beginKeyed({ ...call, key: named }, make)
  }

  async #beginKeyed(call: NewCall, make: () => Promise<Envelope>): Promise<BegunCall> {
    const underWay = markUnderWay(this.#data, call.id)
    let begun: BegunCall | undefined
    try {
      const admitted = await (await this.#store()).admit(call)
      if (!admitted.ok) return await this.#again(admitted.why, admitted.call)
      begun = this.#run(call, make, underWay)
      return begun
    } catch (error) {
      if (error instanceof StoreUnavailable) return refused(unavailable(error))
      throw error
    } finally {
      if (begun === undefined) underWay[Symbol.dispose]()
    }
  }

  async #again(why: "known" | "other-payload", call: CallRecord): Promise<BegunCall> {
    if (why === "other-payload") return refused(otherPayload(call))
    const answered = (envelope: unknown): BegunCall => ({
      call: call.id,
      envelope: Promise.resolve(envelope as Envelope),
    })
    if (call.envelope !== undefined) return answered(call.envelope)
    const unkept = this.#unkept.get(call.id)
    if (unkept !== undefined) return answered(unkept.envelope)
    const own = this.#running.get(call.id)
    if (own !== undefined) return { call: call.id, envelope: own.done }
    // Whether another host's process lives, that host alone can tell.
    const { owner } = await this.#store()
    if (call.owner !== owner || !isAbandoned(this.#data, call.id)) return refused(stillRunning(call))
    // Its process died; one that settled it just now has the word.
    await this.#lose(call)
    const settled = await (await this.#store()).call(call.id)
    return answered(settled?.envelope ?? envelopeOf(call.id, lost))
  }

  #run(of: NewCall, make: () => Promise<Envelope>, underWay?: Disposable): BegunCall {
    let own = underWay
    const run = async (): Promise<Envelope> => {
      try {
        const envelope = await make()
        const kept = this.#isKept(of) ? this.#keep(of, envelope) : undefined
        // Without a key nobody relies on it: a full disk then costs the record, and not the answer.
        if (underWay !== undefined && (await kept) === false && this.#unkept.size < hostLimits.unkeptCalls.value) {
          this.#keepLater({ of, envelope, endedMs: Date.now(), underWay })
          own = undefined
        }
        return envelope
      } finally {
        own?.[Symbol.dispose]()
        this.#running.delete(of.id)
      }
    }
    const done = run()
    this.#running.set(of.id, { of, done })
    return { call: of.id, envelope: done }
  }
  #isKept({ key }: NewCall): boolean {
    return this.#all || key !== undefined
  }
  /** False where it cannot be. */
  #keep(of: NewCall, envelope: Envelope, endedMs = Date.now()): Promise<boolean> {
    const kept: Promise<boolean> = this.#store()
      .then((store) => store.settleCall(of, { endedMs, envelope: asJson(envelope) }, keep))
      .then(
        () => true,
        () => false,
      )
      .finally(() => this.#keeping.delete(of.id))
    this.#keeping.set(of.id, kept)
    return kept
  }

  /** Whoever asks is told from here, and nobody takes the call for a dead one's, until the store can be used again. */
  #keepLater(unkept: Unkept): void {
    this.#unkept.set(unkept.of.id, unkept)
    this.#keeper ??= setInterval(() => void this.#keepUnkept(), hostLimits.keepAgainMs.value).unref()
  }
  /** One at a time, however long the store takes: each is let go of once. */
  #keepUnkept(): Promise<void> {
    return (this.#keepingUnkept ??= this.#keepAllUnkept().finally(() => {
      this.#keepingUnkept = undefined
    }))
  }
  async #keepAllUnkept(): Promise<void> {
    for (const { of, envelope, endedMs, underWay } of [...this.#unkept.values()]) {
      if (!(await this.#keep(of, envelope, endedMs))) return
      this.#unkept.delete(of.id)
      underWay[Symbol.dispose]()
    }
    // One that came meanwhile is kept with the next look.
    if (this.#unkept.size > 0) return
    clearInterval(this.#keeper)
    this.#keeper = undefined
  }

  /** Calls with a key whose processes died: from now on their keys say that nobody knows. */
  async tend(): Promise<void> {
    removeAbandoned(this.#data)
    if (!this.#isUsed()) return
    const open = await (await this.#store()).openCalls()
    for (const call of open) if (!this.#isOurs(call.id) && isAbandoned(this.#data, call.id)) await this.#lose(call)
  }
  #isOurs(id: string): boolean {
    return this.#running.has(id) || this.#unkept.has(id)
  }
  async #lose(call: CallRecord): Promise<void> {
    const ended = { endedMs: Date.now(), envelope: asJson(envelopeOf(call.id, lost)) }
    await (await this.#store()).settleCall(call, ended, keep)
  }
  /** What is still being kept; of one call, before what it answered is amended. */
  async settled(call?: string): Promise<void> {
    await (call === undefined ? Promise.all(this.#keeping.values()) : this.#keeping.get(call))
  }
  /** Once more what could not be kept; what still cannot is for the next host to say that nobody knows. */
  async close(): Promise<void> {
    await this.settled()
    clearInterval(this.#keeper)
    if (this.#unkept.size > 0) await this.#keepUnkept()
    for (const { underWay } of this.#unkept.values()) underWay[Symbol.dispose]()
    this.#unkept.clear()
  }

  async find(id: string, caller: Caller): Promise<RecordedCall | undefined> {
    const own = this.#running.get(id)
    const unkept = this.#unkept.get(id)
    const found =
      own !== undefined
        ? { ...own.of, state: "running" as const }
        : unkept !== undefined
          ? { ...unkept.of, state: "settled" as const, endedMs: unkept.endedMs, envelope: asJson(unkept.envelope) }
          : await (await this.#store()).call(id)
    return found !== undefined && mayReach(caller, found) ? told(found) : undefined
  }

  /** The latest first: the caller's own, and all of its tenant for an operator. */
  async list(caller: Caller, limit: number): Promise<readonly RecordedCall[]> {
    if (!mayActForUser(caller)) return []
    const whose = { tenant: tenantOf(caller), ...(isOperator(caller) ? {} : { user: caller.user }) }
    const own = [...this.#running.values()]
      .map(({ of }) => ({ ...of, state: "running" as const }))
      .filter((call) => mayReach(caller, call))
    // Of those that it is not told of, the rest is left.
    const most = caller.workspaces === "any" ? limit : Math.max(limit, hostLimits.callsTold.value)
    const settled = await (await this.#store()).calls({ ...whose, state: "settled", limit: most })
    const reached = settled.filter((call) => mayReach(caller, call))
    return [...own.toReversed(), ...reached].slice(0, limit).map(told)
  }
}

const asJson = (envelope: Envelope): JsonObject => envelope as unknown as JsonObject

const told = ({
  id,
  user,
  tool,
  workspace,
  state,
  beganMs,
  endedMs,
  envelope,
}: Omit<CallRecord, "owner">): RecordedCall => ({
  call: id,
  user,
  tool,
  workspace,
  state,
  began: new Date(beganMs).toISOString(),
  ...(endedMs === undefined ? {} : { ended: new Date(endedMs).toISOString() }),
  ...(envelope === undefined ? {} : { envelope: envelope as unknown as Envelope }),
})
