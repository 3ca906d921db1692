/** The words of one exchange: what is forwarded, what came back, how it ended. Types only. */
import type { IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"
import type { ByteSource } from "../connection/byte-source.ts"
import type { ProxyLimits } from "../limits.ts"
import type { Passage } from "../relay/passages.ts"
import type { ReasonCode } from "../policy/reasons.ts"
import type { RulesOff } from "../policy/rules.ts"
import type { BodyScanner } from "../secrets/body.ts"
import type { Turns } from "../connection/turns.ts"
import type { Tape, TapeTarget } from "../tape/words.ts"
import type { Verdict } from "../types.ts"
import type { Framing } from "./framing.ts"
import type { Header, RequestHead } from "./head.ts"

export interface Exchange {
  readonly source: ByteSource
  readonly head: RequestHead
  readonly framing: Framing
  readonly path: string
  readonly host: string
  /** headers that go upstream, already sanitised */
  readonly headers: readonly Header[]
  readonly upstream: Duplex
  readonly passage: Passage
  readonly limits: ProxyLimits
  readonly turns: Turns
  readonly idleMs: number
  readonly off: RulesOff
  /** the upstream's connection may serve another request afterwards */
  readonly keep: boolean
  /** hears what passes */
  readonly tape?: { readonly tape: Tape; readonly target: TapeTarget } | undefined
  /** looks at the body before it goes upstream */
  readonly scanner?: BodyScanner
}

export type ForwardResult =
  /** answered in full: the client connection may carry another request */
  | { readonly state: "answered"; readonly reusable: boolean; readonly kept?: boolean }
  /** nothing was sent to the client yet; `unanswered`: the upstream's connection closed without a byte of an answer */
  | { readonly state: "failed"; readonly code: ReasonCode; readonly unanswered?: boolean }
  /** nothing was sent to the client yet, and why is recorded already */
  | { readonly state: "refused"; readonly verdict: Verdict }
  /** part of an answer was sent, or the client is gone; both sockets are closed */
  | { readonly state: "broken" }
  /** became a tunnel, and that is over */
  | { readonly state: "upgraded" }

/** What the upstream said first. */
export type Answer =
  | { readonly kind: "response"; readonly response: IncomingMessage }
  | { readonly kind: "upgrade"; readonly response: IncomingMessage; readonly early: Buffer }
  | { readonly kind: "failed"; readonly code: ReasonCode; readonly unanswered?: boolean }

/** How sending the request went. */
export type Sent = { readonly kind: "sent" } | { readonly kind: "failed"; readonly code: ReasonCode }
