/**
 * One call under way for a client: what it asks in the middle, and how it ends, whoever comes back to hear of it.
 *
 * Guarantees: a question is answered once: by the client, or by nobody when its time is over or the call ends, and then the
 * program is told that nobody answered. Questions asked at once are told at once. Nothing of an answer but what the protocol
 * has reaches the program. Whoever waits is woken by the end, by a question, or by their own leaving.
 */
import { randomBytes } from "node:crypto"
import { type InputRequest, inputRequired } from "@modelcontextprotocol/server"
import type { ElicitAnswer, ElicitQuestion, Envelope } from "../../host/types.ts"
import type { JsonObject } from "../../manifest/types.ts"
import type { Entry } from "../catalogue/catalogue.ts"
import { mcpLimits } from "../limits.ts"
import type { Telling } from "./told.ts"

interface Pending {
  readonly request: InputRequest
  /** false: it is none */
  readonly answer: (written: unknown) => boolean
}
type Woken = "ended" | "asks" | "late" | "left"

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const elicited = (written: unknown): ElicitAnswer | undefined => {
  if (!isObject(written)) return undefined
  const { action, content } = written
  if (action === "decline" || action === "cancel") return { action }
  return action === "accept" && isObject(content) ? { action, content } : undefined
}

export class Run {
  readonly id = randomBytes(24).toString("base64url")
  readonly entry: Entry
  readonly whose: string
  readonly telling: Telling
  readonly began = new Date()
  /** whoever keeps it weighs what it answered */
  onEnd: (() => void) | undefined
  readonly #cancel = new AbortController()
  readonly #pending = new Map<string, Pending>()
  readonly #waiting = new Set<() => void>()
  #changed = this.began
  #asked = 0
  #gathering: NodeJS.Timeout | undefined
  #envelope: Envelope | undefined
  #fault: unknown
  #isCancelled = false
  constructor(entry: Entry, whose: string, telling: Telling) {
    this.entry = entry
    this.whose = whose
    this.telling = telling
  }
  get signal(): AbortSignal {
    return this.#cancel.signal
  }
  get changed(): Date {
    return this.#changed
  }
  get envelope(): Envelope | undefined {
    return this.#envelope
  }
  /** what nobody foresaw */
  get fault(): unknown {
    return this.#fault
  }
  get hasEnded(): boolean {
    return this.#envelope !== undefined || this.#fault !== undefined
  }
  get isCancelled(): boolean {
    return this.#isCancelled
  }

  /** What it answered is left to the record of calls. */
  putAside(): void {
    const envelope = this.#envelope
    if (envelope === undefined) return
    const { call, driver, receipt } = envelope
    this.#envelope = {
      ok: false,
      error: {
        code: "limit_exceeded",
        class: "tool",
        message: "what this call answered is too much to be kept here; the call itself stands as it ended",
        hint: `read caisson://calls/${call}`,
        retryable: false,
        details: { limit: "kept" },
      },
      call,
      ...(driver === undefined ? {} : { driver }),
      effects: [],
      denied: [],
      receipt,
    }
  }

  follow(call: Promise<Envelope>): void {
    void call.then(
      (envelope) => this.#end(() => void (this.#envelope = envelope)),
      (error: unknown) => this.#end(() => void (this.#fault = error ?? new Error("a call without an end"))),
    )
  }
  #end(note: () => void): void {
    note()
    this.onEnd?.()
    this.#dismiss()
    this.#tell()
  }
  /** Nobody answers any more. */
  #dismiss(): void {
    for (const { answer } of [...this.#pending.values()]) answer({ action: "cancel" })
  }
  #tell(): void {
    this.#changed = new Date()
    for (const wake of this.#waiting) wake()
  }
  cancel(): void {
    if (this.hasEnded) return
    this.#isCancelled = true
    this.#cancel.abort()
    this.#dismiss()
  }

  /** A question of the program's: the stranger is named, so that nobody takes it for this host's own. */
  readonly elicit = ({ message, schema }: ElicitQuestion): Promise<ElicitAnswer> =>
    this.ask(
      inputRequired.elicit({
        message: `\`${this.entry.contract.id}\` asks: ${message}`.slice(0, mcpLimits.questionChars.value),
        requestedSchema: schema as never,
      }),
    )
  ask(request: InputRequest): Promise<ElicitAnswer> {
    return new Promise((resolve) => {
      this.#asked += 1
      const key = `q${this.#asked}`
      const done = (answer: ElicitAnswer): void => {
        clearTimeout(late)
        if (!this.#pending.delete(key)) return
        this.#tell()
        resolve(answer)
      }
      const late = setTimeout(() => done({ action: "cancel" }), mcpLimits.stateSeconds.value * 1_000)
      late.unref()
      this.#pending.set(key, {
        request,
        answer: (written) => {
          const answer = elicited(written)
          if (answer !== undefined) done(answer)
          return answer !== undefined
        },
      })
      this.#gathering ??= setTimeout(() => {
        this.#gathering = undefined
        this.#tell()
      }, mcpLimits.gatherMs.value)
    })
  }
  get questions(): Readonly<Record<string, InputRequest>> {
    return Object.fromEntries([...this.#pending].map(([key, { request }]) => [key, request]))
  }
  /** What does not belong to a question that is open is passed over. */
  answer(responses: Readonly<Record<string, unknown>>): void {
    for (const [key, pending] of [...this.#pending]) if (Object.hasOwn(responses, key)) pending.answer(responses[key])
  }

  get #now(): Woken | undefined {
    if (this.hasEnded) return "ended"
    return this.#pending.size > 0 && this.#gathering === undefined ? "asks" : undefined
  }
  next(left: AbortSignal, lateMs?: number): Promise<Woken> {
    return new Promise((resolve) => {
      let late: NodeJS.Timeout | undefined
      const leave = (): void => done("left")
      const wake = (): void => {
        const now = this.#now
        if (now !== undefined) done(now)
      }
      const done = (why: Woken): void => {
        clearTimeout(late)
        left.removeEventListener("abort", leave)
        this.#waiting.delete(wake)
        resolve(why)
      }
      const now = this.#now ?? (left.aborted ? "left" : undefined)
      if (now !== undefined) return resolve(now)
      if (lateMs !== undefined) late = setTimeout(() => done("late"), lateMs)
      left.addEventListener("abort", leave, { once: true })
      this.#waiting.add(wake)
    })
  }
}
