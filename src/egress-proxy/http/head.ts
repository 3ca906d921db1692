/**
 * The bytes of an HTTP/1 request head → a `RequestHead`, by one strict grammar.
 *
 * Guarantees: lines end in CRLF and nothing else; three words in the request line, one space between; version 1.0
 * or 1.1; header names are tokens, values hold no control byte but tab; no folding. What another parser could read
 * differently is refused here, so what is forwarded is written from these values and never copied.
 * Does not: judge the target (`target.ts`) or the body's length (`framing.ts`).
 */
import type { Parsed } from "../policy/authority.ts"
import { everyRule, firstBroken, firstBrokenUnless, type Rule, type RulesOff } from "../policy/rules.ts"

export interface RequestHead {
  readonly method: string
  readonly target: string
  readonly version: "1.0" | "1.1"
  readonly headers: readonly Header[]
}
export type Header = readonly [name: string, value: string]

/** Rules on the raw text of a head (one character per byte), without its last empty line. */
export const headRules: readonly Rule<string>[] = [
  { name: "head.line-ends", code: "bad_request_line", broken: (head) => /(^|[^\r])\n|\r(?!\n)/.test(head) },
]

/** Rules on the request line. */
export const requestLineRules: readonly Rule<string>[] = [
  { name: "line.ascii", code: "non_ascii", broken: (line) => /[\u0080-\u00ff]/.test(line) },
  { name: "line.bytes", code: "bad_request_line", broken: (line) => /[^\u0020-\u007e\u0080-\u00ff]/.test(line) },
  {
    name: "line.version",
    code: "http_version",
    broken: (line) => / HTTP\/[0-9.]*$/.test(line) && !/ HTTP\/1\.[01]$/.test(line),
  },
  {
    name: "line.shape",
    code: "bad_request_line",
    broken: (line) => !/^[A-Z][A-Z-]{0,31} [^ ]+ HTTP\/[0-9.]+$/.test(line),
  },
]

/** Rules on one header line. A folded line starts with a blank, which no name does. */
export const headerRules: readonly Rule<string>[] = [
  { name: "header.name", code: "bad_header", broken: (line) => !/^[!#$%&'*+.^_`|~0-9A-Za-z-]+:/.test(line) },
  { name: "header.value", code: "bad_header", broken: (line) => /[^\t\u0020-\u007e\u0080-\u00ff]/.test(line) },
]

const plainLine = /^[A-Z]{3,7} [!-~]+ HTTP\/1\.[01]$/
const plainHeader = /^[A-Za-z0-9-]+:[\t -~]*$/

export function parseHead(bytes: Buffer, headerLines: number, off: RulesOff = everyRule): Parsed<RequestHead> {
  const text = bytes.toString("latin1")
  const whole = firstBroken(headRules, text, off)
  if (whole !== undefined) return { ok: false, code: whole }
  const [line = "", ...lines] = text.split(off.has("head.line-ends") ? /\r?\n/ : "\r\n")
  const first = firstBrokenUnless(plainLine, requestLineRules, line, off)
  if (first !== undefined) return { ok: false, code: first }
  if (lines.length > headerLines) return { ok: false, code: "head_too_large" }
  const headers: Header[] = []
  for (const header of lines) {
    const code = firstBrokenUnless(plainHeader, headerRules, header, off)
    if (code !== undefined) return { ok: false, code }
    const colon = header.indexOf(":")
    headers.push([header.slice(0, colon), trimmed(header, colon + 1)])
  }
  const [method = "", target = "", version = ""] = line.split(" ")
  return { ok: true, value: { method, target, version: version === "HTTP/1.0" ? "1.0" : "1.1", headers } }
}

const isBlank = (code: number): boolean => code === 32 || code === 9

/** The rest of a line without blanks around it, in one pass. */
function trimmed(line: string, from: number): string {
  let [start, end] = [from, line.length]
  while (start < end && isBlank(line.charCodeAt(start))) start += 1
  while (end > start && isBlank(line.charCodeAt(end - 1))) end -= 1
  return line.slice(start, end)
}

export type HeadScan =
  | { readonly state: "more" }
  | { readonly state: "head"; readonly head: Buffer; readonly rest: Buffer }
  /** what came so far can never become a head */
  | { readonly state: "bad"; readonly code: "bad_request_line" | "head_too_large" }

interface HeadScanner {
  push(chunk: Buffer): HeadScan
}

const empty = Buffer.alloc(0)

/** Finds the end of a head in bytes as they arrive, looking at each once, and refuses early what cannot become one. */
export function createHeadScanner(headBytes: number): HeadScanner {
  let held: Buffer = empty
  let size = 0
  let lineSeen = false
  const keep = (chunk: Buffer): void => {
    if (size === 0) held = chunk
    else {
      if (size + chunk.length > held.length) {
        const needed = size + chunk.length
        // What goes on for longer than a head may is refused before it is kept for long.
        const grown = Buffer.allocUnsafe(Math.max(needed, Math.min(Math.max(needed * 2, 1_024), headBytes + 4)))
        held.copy(grown, 0, 0, size)
        held = grown
      }
      chunk.copy(held, size)
    }
    size += chunk.length
  }
  const bad = { state: "bad", code: "bad_request_line" } as const
  return {
    push(chunk) {
      const from = Math.max(0, size - 3)
      keep(chunk)
      const bytes = held.subarray(0, size)
      const end = bytes.indexOf("\r\n\r\n", from)
      if (end > headBytes || (end < 0 && size > headBytes)) return { state: "bad", code: "head_too_large" }
      if (end >= 0) return { state: "head", head: bytes.subarray(0, end), rest: bytes.subarray(end + 4) }
      const first = bytes[0] ?? 0x41
      if (first < 0x41 || first > 0x5a) return bad
      for (let at = bytes.indexOf(10, from); at >= 0; at = bytes.indexOf(10, at + 1))
        if (bytes[at - 1] !== 13) return bad
      const line = lineSeen ? -1 : bytes.indexOf(13)
      if (line < 0) return { state: "more" }
      lineSeen = true
      return / HTTP\/[0-9.]+$/.test(bytes.toString("latin1", 0, line)) ? { state: "more" } : bad
    },
  }
}

/** The values of all headers of this name, which is given in lower case. */
export function valuesOf(head: RequestHead, name: string): readonly string[] {
  let values: string[] | undefined
  for (const [key, value] of head.headers) {
    if (key.length !== name.length || key.toLowerCase() !== name) continue
    if (values === undefined) values = [value]
    else values.push(value)
  }
  return values ?? none
}

const none: readonly string[] = []
