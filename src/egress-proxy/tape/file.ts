/**
 * A recording as text: a line of JSON for what it is, then one for each exchange.
 *
 * Guarantees: what is read is judged as hostile input: sizes before contents, every field by its form, a body by its digest;
 * no header of it can frame a message or begin another. The same exchanges give the same text. Pure.
 */
import { isObject } from "../../manifest/values/fields.ts"
import { tapeBodyBytes, tapeBytes, tapeExchanges, tapeHeadBytes } from "./limits.ts"
import { digestOfBytes } from "./redact.ts"
import type { TapeExchange, TapeHeader } from "./words.ts"

const tapeVersion = 1

const isText = (body: Buffer): boolean => Buffer.from(body.toString("utf8")).equals(body) && !body.includes(0)

const lineOf = ({ method, url, range, sent, status, phrase, headers, body, redacted }: TapeExchange): string =>
  JSON.stringify({
    request: { method, url, ...(range === undefined ? {} : { range }), body: sent },
    response: {
      status,
      phrase,
      headers,
      body: {
        digest: digestOfBytes(body),
        bytes: body.length,
        ...(isText(body) ? { text: body.toString("utf8") } : { base64: body.toString("base64") }),
      },
      ...(redacted ? { redacted } : {}),
    },
  })

export const tapeText = (exchanges: readonly TapeExchange[]): string =>
  `${[JSON.stringify({ caisson_recording: tapeVersion, exchanges: exchanges.length }), ...exchanges.map(lineOf)].join("\n")}\n`

type Read<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly message: string }
const no = (message: string): { readonly ok: false; readonly message: string } => ({ ok: false, message })

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/
const line = /^[\t\u0020-\u007e\u0080-\u00ff]*$/
const address = /^https?:\/\/(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\]):[0-9]{1,5}\/[\u0021-\u007e\u0080-\u00ff]*$/
const digest = /^sha256:[0-9a-f]{64}$/
/** What a recorder never writes: it would frame the answer. */
const framing = /^(?:connection|transfer-encoding|upgrade|trailer|keep-alive|content-encoding|te|proxy-.*|alt-svc)$/i

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

const headersFrom = (value: unknown, method: string): readonly TapeHeader[] | undefined => {
  if (!Array.isArray(value) || value.length > 1_000) return undefined
  let size = 0
  for (const pair of value as readonly unknown[]) {
    if (!Array.isArray(pair) || pair.length !== 2) return undefined
    const [name, text] = pair as readonly unknown[]
    if (typeof name !== "string" || typeof text !== "string" || !token.test(name) || !line.test(text)) return undefined
    const isLength = name.toLowerCase() === "content-length"
    if (framing.test(name) || (isLength && (method !== "HEAD" || !/^[0-9]{1,15}$/.test(text)))) return undefined
    size += name.length + text.length
  }
  return size > tapeHeadBytes ? undefined : (value as unknown as readonly TapeHeader[])
}

const bodyFrom = (value: unknown): Buffer | undefined => {
  if (!isObject(value)) return undefined
  const { text, base64 } = value
  const bytes =
    typeof text === "string" && base64 === undefined
      ? Buffer.from(text)
      : typeof base64 === "string" && text === undefined && /^[A-Za-z0-9+/]*={0,2}$/.test(base64)
        ? Buffer.from(base64, "base64")
        : undefined
  if (bytes === undefined || bytes.length > tapeBodyBytes || bytes.length !== value["bytes"]) return undefined
  return digestOfBytes(bytes) === value["digest"] ? bytes : undefined
}

const exchangeFrom = (said: unknown): Read<TapeExchange> => {
  if (!isObject(said) || !isObject(said["request"]) || !isObject(said["response"])) return no("is no exchange")
  const { method, url, range, body: sent } = said["request"]
  const { status, phrase, headers, body, redacted } = said["response"]
  if (typeof method !== "string" || !/^[A-Z][A-Z-]{0,31}$/.test(method)) return no("has no method")
  if (typeof url !== "string" || url.length > tapeHeadBytes || !address.test(url)) return no("has no address")
  if (range !== undefined && (typeof range !== "string" || range.length > 1_000 || !line.test(range)))
    return no("has a range that is none")
  if (!isObject(sent) || typeof sent["digest"] !== "string" || !digest.test(sent["digest"]) || !isCount(sent["bytes"]))
    return no("does not tell what was sent")
  if (!isCount(status) || status < 200 || status > 599) return no("has no status from 200 to 599")
  if (typeof phrase !== "string" || phrase.length > 1_000 || !line.test(phrase)) return no("has no reason phrase")
  const named = headersFrom(headers, method)
  if (named === undefined) return no("has headers that frame a message or are none")
  const bytes = bodyFrom(body)
  if (bytes === undefined) return no("has a body that is not what its digest says")
  return {
    ok: true,
    value: {
      method,
      url,
      ...(range === undefined ? {} : { range }),
      sent: { digest: sent["digest"], bytes: sent["bytes"] },
      status,
      phrase,
      headers: named,
      body: bytes,
      redacted: redacted === true,
    },
  }
}

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

export const parseTape = (text: string): Read<readonly TapeExchange[]> => {
  if (text.length > 2 * tapeBytes) return no(`it holds more than ${2 * tapeBytes} characters`)
  const lines = text.split("\n")
  if (lines.at(-1) === "") lines.pop()
  const head = jsonOf(lines[0] ?? "")
  if (!isObject(head) || head["caisson_recording"] === undefined) return no("it is no recording of caisson's")
  if (head["caisson_recording"] !== tapeVersion)
    return no(`it is of another version than ${tapeVersion}: record it again`)
  if (head["exchanges"] !== lines.length - 1 || lines.length - 1 > tapeExchanges)
    return no("it does not hold as many exchanges as it says, or too many")
  const exchanges: TapeExchange[] = []
  for (const [at, each] of lines.slice(1).entries()) {
    const read = exchangeFrom(jsonOf(each))
    if (!read.ok) return no(`line ${at + 2} ${read.message}`)
    exchanges.push(read.value)
  }
  return { ok: true, value: exchanges }
}
