/**
 * What there is to measure, in Prometheus' words.
 *
 * Guarantees: nothing of users is in it: every label is a word of this program's own tables, of a bounded set; what a tool
 * calls its errors is `tool`. Each daemon has a registry of its own.
 */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client"
import { type ReasonCode, reasons } from "../../host/reasons.ts"
import type { Envelope } from "../../host/types.ts"

/** Words that are few: one that is odd, or one too many, is `other`. */
class Words {
  readonly #known = new Set<string>()
  readonly #most: number
  constructor(most: number) {
    this.#most = most
  }
  of(word: string): string {
    if (this.#known.has(word)) return word
    if (this.#known.size >= this.#most || !/^[a-z0-9][a-z0-9_-]{0,47}$/.test(word)) return "other"
    this.#known.add(word)
    return word
  }
}

/** Gauges whose names say that they were counters; the same figures are there by type, under their right names. */
const NOT_TOTALS = ["nodejs_active_handles_total", "nodejs_active_requests_total", "nodejs_active_resources_total"]
const MOST_REASONS = 128
const SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]

interface Asked {
  readonly underWay: () => number
  readonly streams: () => number
  readonly held: () => Promise<number>
}

export class Metrics {
  readonly #registry = new Registry()
  readonly #denialReasons = new Words(MOST_REASONS)
  readonly #calls
  readonly #seconds
  readonly #denials
  readonly #requests
  readonly #ready
  readonly #reloads
  readonly #droppedSpans
  constructor({ underWay, streams, held }: Asked) {
    const registers = [this.#registry]
    collectDefaultMetrics({ register: this.#registry })
    for (const name of NOT_TOTALS) this.#registry.removeSingleMetric(name)
    this.#calls = new Counter({
      name: "caisson_calls_total",
      help: "Calls that ended, by reason code (ok where there is none), its class, and the kind of driver that served them",
      labelNames: ["code", "class", "kind"],
      registers,
    })
    this.#seconds = new Histogram({
      name: "caisson_call_duration_seconds",
      help: "How long calls took, those that waited for their turn included",
      labelNames: ["class"],
      buckets: SECONDS,
      registers,
    })
    this.#denials = new Counter({
      name: "caisson_denials_total",
      help: "What sandboxes and the proxy stopped",
      labelNames: ["layer", "reason"],
      registers,
    })
    this.#requests = new Counter({
      name: "caisson_http_requests_total",
      help: "Requests by method, route and status",
      labelNames: ["method", "route", "status"],
      registers,
    })
    this.#ready = new Gauge({
      name: "caisson_ready",
      help: "Whether calls can be served, as last found",
      registers,
    })
    this.#reloads = new Counter({
      name: "caisson_reloads_total",
      help: "Generations of manifests and config that were read, by outcome",
      labelNames: ["outcome"],
      registers,
    })
    this.#droppedSpans = new Counter({
      name: "caisson_trace_spans_dropped_total",
      help: "Spans that the collector of `serve.traces` was not given",
      registers,
    })
    const asked = (name: string, help: string, now: () => number | Promise<number>) =>
      new Gauge({
        name,
        help,
        registers,
        async collect() {
          this.set(await now())
        },
      })
    asked("caisson_calls_under_way", "Calls that run or wait for their turn", underWay)
    asked("caisson_calls_held", "Calls whose effects wait for a person's answer", held)
    asked("caisson_event_streams", "Streams of events that are open", streams)
    this.#ready.set(1)
  }
  droppedSpans(count: number): void {
    this.#droppedSpans.inc(count)
  }
  call(envelope: Envelope, kind: string | undefined, ms: number): void {
    const own = envelope.ok ? undefined : envelope.error
    const isOurs = own !== undefined && Object.hasOwn(reasons, own.code)
    const cls = own === undefined ? "ok" : isOurs ? reasons[own.code as ReasonCode].class : "tool"
    this.#calls.inc({
      code: own === undefined ? "ok" : isOurs ? own.code : "tool",
      class: cls,
      kind: kind ?? "none",
    })
    this.#seconds.observe({ class: cls }, ms / 1000)
    for (const { layer, reason, count } of envelope.denied)
      this.#denials.inc({ layer, reason: this.#denialReasons.of(reason) }, count)
  }
  request(method: string, route: string, status: number): void {
    this.#requests.inc({ method, route, status: String(status) })
  }
  ready(isReady: boolean): void {
    this.#ready.set(isReady ? 1 : 0)
  }
  reload(outcome: "taken" | "refused"): void {
    this.#reloads.inc({ outcome })
  }
  get contentType(): string {
    return this.#registry.contentType
  }
  text(): Promise<string> {
    return this.#registry.metrics()
  }
}
