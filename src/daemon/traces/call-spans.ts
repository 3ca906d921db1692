/**
 * What happened in a call, as spans of OpenTelemetry: one for the call, and one for each step of its way below it.
 *
 * Guarantees: pure but for ids and the clock. What a span says is of a fixed list: names, codes and counts of the host's own;
 * no path, input, output, target or text of a program. A caller's `traceparent` makes the call a part of its trace, and one
 * that says that nobody samples it is believed; anything else in that header is ignored.
 */
import { randomBytes } from "node:crypto"
import { type Caller, tenantOf } from "../../host/access/caller.ts"
import type { CallEvent } from "../../host/events.ts"
import type { Envelope } from "../../host/types.ts"

type Value = { readonly stringValue: string } | { readonly intValue: string } | { readonly boolValue: boolean }
interface Attribute {
  readonly key: string
  readonly value: Value
}
/** As OTLP's JSON has it. */
export interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  /** 1: internal; 2: a server's */
  readonly kind: 1 | 2
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly Attribute[]
  readonly events?: readonly {
    readonly timeUnixNano: string
    readonly name: string
    readonly attributes: readonly Attribute[]
  }[]
  /** 2: an error */
  readonly status?: { readonly code: 2; readonly message: string }
}

const valueOf = (value: string | number | boolean): Value => {
  if (typeof value === "string") return { stringValue: value.slice(0, 256).toWellFormed() }
  return typeof value === "boolean" ? { boolValue: value } : { intValue: String(Math.trunc(value)) }
}
const attributes = (of: Readonly<Record<string, string | number | boolean | undefined>>): readonly Attribute[] =>
  Object.entries(of).flatMap(([key, value]) => (value === undefined ? [] : [{ key, value: valueOf(value) }]))

const nanos = (ms: number): string => String(BigInt(Math.max(0, Math.round(ms * 1000))) * 1000n)
const PARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/
const MOST_EVENTS = 64

/** The step that ends with an event of this type. */
const STEPS: Readonly<Partial<Record<CallEvent["type"], string>>> = {
  admitted: "admit",
  routed: "authorize and route",
  sealed: "sign in and seal",
  started: "start",
  judged: "run",
  held: "hold",
  settled: "settle",
}

export class CallSpans {
  readonly #caller: Caller
  readonly #traceId: string
  readonly #parent: string | undefined
  readonly #id = randomBytes(8).toString("hex")
  readonly #began = Date.now()
  readonly #spans: Span[] = []
  readonly #events: NonNullable<Span["events"]>[number][] = []
  #at = this.#began
  #tool: string | undefined
  #driver: string | undefined
  #kind: string | undefined
  #attempts = 0

  private constructor(caller: Caller, found: RegExpExecArray | null) {
    this.#caller = caller
    this.#traceId = found?.[1] ?? randomBytes(16).toString("hex")
    this.#parent = found?.[2]
  }
  /** Undefined where whoever began the trace does not want it. */
  static begin(caller: Caller, traceparent?: string): CallSpans | undefined {
    const found = PARENT.exec(traceparent ?? "")
    const isSampled = found === null || (Number.parseInt(found[3] ?? "01", 16) & 1) === 1
    return isSampled ? new CallSpans(caller, found) : undefined
  }

  hear(event: CallEvent): void {
    if (event.type === "admitted") this.#tool = event.tool
    if (event.type === "routed") [this.#driver, this.#kind] = [event.driver, event.kind]
    if (event.type === "started") this.#attempts = event.attempt
    if (event.type === "denied" && this.#events.length < MOST_EVENTS) {
      const { layer, reason, count } = event.denial
      const said = attributes({ "caisson.layer": layer, "caisson.reason": reason, "caisson.count": count })
      this.#events.push({ timeUnixNano: nanos(event.at), name: "denied", attributes: said })
    }
    const name = STEPS[event.type]
    if (name === undefined || this.#spans.length >= MOST_EVENTS) return
    // A clock that is set back makes a step short, and never one that ends before it began.
    const end = Math.max(event.at, this.#at)
    this.#spans.push({
      traceId: this.#traceId,
      spanId: randomBytes(8).toString("hex"),
      parentSpanId: this.#id,
      name,
      kind: 1,
      startTimeUnixNano: nanos(this.#at),
      endTimeUnixNano: nanos(end),
      attributes: event.type === "judged" ? attributes({ "caisson.attempts": this.#attempts }) : [],
    })
    this.#at = end
  }

  end(envelope: Envelope): readonly Span[] {
    const { user, actor } = this.#caller
    const code = envelope.ok ? "ok" : envelope.error.code
    const call: Span = {
      traceId: this.#traceId,
      spanId: this.#id,
      ...(this.#parent === undefined ? {} : { parentSpanId: this.#parent }),
      name: this.#tool === undefined ? "caisson.call" : `caisson.call ${this.#tool}`,
      kind: 2,
      startTimeUnixNano: nanos(this.#began),
      endTimeUnixNano: nanos(Math.max(Date.now(), this.#at)),
      attributes: attributes({
        "caisson.call": envelope.call,
        "caisson.tool": this.#tool,
        "caisson.driver": this.#driver,
        "caisson.driver.kind": this.#kind,
        "caisson.code": code,
        "caisson.class": envelope.ok ? undefined : envelope.error.class,
        "caisson.effects": envelope.effects.length,
        "caisson.committed": envelope.effects.some(({ committed }) => committed),
        "caisson.receipt": envelope.receipt,
        "caisson.tenant": tenantOf(this.#caller),
        "caisson.user": user,
        "caisson.actor": actor === user ? undefined : actor,
      }),
      events: this.#events,
      ...(envelope.ok ? {} : { status: { code: 2, message: code } }),
    }
    return [call, ...this.#spans]
  }
}
