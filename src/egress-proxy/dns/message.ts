/**
 * DNS messages as the sandbox's resolver speaks them (RFC 1035, EDNS0 of RFC 6891): strict in, small out.
 *
 * Guarantees: a query is one question of class IN or another, without compression, with lengths that add up and
 * nothing after it but one EDNS record; anything else is answered FORMERR (NOTIMP for another opcode, BADVERS for
 * another EDNS version) or, where there is no header to answer or the message is itself an answer, not at all, so
 * that two responders can never talk to each other. `name` is lower case without a trailing dot, and undefined where
 * a byte is none of a host name's: such a name is never declared. The question is echoed byte for byte, so that
 * clients which vary the case of a name recognise it.
 * A declared name has an A record and nothing else: every other type is an empty success, so that `getaddrinfo` and
 * clients that race IPv6 move on at once. An undeclared name is NXDOMAIN.
 *
 * Does not: recurse, cache, or compress; no answer exceeds 512 bytes, so truncation never occurs. `dns-packet` is no
 * choice here: it reads a dot inside a label as one between labels, and takes what stands behind the message.
 */

export interface DnsQuery {
  readonly id: number
  /** canonical host name, or undefined where the question is for no host name */
  readonly name: string | undefined
  /** the name for a log: printable ASCII, other bytes as `\ddd` */
  readonly display: string
  readonly type: number
  readonly class: number
  readonly recursionDesired: boolean
  readonly edns: boolean
  /** the question section as sent */
  readonly question: Buffer
}

type ParsedQuery =
  | { readonly ok: true; readonly query: DnsQuery }
  /** `reply` undefined: say nothing */
  | { readonly ok: false; readonly reason: string; readonly reply: Buffer | undefined }

type DnsOutcome =
  | { readonly kind: "declared"; readonly address: string; readonly ttlSeconds?: number }
  | { readonly kind: "undeclared" }
  /** the responder itself cannot answer: SERVFAIL, not a verdict */
  | { readonly kind: "failure" }

export const dnsTypes = Object.freeze({ a: 1, ptr: 12, aaaa: 28, opt: 41, svcb: 64, https: 65, any: 255 })
const dnsCodes = Object.freeze({ ok: 0, formErr: 1, servFail: 2, nxDomain: 3, notImp: 4, refused: 5 })

const headerSize = 12
const classIn = 1
const badVersion = 16
const defaultTtlSeconds = 5

export function parseQuery(message: Buffer): ParsedQuery {
  if (message.length < headerSize) return { ok: false, reason: "shorter than a header", reply: undefined }
  const id = message.readUInt16BE(0)
  const flags = message.readUInt16BE(2)
  if ((flags & 0x8000) !== 0) return { ok: false, reason: "a response, not a query", reply: undefined }
  const recursionDesired = (flags & 0x0100) !== 0
  const no = (reason: string, code: number): ParsedQuery => ({
    ok: false,
    reason,
    reply: header(id, flags & 0x7900, code, 0, 0, 0),
  })
  if ((flags & 0x7800) !== 0) return no("the opcode is not QUERY", dnsCodes.notImp)
  if ((flags & 0x0200) !== 0) return no("the query is truncated", dnsCodes.formErr)
  if (message.readUInt16BE(4) !== 1) return no("there is not exactly one question", dnsCodes.formErr)
  if (message.readUInt16BE(6) !== 0 || message.readUInt16BE(8) !== 0) {
    return no("a query carries no answers", dnsCodes.formErr)
  }
  const additional = message.readUInt16BE(10)
  if (additional > 1) return no("more than one additional record", dnsCodes.formErr)

  const name = readName(message, headerSize)
  if (name === undefined) return no("the name is malformed", dnsCodes.formErr)
  const questionEnd = name.end + 4
  if (questionEnd > message.length) return no("the question is cut off", dnsCodes.formErr)
  const query: DnsQuery = {
    id,
    ...spell(name.labels),
    type: message.readUInt16BE(name.end),
    class: message.readUInt16BE(name.end + 2),
    recursionDesired,
    edns: additional === 1,
    question: Buffer.from(message.subarray(headerSize, questionEnd)),
  }
  if (additional === 0) {
    if (questionEnd !== message.length) return no("bytes follow the question", dnsCodes.formErr)
    return { ok: true, query }
  }
  const edns = readEdns(message, questionEnd)
  if (edns === undefined) return no("the additional record is not EDNS", dnsCodes.formErr)
  if (edns.version !== 0) {
    return { ok: false, reason: "the EDNS version is unknown", reply: respond(query, badVersion, undefined) }
  }
  return { ok: true, query }
}

/** The whole response to a query that `parseQuery` took. */
export function answer(query: DnsQuery, outcome: DnsOutcome): Buffer {
  if (query.class !== classIn && query.class !== 255) return respond(query, dnsCodes.refused, undefined)
  if (outcome.kind === "failure") return respond(query, dnsCodes.servFail, undefined)
  if (outcome.kind === "undeclared") return respond(query, dnsCodes.nxDomain, undefined)
  if (query.type !== dnsTypes.a && query.type !== dnsTypes.any) return respond(query, dnsCodes.ok, undefined)
  const octets = outcome.address.split(".").map(Number)
  if (octets.length !== 4 || octets.some((octet) => !Number.isInteger(octet) || octet < 0 || octet > 255)) {
    throw new TypeError("an A record holds an IPv4 address")
  }
  const record = Buffer.alloc(16)
  record.writeUInt16BE(0xc000 | headerSize, 0)
  record.writeUInt16BE(dnsTypes.a, 2)
  record.writeUInt16BE(classIn, 4)
  record.writeUInt32BE(outcome.ttlSeconds ?? defaultTtlSeconds, 6)
  record.writeUInt16BE(4, 10)
  record.set(octets, 12)
  return respond(query, dnsCodes.ok, record)
}

function respond(query: DnsQuery, code: number, record: Buffer | undefined): Buffer {
  // Authoritative and "recursion available": Go takes an empty answer without either for a lame referral.
  const flags = 0x0480 | (query.recursionDesired ? 0x0100 : 0)
  const parts = [
    header(query.id, flags, code & 0xf, 1, record === undefined ? 0 : 1, query.edns ? 1 : 0),
    query.question,
  ]
  if (record !== undefined) parts.push(record)
  if (query.edns) parts.push(Buffer.from([0, 0, dnsTypes.opt, 0x04, 0xd0, code >> 4, 0, 0, 0, 0, 0]))
  return Buffer.concat(parts)
}

function header(id: number, flags: number, code: number, questions: number, answers: number, extra: number): Buffer {
  const bytes = Buffer.alloc(headerSize)
  bytes.writeUInt16BE(id, 0)
  bytes.writeUInt16BE(0x8000 | flags | code, 2)
  bytes.writeUInt16BE(questions, 4)
  bytes.writeUInt16BE(answers, 6)
  bytes.writeUInt16BE(extra, 10)
  return bytes
}

function readName(message: Buffer, start: number): { labels: readonly Buffer[]; end: number } | undefined {
  const labels: Buffer[] = []
  for (let at = start; ; ) {
    const length = message[at]
    // The two high bits mark compression or a reserved form; neither belongs in a question.
    if (length === undefined || length > 63) return undefined
    at += 1
    if (at + length - start > 255) return undefined
    if (length === 0) return { labels, end: at }
    if (at + length > message.length) return undefined
    labels.push(message.subarray(at, at + length))
    at += length
  }
}

function spell(labels: readonly Buffer[]): Pick<DnsQuery, "name" | "display"> {
  const texts = labels.map((label) => label.toString("latin1"))
  const isHost = texts.length > 0 && texts.every((text) => /^[A-Za-z0-9_-]+$/.test(text))
  const display = texts.map((text) =>
    text.replace(/[^A-Za-z0-9_-]/g, (byte) => `\\${String(byte.charCodeAt(0)).padStart(3, "0")}`),
  )
  const joined = display.join(".").toLowerCase()
  return { name: isHost && joined.length <= 253 ? joined : undefined, display: joined === "" ? "." : joined }
}

function readEdns(message: Buffer, at: number): { readonly version: number } | undefined {
  const fixed = 11
  if (at + fixed > message.length || message[at] !== 0) return undefined
  if (message.readUInt16BE(at + 1) !== dnsTypes.opt) return undefined
  const end = at + fixed + message.readUInt16BE(at + 9)
  if (end !== message.length) return undefined
  let option = at + fixed
  while (option < end) {
    if (option + 4 > end) return undefined
    option += 4 + message.readUInt16BE(option + 2)
  }
  return option === end ? { version: message[at + 6] as number } : undefined
}
