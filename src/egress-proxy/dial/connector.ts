/**
 * Route → vetted addresses → a `Connector`, the only thing in this room that dials.
 *
 * Guarantees: a name is resolved once per connection; every address of the answer is vetted, and one bad address
 * refuses them all; the connector holds the vetted addresses and can dial nothing else. Resolving and dialling
 * together take no longer than the deadline; an address that does not answer leaves time for those after it. Whatever
 * the injected functions do (throw, hang, answer nonsense) is an outcome, never an exception.
 * Assumes: `dial` connects to exactly the address it is given (the default one does).
 */
import { connect, type NetConnectOpts, type Socket } from "node:net"
import { Duplex } from "node:stream"
import { type IpAddress, parseIp } from "../policy/address.ts"
import { parseHost } from "../policy/authority.ts"
import type { Deadline } from "../connection/deadline.ts"
import type { Route } from "../policy/decide.ts"
import { addressVerdict, type CompiledPolicy } from "../policy/compile.ts"
import type { ReasonCode } from "../policy/reasons.ts"
import { aheadBytes } from "../connection/turns.ts"
import type { Dial, Resolve } from "../types.ts"

export type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly code: ReasonCode }

export interface Connected<T> {
  readonly socket: T
  readonly address: string
}
interface Connector<T> {
  dial(deadline: Deadline): Promise<Outcome<Connected<T>>>
}
/** One try at one address: connected, or nothing by the deadline. */
export type Attempt<T> = (address: string, port: number, deadline: Deadline) => Promise<T | undefined>

export const systemDial: Dial = (address, port) =>
  connect({ host: address, port, allowHalfOpen: true, noDelay: true, highWaterMark: aheadBytes } as NetConnectOpts)

/** Rejects when the deadline expires; the work goes on unseen, its late result is handed to `late`. */
function within<T>(work: Promise<T>, deadline: Deadline, late: (value: T) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const onExpired = () => {
      work.then(late, () => {})
      reject(new Error("deadline"))
    }
    deadline.onExpired(onExpired)
    const settled = () => deadline.off(onExpired)
    work.then(resolve, reject).then(settled, settled)
  })
}

export async function vet(
  policy: CompiledPolicy,
  route: Extract<Route, { kind: "resolve" }>,
  resolve: Resolve,
  deadline: Deadline,
): Promise<Vetted> {
  let answer: unknown
  try {
    answer = await within((async (): Promise<unknown> => resolve(route.name))(), deadline, () => {})
  } catch {
    return { outcome: { ok: false, code: "dns_failure" }, aliases: [] }
  }
  const listed: unknown = field(answer, "addresses") ?? answer
  const aliases = aliasesIn(field(answer, "aliases"))
  const addresses = Array.isArray(listed) ? listed.map(addressIn) : []
  if (addresses.length === 0 || !addresses.every((ip) => ip !== undefined))
    return { outcome: { ok: false, code: "dns_failure" }, aliases }
  return { outcome: vetAnswer(policy, addresses, route.port), aliases }
}

/** The dialable addresses of a name, and what it is an alias of, which nothing depends on. */
export interface Vetted {
  readonly outcome: Outcome<readonly IpAddress[]>
  readonly aliases: readonly string[]
}

const field = (answer: unknown, name: "addresses" | "aliases"): unknown =>
  typeof answer === "object" && answer !== null && name in answer
    ? (answer as Record<string, unknown>)[name]
    : undefined

/** aliases of one answer that are kept */
const mostAliases = 16

/** Names of others, said by others: only what is a name in our grammar is repeated. */
function aliasesIn(aliases: unknown): readonly string[] {
  if (!Array.isArray(aliases)) return []
  return aliases.slice(0, mostAliases).flatMap((alias: unknown) => {
    const host = typeof alias === "string" ? parseHost(alias) : undefined
    return host?.ok === true && host.value.kind === "name" ? [host.value.name] : []
  })
}

/** An address as text, or as `dns.lookup` hands it out: `{ address, family }`. Anything else is none. */
function addressIn(one: unknown): IpAddress | undefined {
  const text = typeof one === "object" && one !== null && "address" in one ? one.address : one
  return typeof text === "string" ? parseIp(text) : undefined
}

/** All addresses of an answer must be dialable; one that is not refuses them all. */
export function vetAnswer(
  policy: CompiledPolicy,
  addresses: readonly IpAddress[],
  port: number,
): Outcome<readonly IpAddress[]> {
  const forbidden = addresses.map((ip) => addressVerdict(policy, ip, port))
  const first = forbidden.find((found) => found !== undefined)
  if (first === undefined) return { ok: true, value: addresses }
  if (!forbidden.includes(undefined)) return { ok: false, code: `resolved_${first}` }
  if (!policy.off.has("answer.mixed")) return { ok: false, code: "mixed_answer" }
  return { ok: true, value: addresses.filter((_, index) => forbidden[index] === undefined) }
}

export function createConnector<T>(
  addresses: readonly IpAddress[],
  port: number,
  attempt: Attempt<T>,
  attempts: number,
): Connector<T> {
  return {
    async dial(deadline) {
      const tried = addresses.slice(0, attempts)
      let code: ReasonCode = "connect_failed"
      for (const [index, ip] of tried.entries()) {
        const share = deadline.share(tried.length - index)
        const socket = await attempt(ip.text, port, share)
        if (socket !== undefined) share.settle()
        if (socket !== undefined) return { ok: true, value: { socket, address: ip.text } }
        if (share.expired) code = "connect_timeout"
        else share.settle()
        if (deadline.expired) return { ok: false, code: "connect_timeout" }
      }
      return { ok: false, code }
    },
  }
}

/** Tries with a dial function that was handed in, whatever it does. */
export const attemptWith =
  (dial: Dial): Attempt<Socket> =>
  (address, port, deadline) =>
    attemptSocket(() => dial(address, port), deadline)

async function attemptSocket(dial: () => ReturnType<Dial>, deadline: Deadline): Promise<Socket | undefined> {
  const drop = (socket: unknown) => {
    if (socket instanceof Duplex) socket.on("error", () => {}).destroy()
  }
  let socket: Socket
  try {
    const dialled = dial()
    const isPending = typeof (dialled as PromiseLike<Socket> | undefined)?.then === "function"
    socket = isPending ? await within(Promise.resolve(dialled), deadline, drop) : (dialled as Socket)
  } catch {
    return undefined
  }
  if (!(socket instanceof Duplex)) return undefined
  socket.on("error", () => {})
  socket.allowHalfOpen = true
  if (socket.destroyed) return undefined
  if (socket.connecting !== true) {
    // A socket that nobody has connected looks open and never will be.
    if (socket.pending !== true) return socket
    socket.destroy()
    return undefined
  }
  const connected = await new Promise<boolean>((resolve) => {
    const settle = () => {
      deadline.off(settle)
      socket.off("connect", settle).off("close", settle)
      resolve(!socket.connecting && !socket.destroyed)
    }
    socket.on("connect", settle).on("close", settle)
    deadline.onExpired(settle)
  })
  if (connected) return socket
  drop(socket)
  return undefined
}
