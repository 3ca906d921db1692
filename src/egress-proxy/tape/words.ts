/** The words of recording and replaying an egress. Types only. */
import type { Duplex } from "node:stream"

export interface TapeTarget {
  readonly host: string
  readonly port: number
  readonly secure: boolean
}
export type TapeHeader = readonly [name: string, value: string]

export interface TapeExchange {
  readonly method: string
  /** `https://host:port/path?query`, without secrets */
  readonly url: string
  readonly range?: string
  /** of the body that was sent; the body itself is not kept */
  readonly sent: { readonly digest: string; readonly bytes: number }
  readonly status: number
  readonly phrase: string
  readonly headers: readonly TapeHeader[]
  readonly body: Buffer
  /** something was taken out of the answer */
  readonly redacted: boolean
}

/** One exchange as it passes by. */
export interface Take {
  sent(bytes: Buffer): void
  answered(status: number, phrase: string, headers: readonly TapeHeader[]): void
  came(bytes: Buffer): void
  end(): void
}

export interface TapeRequest {
  readonly target: TapeTarget
  readonly method: string
  readonly path: string
  readonly headers: readonly TapeHeader[]
}

interface Faulty {
  /** What could not be recorded or answered, by name: the call fails by it. */
  fault(what: string): void
  faults(): readonly string[]
}
export interface Recorder extends Faulty {
  readonly mode: "record"
  take(request: TapeRequest): Take
  exchanges(): readonly TapeExchange[]
}
export interface Player extends Faulty {
  readonly mode: "replay"
  /** A connection that answers from the recording; nothing is dialled. */
  connect(target: Omit<TapeTarget, "secure">): Duplex
  /** how many exchanges were asked for at least once, of how many */
  used(): { readonly used: number; readonly all: number }
}
export type Tape = Recorder | Player
