/**
 * What happens in a call, told while it happens to whoever observes it.
 *
 * Guarantees: events come in order, each once, numbered from 0; nothing that an observer does, throws or takes its time
 * over ends the call or holds a step up: it hears between the steps, and output that it is too slow for is dropped and
 * counted. What waits is bounded. All that was told is heard before the call's envelope is out.
 */
import type { CallEvent, EventBody, Tell } from "../events.ts"
import { hostLimits } from "../limits.ts"

/** What an event that waits counts for. */
const sizeOf = (event: EventBody): number => {
  if (event.type === "output") return event.bytes.length
  return event.type === "progress" ? JSON.stringify(event.value).length : 0
}

export class CallEvents {
  readonly #call: string
  readonly #observe: ((event: CallEvent) => void) | undefined
  readonly #waiting: CallEvent[] = []
  #seq = 0
  #bytes = 0
  #dropped = 0
  #progressDropped = 0
  #denials = 0
  #planned: NodeJS.Immediate | undefined
  constructor(call: string, observe: ((event: CallEvent) => void) | undefined) {
    this.#call = call
    this.#observe = observe
  }

  readonly tell: Tell = (body) => {
    if (this.#observe === undefined) return
    if (body.type === "output") return this.#tellOutput(body)
    if (body.type === "progress") return this.#tellProgress(body)
    if (body.type === "denied") {
      this.#denials += 1
      if (this.#denials > hostLimits.eventDenials.value) return
    }
    this.#add(body)
  }
  #tellProgress(body: Extract<EventBody, { type: "progress" }>): void {
    const length = sizeOf(body)
    if (this.#isFull(length)) {
      this.#progressDropped += 1
      return
    }
    this.#bytes += length
    this.#add({ ...body, ...(this.#progressDropped > 0 ? { dropped: this.#progressDropped } : {}) })
    this.#progressDropped = 0
  }
  #isFull(length: number): boolean {
    return (
      this.#bytes + length > hostLimits.eventOutputBytes.value || this.#waiting.length >= hostLimits.eventQueue.value
    )
  }
  #tellOutput(body: Extract<EventBody, { type: "output" }>): void {
    const { length } = body.bytes
    if (this.#isFull(length)) {
      this.#dropped += length
      return
    }
    this.#bytes += length
    // A copy: whoever reads the stream may use its buffer again.
    this.#add({ ...body, bytes: Uint8Array.from(body.bytes), ...(this.#dropped > 0 ? { dropped: this.#dropped } : {}) })
    this.#dropped = 0
  }
  #add(body: EventBody): void {
    this.#waiting.push({ seq: this.#seq, at: Date.now(), call: this.#call, ...body })
    this.#seq += 1
    this.#planned ??= setImmediate(() => this.flush())
  }

  /** Tell all that waits, now. */
  flush(): void {
    clearImmediate(this.#planned)
    this.#planned = undefined
    for (let event = this.#waiting.shift(); event !== undefined; event = this.#waiting.shift()) {
      this.#bytes -= sizeOf(event)
      this.#hear(event)
    }
  }
  #hear(event: CallEvent): void {
    try {
      const heard: unknown = this.#observe?.(event)
      if (heard instanceof Promise) heard.catch(() => undefined)
    } catch {
      // An observer's own failure is none of the call's.
    }
  }
}
