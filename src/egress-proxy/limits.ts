/**
 * The proxy's own limits, each with its value and what happens there. Budgets of a call are in `budgets.ts`.
 *
 * Guarantees: every buffer, wait and table in this room is bounded by a number from this file, checked before the
 * memory is taken.
 */
import { readFileSync } from "node:fs"
import { createPace, type Pace } from "./pace.ts"

export interface ProxyLimits {
  /** bytes of a request head (request line and headers) → `head_too_large`, connection closed */
  readonly headBytes: number
  /** header lines of a request → `head_too_large` */
  readonly headerLines: number
  /** from its first byte to the end of a request head → `head_timeout`; also for SOCKS5 and the ClientHello */
  readonly headMs: number
  /** a fresh or kept-alive connection that sends nothing → closed without a word */
  readonly silentMs: number
  /** bytes of the ClientHello, all records → `bad_client_hello` */
  readonly helloBytes: number
  /** bytes of an upstream response head → `upstream_error` */
  readonly responseHeadBytes: number
  /** from the end of the request to the end of the response head → `upstream_timeout` */
  readonly responseHeadMs: number
  /** interim (1xx) responses to one request → `upstream_error` */
  readonly interimResponses: number
  /** bytes of a chunk's size line, and of all trailers → `bad_chunk` */
  readonly chunkLineBytes: number
  readonly trailerBytes: number
  /**
   * client connections open at once on one proxy (1024 where it does not listen itself): the oldest idle tunnel is
   * shed, else one of the client address with the most of them that owes the next bytes, else `too_many_connections`
   */
  readonly openConnections: number
  /**
   * memory for reading that the tunnels of one proxy may take beyond 16 KiB each way (8 MiB where it does not listen
   * itself): further ones read in smaller pieces
   */
  readonly lineMemoryBytes: number
  /** connections beyond the cap that are told so at once; further ones are reset */
  readonly turnedAway: number
  /** an end of a tunnel or exchange that takes nothing of what it was given for this long → cut, `idle_timeout` */
  readonly stalledMs: number
  /** a tunnel counts as idle, and may be shed, after this; one whose end takes nothing, as stalled */
  readonly shedIdleMs: number
  /** stalled tunnels and exchanges of one proxy at once (64 where it does not listen itself): those that have been for longest are cut, `idle_timeout` */
  readonly stalledPassages: number
  /**
   * bytes of heads and bodies that one proxy works on in one turn of the event loop, or one read where that is more:
   * further ones wait for the next turn, in line
   */
  readonly turnBytes: number
  /** what a request, or a DNS query, takes of those at least: so many are judged in one turn */
  readonly requestCost: number
  /** what a TLS handshake, with a client or an upstream, takes of those */
  readonly handshakeCost: number
  /** DNS datagrams that wait for their turn before no more are read, where Node can be told so */
  readonly queriesAhead: number
  /** the same where it cannot: further ones are dropped, as a network would, and counted as `budget` */
  readonly queriesWaiting: number
  /**
   * names being resolved at once on one proxy, and for one client address (all of them where it does not listen
   * itself): the others wait in line, clients in turns, within the connect timeout
   */
  readonly resolving: number
  readonly resolvingOfOne: number
  /** addresses of one answer that are tried, in the resolver's order */
  readonly dialAttempts: number
  /** upstream connections kept between the requests of one client connection: the oldest is closed */
  readonly keptUpstreams: number
  /** for how long one is kept; most servers close theirs after 5 s or more, ours goes first */
  readonly keptMs: number
  /** bytes of answers that a client has not read yet: the connection is closed there */
  readonly unreadBytes: number
  /** memory for undoing the encodings of bodies that are searched for secrets, on one proxy: further ones wait in line */
  readonly decodingBytes: number
  /** bytes read and thrown away, and time taken, after a final answer, so that the client can read it */
  readonly lingerBytes: number
  readonly lingerMs: number
  /** refusals written to the log one by one in a second; further ones are counted, a line for each reason */
  readonly refusalLines: number
  /** different (reason, target) pairs kept for `denials()`; further ones are counted under the target `…` */
  readonly denialRows: number
}

export const defaultLimits: ProxyLimits = Object.freeze({
  headBytes: 65_536,
  headerLines: 128,
  headMs: 10_000,
  silentMs: 60_000,
  helloBytes: 65_536,
  responseHeadBytes: 65_536,
  responseHeadMs: 120_000,
  interimResponses: 16,
  chunkLineBytes: 256,
  trailerBytes: 8_192,
  openConnections: 16_384,
  lineMemoryBytes: 67_108_864,
  turnedAway: 16,
  stalledMs: 120_000,
  shedIdleMs: 5_000,
  stalledPassages: 1_024,
  turnBytes: 65_536,
  requestCost: 4_096,
  handshakeCost: 65_536,
  queriesAhead: 16,
  queriesWaiting: 256,
  resolving: 64,
  resolvingOfOne: 16,
  dialAttempts: 4,
  keptUpstreams: 4,
  keptMs: 4_000,
  unreadBytes: 65_536,
  decodingBytes: 67_108_864,
  lingerBytes: 1_048_576,
  lingerMs: 1_000,
  refusalLines: 200,
  denialRows: 1_000,
})

/**
 * Client connections open at once over all proxies of this process; owner: this process. A connection takes two file
 * descriptors, and the process keeps some for itself, so the limit follows that of the process where it is known.
 */
export const processConnections = { open: 0, limit: connectionsFor(descriptorLimit()) }

/**
 * What one proxy of this process works on in a second while others have connections, counted as for `turnBytes`, and
 * how much of it it may save up → it waits. Those that want more divide it among them.
 */
export const processPace: Pace = createPace(33_554_432, 65_536)

/** A proxy that only serves sandboxes: one of them cannot take the process's connections from the others. */
export const sandboxLimits: ProxyLimits = Object.freeze({
  ...defaultLimits,
  openConnections: Math.max(16, Math.min(1_024, Math.floor(processConnections.limit / 4))),
  lineMemoryBytes: 8_388_608,
  stalledPassages: 64,
  resolving: 16,
})

function connectionsFor(descriptors: number): number {
  const ownDescriptors = 256
  return Math.max(16, Math.min(32_768, Math.floor((descriptors - ownDescriptors) / 2)))
}

function descriptorLimit(): number {
  try {
    const soft = Number(/^Max open files +([0-9]+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1])
    return Number.isFinite(soft) ? soft : Number.POSITIVE_INFINITY
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
