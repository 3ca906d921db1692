/**
 * Heads of tunnel requests that were judged before: a program that opens many tunnels sends the same bytes each time.
 *
 * Guarantees: only whole heads that the full judgement found to be a tunnel are known, byte for byte, and what is known
 * is the authority they ask for, never whether it is allowed: that is decided for each request anew. Bounded.
 */
import type { Authority } from "../policy/authority.ts"

export interface KnownTunnels {
  /** The authority asked for, if these bytes are one known head and nothing else. */
  find(bytes: Buffer): Authority | undefined
  /** @param head without its last, empty line */
  learn(head: Buffer, authority: Authority): void
}

const mostHeads = 256
const mostBytes = 512

export function createKnownTunnels(): KnownTunnels {
  const known = new Map<string, Authority>()
  return {
    find: (bytes) => (bytes.length > mostBytes ? undefined : known.get(bytes.toString("latin1"))),
    learn(head, authority) {
      if (head.length + 4 > mostBytes) return
      if (known.size >= mostHeads) known.clear()
      known.set(`${head.toString("latin1")}\r\n\r\n`, authority)
    },
  }
}
