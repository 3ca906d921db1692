/**
 * What passes the proxy, kept in memory until the call is over.
 *
 * Guarantees: bounded; only whole exchanges come out, in the order in which they were asked; nothing that `redact.ts` knows
 * for a secret is in them. What cannot be kept is a fault, by name.
 */
import { leastSecret, tapeBodyBytes, tapeBytes, tapeExchanges, tapeFaults, tapeShown } from "./limits.ts"
import { digestOfBytes, isSecretName, plainBody, redactBody, redactHeader, scrubOf, sentDigest } from "./redact.ts"
import { addressOf, headerOf } from "./requests.ts"
import type { Recorder, Take, TapeExchange, TapeHeader, TapeRequest } from "./words.ts"

export const createFaults = (): { fault(what: string): void; faults(): readonly string[] } => {
  const told: string[] = []
  return {
    fault: (what) => {
      if (told.length < tapeFaults && !told.includes(what)) told.push(what)
    },
    faults: () => told,
  }
}

/** Of the connection, or of how the body came: the answer is framed anew. */
const ofTransport = new Set([
  "connection",
  "keep-alive",
  "transfer-encoding",
  "trailer",
  "upgrade",
  "content-length",
  "content-encoding",
  "alt-svc",
  "proxy-authenticate",
  "proxy-connection",
])

interface Kept {
  readonly request: TapeRequest
  readonly sent: Buffer[]
  readonly came: Buffer[]
  bytes: number
  status: number
  phrase: string
  headers: readonly TapeHeader[]
  whole: boolean
}

/** `secrets`: values that the call was given. */
export const createRecorder = (secrets: readonly string[]): Recorder => {
  const { fault, faults } = createFaults()
  const kept: Kept[] = []
  let total = 0
  let full = false

  const overflow = (what: string): void => {
    full = true
    fault(what)
    kept.length = 0
  }
  const grow = (each: Kept, list: Buffer[], bytes: Buffer): void => {
    if (full) return
    total += bytes.length
    each.bytes += bytes.length
    if (each.bytes > tapeBodyBytes)
      return overflow(`${each.request.method} ${each.request.target.host}: more than ${tapeBodyBytes} bytes passed`)
    if (total > tapeBytes) return overflow(`more than ${tapeBytes} bytes passed in all`)
    list.push(Buffer.from(bytes))
  }
  const take = (request: TapeRequest): Take => {
    const each: Kept = { request, sent: [], came: [], bytes: 0, status: 0, phrase: "", headers: [], whole: false }
    if (kept.length >= tapeExchanges) overflow(`more than ${tapeExchanges} requests were made`)
    if (!full) kept.push(each)
    return {
      sent: (bytes) => grow(each, each.sent, bytes),
      answered: (status, phrase, headers) => Object.assign(each, { status, phrase, headers }),
      came: (bytes) => grow(each, each.came, bytes),
      end: () => {
        each.whole = each.status > 0
      },
    }
  }

  const exchanges = (): readonly TapeExchange[] => {
    const whole = kept.filter((each) => each.whole)
    const given = scrubOf(secrets)
    const seen = new Set(secrets)
    const see = (value: string): void => {
      if (value.length >= leastSecret && value !== "redacted" && seen.size < 1_000) seen.add(value)
    }
    // First all that is secret by its place, then all of it wherever else it stands.
    const placed = whole.map((each) => {
      const { request } = each
      for (const [name, value] of request.headers) if (isSecretName(name)) redactHeader([name, value], see)
      const url = addressOf(request.target, request.path, given, see)
      const encoding = headerOf(each.headers, "content-encoding").trim().toLowerCase()
      const came = plainBody(Buffer.concat(each.came), request.method === "HEAD" ? "" : encoding)
      if (came === undefined)
        fault(`${url}: its content encoding ${encoding.slice(0, 40)} cannot be undone to look for secrets`)
      const type = headerOf(each.headers, "content-type").toLowerCase()
      const body = redactBody(came ?? Buffer.alloc(0), type, see)
      const headers = each.headers
        .filter(([name]) => !ofTransport.has(name.toLowerCase()))
        .map((header) => redactHeader(header, see))
      const length = headerOf(each.headers, "content-length")
      const bare: readonly TapeHeader[] = request.method === "HEAD" && length !== "" ? [["content-length", length]] : []
      return { each, url, came, body, headers: [...headers, ...bare] }
    })
    const scrub = scrubOf(seen)
    return placed.map(({ each, url, came, body, headers }): TapeExchange => {
      const { request, sent, status, phrase } = each
      const said = scrub.bytes(body)
      const range = headerOf(request.headers, "range")
      const asked = Buffer.concat(sent)
      const clean = headers.map(([name, value]): TapeHeader => [name, scrub.text(value)])
      const isSame = came !== undefined && digestOfBytes(came) === digestOfBytes(said)
      return {
        method: request.method,
        url: scrub.text(url),
        ...(range === "" ? {} : { range: range.slice(0, tapeShown) }),
        sent: { digest: sentDigest(asked, headerOf(request.headers, "content-type"), given), bytes: asked.length },
        status,
        phrase: scrub.text(phrase),
        headers: clean,
        body: said,
        redacted: !isSame || headers.some(([, value], at) => value !== clean[at]?.[1]),
      }
    })
  }
  return { mode: "record", take, fault, faults, exchanges }
}
