/**
 * What happened in a call, kept for those who listen and for those who come back.
 *
 * Guarantees: events keep their numbers; what a tape holds is bounded in number and bytes, the oldest forgotten first, and
 * a reader that asks for what is forgotten is told how much it missed. Reading never holds up the call.
 */
import { StringDecoder } from "node:string_decoder"
import type { CallsOwner } from "../../host/access/caller.ts"
import type { CallEvent } from "../../host/events.ts"
import { daemonLimits } from "../limits.ts"

/** An event as it is told: plain JSON. */
export interface ToldEvent {
  readonly seq: number
  readonly type: string
  readonly data: string
}

export class Tape {
  readonly call: string
  /** who may be told is decided by these */
  readonly user: string
  readonly tenant: string
  readonly workspace: string
  readonly #events: ToldEvent[] = []
  readonly #decoders = new Map<string, StringDecoder>()
  readonly #listeners = new Set<() => void>()
  #first = 0
  #bytes = 0
  #endedAt: number | undefined
  constructor(call: string, whose: CallsOwner) {
    this.call = call
    this.user = whose.user
    this.tenant = whose.tenant
    this.workspace = whose.workspace
  }
  get bytes(): number {
    return this.#bytes
  }
  get endedAt(): number | undefined {
    return this.#endedAt
  }
  /** has nothing ever been heard */
  get isEmpty(): boolean {
    return this.#events.length === 0 && this.#first === 0
  }
  get hasEnded(): boolean {
    return this.#endedAt !== undefined
  }

  readonly hear = (event: CallEvent): void => {
    const { seq, type } = event
    const data = JSON.stringify(this.#plain(event))
    this.#events.push({ seq, type, data })
    this.#bytes += data.length
    while (this.#events.length > daemonLimits.tapeEvents.value || this.#bytes > daemonLimits.tapeBytes.value) {
      const oldest = this.#events.shift()
      if (oldest === undefined) break
      this.#bytes -= oldest.data.length
      this.#first = oldest.seq + 1
    }
    this.#tell()
  }
  #plain(event: CallEvent): object {
    const at = new Date(event.at).toISOString()
    if (event.type !== "output") return { ...event, at }
    const decoder = this.#decoders.get(event.stream) ?? new StringDecoder("utf8")
    this.#decoders.set(event.stream, decoder)
    const { bytes, ...rest } = event
    return { ...rest, at, text: decoder.write(Buffer.from(bytes)) }
  }
  /** Nothing comes after this. */
  end(): void {
    this.#endedAt ??= performance.now()
    this.#decoders.clear()
    this.#tell()
  }
  #tell(): void {
    for (const listener of [...this.#listeners]) listener()
  }

  /** From `seq` on: how many are forgotten by now, and those that are left, up to so many. */
  from(seq: number, most: number): { readonly missed: number; readonly events: readonly ToldEvent[] } {
    const missed = Math.max(0, this.#first - seq)
    const start = Math.max(0, seq - this.#first)
    return { missed, events: this.#events.slice(start, start + most) }
  }
  listen(listener: () => void): Disposable {
    this.#listeners.add(listener)
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) }
  }
}

/** The tapes of a daemon: of calls under way, and of those that ended a while ago. */
export class Tapes {
  readonly #of = new Map<string, Tape>()
  add(tape: Tape): void {
    this.#of.set(tape.call, tape)
    this.#forget()
  }
  drop({ call }: Tape): void {
    this.#of.delete(call)
  }
  find(call: string): Tape | undefined {
    this.#forget()
    return this.#of.get(call)
  }
  #forget(): void {
    const ended = [...this.#of.values()].filter(({ hasEnded }) => hasEnded)
    let bytes = [...this.#of.values()].reduce((sum, tape) => sum + tape.bytes, 0)
    let count = ended.length
    const before = performance.now() - daemonLimits.tapeMs.value
    for (const tape of ended) {
      const isTooMuch = count > daemonLimits.tapes.value || bytes > daemonLimits.tapesBytes.value
      if (!isTooMuch && (tape.endedAt ?? 0) > before) continue
      this.#of.delete(tape.call)
      count -= 1
      bytes -= tape.bytes
    }
  }
}
