/**
 * Reads the two messages of a SOCKS5 client, greeting and request (RFC 1928), from bytes as they arrive.
 *
 * Guarantees: the result is the same however the bytes are split; holds at most one message (under 300 bytes) beside
 * the chunk in hand; names are handed on as raw bytes, never as text, because they may hold anything. Only "no
 * authentication" is spoken. A greeting is answered with `reply`, also when the client sent its request along with
 * it: write `reply` first, whatever the state that carries it. SOCKS4 gets its own refusal, so that such a client
 * can tell. `rest` is what followed the request, to be forwarded once, after approval.
 *
 * Does not: judge the name or port, and does not answer the request: the caller does, with `socks5Reply`.
 */
import ipaddr from "ipaddr.js"

export type Socks5Target =
  | { readonly kind: "name"; readonly bytes: Buffer }
  | { readonly kind: "ipv4" | "ipv6"; readonly address: string }

export type Socks5Step =
  | { readonly state: "more"; readonly reply?: Buffer }
  | {
      readonly state: "request"
      readonly command: "connect" | "bind" | "udp"
      readonly target: Socks5Target
      readonly port: number
      readonly rest: Buffer
      readonly reply?: Buffer
    }
  | { readonly state: "bad"; readonly reply?: Buffer; readonly reason: string }

interface Socks5Reader {
  /** Takes the next bytes. A refusal is final and repeats without its reply; after `request` it is a bug and throws. */
  push(chunk: Buffer): Socks5Step
}

/** Reply codes of RFC 1928, section 6. */
export const socks5Codes = Object.freeze({
  succeeded: 0,
  generalFailure: 1,
  notAllowed: 2,
  networkUnreachable: 3,
  hostUnreachable: 4,
  connectionRefused: 5,
  ttlExpired: 6,
  commandNotSupported: 7,
  addressTypeNotSupported: 8,
})

/** The answer to a request. The bound address is always 0.0.0.0:0: it is nobody's business in the sandbox. */
export function socks5Reply(code: number): Buffer {
  if (!Number.isInteger(code) || code < 0 || code > 0xff) throw new RangeError("a SOCKS5 reply code is one byte")
  return Buffer.from([5, code, 0, 1, 0, 0, 0, 0, 0, 0])
}

const methodChosen = Buffer.from([5, 0])
const noMethod = Buffer.from([5, 0xff])
const socks4Rejected = Buffer.from([0, 0x5b, 0, 0, 0, 0, 0, 0])
const commands = ["connect", "bind", "udp"] as const

type Parsed<T> = { readonly kind: "short" } | { readonly kind: "bad"; readonly step: Bad } | T
type Bad = Extract<Socks5Step, { state: "bad" }>
type Request = Omit<Extract<Socks5Step, { state: "request" }>, "state" | "rest" | "reply">

const bad = (reason: string, reply?: Buffer): { readonly kind: "bad"; readonly step: Bad } => ({
  kind: "bad",
  step: reply === undefined ? { state: "bad", reason } : { state: "bad", reason, reply: Buffer.from(reply) },
})
const short = { kind: "short" } as const

export function createSocks5Reader(): Socks5Reader {
  let held: Buffer = Buffer.alloc(0)
  let greeted = false
  let ended: "request" | { readonly reason: string } | undefined

  const refuse = (step: Bad, before: Buffer | undefined): Bad => {
    ended = { reason: step.reason }
    held = Buffer.alloc(0)
    if (before === undefined) return step
    return { ...step, reply: step.reply === undefined ? before : Buffer.concat([before, step.reply]) }
  }

  return {
    push(chunk) {
      if (ended === "request") throw new Error("the SOCKS5 request was already read")
      if (ended !== undefined) return { state: "bad", reason: ended.reason }
      held = held.length === 0 ? chunk : Buffer.concat([held, chunk])
      let reply: Buffer | undefined
      if (!greeted) {
        const greeting = parseGreeting(held)
        if (greeting.kind === "bad") return refuse(greeting.step, undefined)
        if (greeting.kind === "short") {
          held = Buffer.from(held)
          return { state: "more" }
        }
        held = held.subarray(greeting.length)
        greeted = true
        reply = Buffer.from(methodChosen)
      }
      const request = parseRequest(held)
      if (request.kind === "bad") return refuse(request.step, reply)
      if (request.kind === "short") {
        held = Buffer.from(held)
        return reply === undefined ? { state: "more" } : { state: "more", reply }
      }
      const rest = Buffer.from(held.subarray(request.length))
      ended = "request"
      held = Buffer.alloc(0)
      const step = { state: "request", ...request.request, rest } as const
      return reply === undefined ? step : { ...step, reply }
    },
  }
}

function parseGreeting(bytes: Buffer): Parsed<{ readonly kind: "greeting"; readonly length: number }> {
  if (bytes.length === 0) return short
  if (bytes[0] === 4) return bad("SOCKS4 is not spoken here; use SOCKS5", socks4Rejected)
  if (bytes[0] !== 5) return bad("the first byte is not SOCKS5")
  if (bytes.length < 2) return short
  const count = bytes[1] as number
  if (count === 0) return bad("the greeting offers no method", noMethod)
  if (bytes.length < 2 + count) return short
  if (!bytes.subarray(2, 2 + count).includes(0)) {
    return bad("the client insists on authentication; only `no authentication` is spoken", noMethod)
  }
  return { kind: "greeting", length: 2 + count }
}

function parseRequest(bytes: Buffer): Parsed<{ kind: "request"; length: number; request: Request }> {
  if (bytes.length > 0 && bytes[0] !== 5)
    return bad("the request is not SOCKS5", socks5Reply(socks5Codes.generalFailure))
  const command = commands[(bytes[1] ?? 1) - 1]
  if (command === undefined) return bad("the command is unknown", socks5Reply(socks5Codes.commandNotSupported))
  if ((bytes[2] ?? 0) !== 0) return bad("the reserved byte is set", socks5Reply(socks5Codes.generalFailure))
  if (bytes.length < 4) return short
  const type = bytes[3]
  if (type !== 1 && type !== 3 && type !== 4) {
    return bad("the address type is unknown", socks5Reply(socks5Codes.addressTypeNotSupported))
  }
  if (type === 3 && bytes.length < 5) return short
  const start = type === 3 ? 5 : 4
  const width = type === 1 ? 4 : type === 4 ? 16 : (bytes[4] as number)
  if (width === 0) return bad("the name is empty", socks5Reply(socks5Codes.generalFailure))
  const length = start + width + 2
  if (bytes.length < length) return short
  const address = Buffer.from(bytes.subarray(start, start + width))
  const port = bytes.readUInt16BE(start + width)
  return { kind: "request", length, request: { command, target: targetOf(type, address), port } }
}

function targetOf(type: 1 | 3 | 4, bytes: Buffer): Socks5Target {
  if (type === 3) return { kind: "name", bytes }
  if (type === 1) return { kind: "ipv4", address: bytes.join(".") }
  return { kind: "ipv6", address: new ipaddr.IPv6([...bytes]).toRFC5952String() }
}
