/**
 * Spans, sent to a collector over OTLP/HTTP as JSON.
 *
 * Guarantees: no call waits for it or fails by it. What waits is bounded; what does not fit, or what the collector will not have
 * after one more attempt, is dropped and counted. A redirect is not followed. Closing sends what is left, within its time.
 * Own, and not OpenTelemetry's SDK: of that nothing but this one request is needed, and it is twenty packages and a third of the daemon's
 * start.
 */
import { readFileSync } from "node:fs"
import type { TraceSettings } from "../../host/config/serve-settings.ts"
import { HostStartError } from "../../host/start-error.ts"
import { daemonLimits } from "../limits.ts"
import type { Span } from "./call-spans.ts"

const AGAIN = new Set([429, 502, 503, 504])
const HEADER = /^([A-Za-z0-9-]{1,64}):[ \t]*([\x20-\x7e]{0,4096})$/

/** `Name: value` lines; read at the start, so that a token in them stands in no config and no environment. */
const headersIn = (file: string | undefined): Readonly<Record<string, string>> => {
  if (file === undefined) return {}
  const fault = (message: string): HostStartError =>
    new HostStartError("input_invalid", `\`serve.traces.headers_file\` ${message}`, "write lines of `Name: value`")
  let text: string
  try {
    text = readFileSync(file, "utf8")
  } catch (error) {
    throw fault(`cannot be read: ${(error as Error).message}`)
  }
  return Object.fromEntries(
    text
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== "")
      .map((line, at) => {
        const [, name, value] = HEADER.exec(line) ?? []
        if (name === undefined || value === undefined) throw fault(`has no header in its line ${at + 1}`)
        return [name, value]
      }),
  )
}

export class TraceExporter implements AsyncDisposable {
  readonly #to: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #resource: object
  readonly #dropped: (count: number) => void
  #waiting: Span[] = []
  #sending: Promise<void> | undefined
  readonly #timer: NodeJS.Timeout
  #isClosed = false
  constructor({ endpoint, headersFile }: TraceSettings, version: string, dropped: (count: number) => void) {
    this.#to = `${endpoint.replace(/\/+$/, "")}/v1/traces`
    this.#headers = { ...headersIn(headersFile), "content-type": "application/json" }
    const named = (key: string, stringValue: string): object => ({ key, value: { stringValue } })
    this.#resource = { attributes: [named("service.name", "caisson"), named("service.version", version)] }
    this.#dropped = dropped
    this.#timer = setInterval(() => this.#send(), daemonLimits.traceEveryMs.value)
    this.#timer.unref()
  }

  add(spans: readonly Span[]): void {
    const room = this.#isClosed ? 0 : daemonLimits.traceSpans.value - this.#waiting.length
    this.#waiting.push(...spans.slice(0, Math.max(0, room)))
    if (spans.length > room) this.#dropped(spans.length - Math.max(0, room))
    if (this.#waiting.length >= daemonLimits.traceBatch.value) this.#send()
  }

  #send(): void {
    if (this.#sending !== undefined || this.#waiting.length === 0) return
    const batch = this.#waiting.splice(0, daemonLimits.traceBatch.value)
    this.#sending = this.#deliver(batch).finally(() => {
      this.#sending = undefined
      if (this.#waiting.length >= daemonLimits.traceBatch.value) this.#send()
    })
  }

  async #deliver(batch: readonly Span[]): Promise<void> {
    const scope = { name: "caisson" }
    const body = JSON.stringify({
      resourceSpans: [{ resource: this.#resource, scopeSpans: [{ scope, spans: batch }] }],
    })
    for (let attempt = 0; attempt < 2; attempt += 1) {
      try {
        const answer = await fetch(this.#to, {
          method: "POST",
          headers: this.#headers,
          body,
          redirect: "error",
          signal: AbortSignal.timeout(daemonLimits.traceMs.value),
        })
        await answer.body?.cancel()
        if (answer.ok) return
        if (!AGAIN.has(answer.status)) break
      } catch {
        // It is not there, or too slow: once more, then it is dropped.
      }
    }
    this.#dropped(batch.length)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    clearInterval(this.#timer)
    const late = Promise.withResolvers<void>()
    const timer = setTimeout(late.resolve, daemonLimits.traceCloseMs.value)
    const drain = async (): Promise<void> => {
      while (this.#sending !== undefined || this.#waiting.length > 0) {
        this.#send()
        await this.#sending
      }
    }
    await Promise.race([drain(), late.promise])
    clearTimeout(timer)
  }
}
