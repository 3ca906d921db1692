/**
 * Reads the first TLS message of a connection, a ClientHello, from bytes as they arrive.
 *
 * Guarantees: holds at most `maxBytes` before it decides, twice, in two pieces of memory, however many records or segments
 * they came in; the result is the same however the bytes are split; work is
 * linear in the bytes. Anything two TLS servers could read differently is `bad`: a repeated extension, two server
 * names, a length that does not add up, bytes after the hello in its own record. `raw` is every byte pushed, in
 * order, so that it can be forwarded untouched (it may go past the hello: a client may send early data).
 * `sni` is the name as sent, in lower case; it keeps a trailing dot, so that it differs from a canonical name.
 * A name that is absent, empty, or an address (in any spelling a resolver would take for one) is `undefined`, and
 * `sniIssue` says which: all three deny as a missing name. Any other byte than `[A-Za-z0-9._-]` is `bad`.
 * `ech` is true for an encrypted hello of any draft; browsers send a decoy of the same shape, so the outer name is
 * all there is to judge.
 *
 * Assumes: the caller bounds the time and sees the end of the stream.
 * Does not: check signatures, pick versions, or decrypt.
 */
import { isIP } from "node:net"

type SniIssue = "absent" | "empty" | "address"

export interface ClientHello {
  readonly state: "hello"
  readonly sni: string | undefined
  /** why `sni` is undefined */
  readonly sniIssue?: SniIssue
  /** protocol names in the client's order, one character a byte */
  readonly alpn: readonly string[]
  readonly ech: boolean
  readonly raw: Buffer
}

export type ClientHelloStep =
  | { readonly state: "more" }
  | ClientHello
  | { readonly state: "not-tls"; readonly reason: string }
  | { readonly state: "bad"; readonly reason: string }

interface ClientHelloReader {
  /** Takes the next bytes. A refusal is final and repeats; calling it again after `hello` is a bug and throws. */
  push(chunk: Buffer): ClientHelloStep
}

type Fields = Pick<ClientHello, "sni" | "sniIssue" | "alpn" | "ech">

class Malformed extends Error {}

const recordHeader = 5
const maxRecord = 16_384
const handshake = 22
const clientHello = 1
const serverName = 0
const alpnExtension = 16
/** the encrypted hello as published, its drafts 8 to 12, and the older encrypted server name */
const isEncryptedHello = (type: number): boolean => (type >= 0xfe08 && type <= 0xfe0d) || type === 0xffce

export function createClientHelloReader(options: { readonly maxBytes: number }): ClientHelloReader {
  const { maxBytes } = options
  if (!Number.isSafeInteger(maxBytes) || maxBytes < recordHeader) throw new RangeError("maxBytes is too small")
  const all = new Growing(maxBytes)
  /** where the next unread record starts */
  let at = 0
  /** the handshake message without record headers */
  const message = new Growing(maxBytes)
  /** 4 + its own length field, known once four bytes are there */
  let messageNeeds: number | undefined
  let ended: ClientHelloStep | undefined

  const step = (): ClientHelloStep => {
    const { size } = all
    const held = all.bytes
    const end = Math.min(size, maxBytes)
    for (;;) {
      const header = checkRecordHeader(held.subarray(at, Math.min(end, at + recordHeader)), at === 0)
      if (header.state !== "record") {
        if (header.state !== "more") return header
        break
      }
      const bodyStart = at + recordHeader
      if (message.size === 0 && bodyStart < end && held[bodyStart] !== clientHello) {
        return { state: "bad", reason: "the first handshake message is not a ClientHello" }
      }
      if (bodyStart + header.length > end) break
      message.add(held.subarray(bodyStart, bodyStart + header.length))
      at = bodyStart + header.length
      if (messageNeeds === undefined && message.size >= 4) {
        messageNeeds = 4 + message.bytes.readUIntBE(1, 3)
        if (messageNeeds > maxBytes) return { state: "bad", reason: "the ClientHello is larger than the cap" }
      }
      if (messageNeeds !== undefined && message.size > messageNeeds) {
        return { state: "bad", reason: "bytes follow the ClientHello in its own record" }
      }
      if (message.size === messageNeeds) {
        try {
          const fields = parseHello(message.bytes.subarray(4))
          return { state: "hello", ...fields, raw: Buffer.from(held) }
        } catch (error) {
          if (error instanceof Malformed) return { state: "bad", reason: error.message }
          throw error
        }
      }
    }
    return size >= maxBytes ? { state: "bad", reason: "no complete ClientHello within the cap" } : { state: "more" }
  }

  return {
    push(chunk) {
      if (ended !== undefined) {
        if (ended.state === "hello") throw new Error("the ClientHello was already read")
        return ended
      }
      all.add(chunk)
      const result = step()
      if (result.state !== "more") {
        ended = result
        all.clear()
        message.clear()
      }
      return result
    },
  }
}

/** Bytes put one after the other, in one piece of memory that grows with them. */
class Growing {
  readonly #usual: number
  #memory: Buffer = Buffer.alloc(0)
  size = 0
  /** @param usual it is not grown beyond this for what may still come */
  constructor(usual: number) {
    this.#usual = usual
  }
  get bytes(): Buffer {
    return this.#memory.subarray(0, this.size)
  }
  add(bytes: Buffer): void {
    const needed = this.size + bytes.length
    if (needed > this.#memory.length) {
      const grown = Buffer.alloc(Math.max(needed, Math.min(this.#memory.length * 2, this.#usual), 512))
      this.#memory.copy(grown, 0, 0, this.size)
      this.#memory = grown
    }
    bytes.copy(this.#memory, this.size)
    this.size = needed
  }
  clear(): void {
    this.#memory = Buffer.alloc(0)
    this.size = 0
  }
}

type RecordHeader =
  | { readonly state: "record"; readonly length: number }
  | Extract<ClientHelloStep, { state: "more" | "not-tls" | "bad" }>

/** Judges as many header bytes as are there, so that a foreign protocol is known from its first byte. */
function checkRecordHeader(header: Buffer, first: boolean): RecordHeader {
  const foreign = first ? "not-tls" : "bad"
  if (header.length > 0 && header[0] !== handshake) {
    return { state: foreign, reason: first ? "the first byte is not a TLS handshake" : "a record is not a handshake" }
  }
  if (header.length > 1 && header[1] !== 3) return { state: foreign, reason: "the record version is not TLS" }
  if (header.length > 2 && (header[2] as number) > 4) return { state: "bad", reason: "the record version is unknown" }
  if (header.length < recordHeader) return { state: "more" }
  const length = header.readUInt16BE(3)
  if (length === 0) return { state: "bad", reason: "a record is empty" }
  if (length > maxRecord) return { state: "bad", reason: "a record is longer than TLS allows" }
  return { state: "record", length }
}

/** A cursor whose every read is checked, so that a length can never lie. */
class Fields8 {
  readonly #bytes: Buffer
  #at = 0
  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }
  get left(): number {
    return this.#bytes.length - this.#at
  }
  take(length: number, what: string): Buffer {
    if (length > this.left) throw new Malformed(`${what} runs past its end`)
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }
  number(width: 1 | 2, what: string): number {
    return this.take(width, what).readUIntBE(0, width)
  }
  vector(width: 1 | 2, what: string): Fields8 {
    return new Fields8(this.take(this.number(width, what), what))
  }
  rest(): Buffer {
    return this.take(this.left, "the rest")
  }
}

function parseHello(body: Buffer): Fields {
  const hello = new Fields8(body)
  const version = hello.number(2, "the version")
  if (version < 0x0301 || version > 0x0303) throw new Malformed("the ClientHello version is not TLS 1.0 to 1.2")
  hello.take(32, "the random")
  if (hello.vector(1, "the session id").left > 32) throw new Malformed("the session id is too long")
  const suites = hello.vector(2, "the cipher suites").left
  if (suites < 2 || suites % 2 !== 0) throw new Malformed("the cipher suites do not add up")
  if (!hello.vector(1, "the compression methods").rest().includes(0)) throw new Malformed("null compression is missing")
  if (hello.left === 0) return { sni: undefined, sniIssue: "absent", alpn: [], ech: false }
  const extensions = hello.vector(2, "the extensions")
  if (hello.left > 0) throw new Malformed("bytes follow the extensions")

  const seen = new Set<number>()
  let name: Pick<Fields, "sni" | "sniIssue"> = { sni: undefined, sniIssue: "absent" }
  let alpn: readonly string[] = []
  let ech = false
  while (extensions.left > 0) {
    const type = extensions.number(2, "an extension")
    const data = extensions.vector(2, "an extension")
    if (seen.has(type)) throw new Malformed("an extension is repeated")
    seen.add(type)
    if (type === serverName) name = parseServerName(data)
    else if (type === alpnExtension) alpn = parseAlpn(data)
    else if (isEncryptedHello(type)) ech = true
  }
  return { ...name, alpn, ech }
}

function parseServerName(data: Fields8): Pick<Fields, "sni" | "sniIssue"> {
  if (data.left === 0) return { sni: undefined, sniIssue: "empty" }
  const list = data.vector(2, "the server name list")
  if (data.left > 0) throw new Malformed("bytes follow the server name list")
  if (list.left === 0) return { sni: undefined, sniIssue: "empty" }
  if (list.number(1, "a server name") !== 0) throw new Malformed("a server name is of an unknown type")
  const bytes = list.vector(2, "a server name").rest()
  if (list.left > 0) throw new Malformed("there is more than one server name")
  if (bytes.length === 0) return { sni: undefined, sniIssue: "empty" }
  if (bytes.length > 254) throw new Malformed("the server name is too long")
  const name = bytes.toString("latin1").toLowerCase()
  if (isIP(name) !== 0) return { sni: undefined, sniIssue: "address" }
  if (bytes.some((byte) => byte > 0x7f) || !/^[a-z0-9._-]+$/.test(name)) {
    throw new Malformed("the server name has a byte that no host name has")
  }
  const labels = (name.endsWith(".") ? name.slice(0, -1) : name).split(".")
  if (labels.some((label) => label.length === 0 || label.length > 63)) {
    throw new Malformed("the server name has an empty or too long label")
  }
  if (/^(?:[0-9]+|0x[0-9a-f]*)$/.test(labels.at(-1) as string)) return { sni: undefined, sniIssue: "address" }
  return { sni: name }
}

function parseAlpn(data: Fields8): readonly string[] {
  const list = data.vector(2, "the protocol list")
  if (data.left > 0) throw new Malformed("bytes follow the protocol list")
  if (list.left === 0) throw new Malformed("the protocol list is empty")
  const names: string[] = []
  while (list.left > 0) {
    const name = list.vector(1, "a protocol name").rest()
    if (name.length === 0) throw new Malformed("a protocol name is empty")
    names.push(name.toString("latin1"))
  }
  return names
}
