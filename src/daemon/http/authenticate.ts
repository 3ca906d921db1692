/**
 * Who is at the other end of a connection.
 *
 * Guarantees: over the Unix socket it is the user whom the kernel names, and nobody but the data folder's owner is anybody;
 * over TCP it is who the bearer token says, and a request without one is nobody's, whatever else it has. Acting for another
 * user takes the role for it. Wrong tokens from one address are slowed down, so that nobody tries them out.
 */
import type { FastifyRequest } from "fastify"
import { isIP, type Socket } from "node:net"
import { type Caller, mayActForUser, processCaller } from "../../host/access/caller.ts"
import { isUserId } from "../../host/access/os-user.ts"
import type { Host } from "../../host/types.ts"
import { peerUid } from "../../linux/sockets.ts"
import { daemonLimits } from "../limits.ts"
import { refuse } from "./problem.ts"

const BEARER = /^Bearer ([A-Za-z0-9_.~+/=-]{1,512})$/i
const MINUTE = 60_000
const MOST_ADDRESSES = 1_024

/** How many wrong tokens an address showed in its minute. */
class Failures {
  readonly #of = new Map<string, { count: number; readonly since: number }>()
  #current(address: string): { count: number; readonly since: number } | undefined {
    const found = this.#of.get(address)
    if (found !== undefined && performance.now() - found.since < MINUTE) return found
    this.#of.delete(address)
    return undefined
  }
  isTooMany(address: string): boolean {
    return (this.#current(address)?.count ?? 0) >= daemonLimits.authFailures.value
  }
  add(address: string): void {
    const found = this.#current(address)
    if (found !== undefined) {
      found.count += 1
      return
    }
    const oldest = this.#of.size >= MOST_ADDRESSES ? this.#of.keys().next().value : undefined
    if (oldest !== undefined) this.#of.delete(oldest)
    this.#of.set(address, { count: 1, since: performance.now() })
  }
}

const descriptorOf = (socket: Socket): number | undefined => {
  const { _handle: handle } = socket as unknown as { readonly _handle?: { readonly fd?: number } | null }
  return typeof handle?.fd === "number" && handle.fd >= 0 ? handle.fd : undefined
}

/** Told apart by listener, as the connection comes: what a request says of itself has no part in it. */
export class Knocks {
  readonly #local = new WeakSet<Socket>()
  /** A connection to the Unix socket: kept where it is the owner's. Answers whether it is. */
  admitLocal(socket: Socket): boolean {
    const fd = descriptorOf(socket)
    try {
      if (fd === undefined || peerUid(fd) !== process.geteuid?.()) return false
    } catch {
      return false
    }
    this.#local.add(socket)
    return true
  }
  isLocal(socket: Socket): boolean {
    return this.#local.has(socket)
  }
}

/** What it shows, good or not. */
export const tokenIn = ({ headers }: FastifyRequest): string | undefined =>
  BEARER.exec(headers.authorization ?? "")?.[1]

const needsToken = (message: string) =>
  refuse(
    "auth_required",
    message,
    "send `Authorization: Bearer TOKEN`; `caisson tokens create` makes one",
    { "www-authenticate": 'Bearer realm="caisson"' },
    401,
  )

export const createAuthenticate = (host: Host, knocks: Knocks): ((request: FastifyRequest) => Promise<Caller>) => {
  const failures = new Failures()
  const byToken = async ({ headers, ip }: FastifyRequest): Promise<Caller> => {
    if (headers.authorization === undefined) throw needsToken("this address needs a token")
    const shown = BEARER.exec(headers.authorization)?.[1]
    const caller = shown === undefined ? undefined : await host.tokens.callerOf(shown)
    if (caller !== undefined) return caller
    // One who has a good one is not kept out by who shares the address.
    if (failures.isTooMany(ip))
      throw refuse("rate_limited", "too many wrong tokens came from this address", "wait a minute", {
        "retry-after": "60",
      })
    failures.add(ip)
    throw needsToken("this token is not good: it is wrong, expired or revoked")
  }
  return async (request) => {
    const caller = knocks.isLocal(request.raw.socket)
      ? { ...processCaller(), how: "socket" as const }
      : { ...(await byToken(request)), ...(isIP(request.ip) === 0 ? {} : { address: request.ip }) }
    const other = request.headers["caisson-user"]
    if (other === undefined) return caller
    if (typeof other !== "string" || !isUserId(other)) throw refuse("input_invalid", "`Caisson-User` is not a user id")
    const acting = { ...caller, user: other }
    if (!mayActForUser(acting)) throw refuse("unauthorised", "this token may not act for another user")
    return acting
  }
}
