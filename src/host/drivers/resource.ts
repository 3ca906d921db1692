/** A service that takes OAuth tokens and says itself where they come from (RFC 9728): what a login may know of it. Types alone. */
import type { Dialled, HostedDial } from "../../egress-proxy/serve/hosted.ts"
import type { Answer } from "./kind.ts"

/** What a service says when it refuses a request (RFC 6750). A stranger's words, in the forms that they can have. */
export interface Challenge {
  readonly status: 401 | 403
  readonly error?: string
  readonly scopes?: readonly string[]
  /** the address of its own metadata */
  readonly metadata?: string
}

export interface ProtectedResource {
  readonly url: string
  /** What it answers to somebody without a token; undefined: it refuses nothing. */
  ask(way: {
    readonly signal: AbortSignal
    connect(to: HostedDial): Promise<Dialled>
  }): Promise<Answer<Challenge | undefined>>
}
