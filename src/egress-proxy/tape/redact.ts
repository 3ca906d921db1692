/**
 * What of an exchange may be written down.
 *
 * Guarantees: values of headers, query parameters, JSON and form fields that are secrets by their name are replaced, on
 * recording and on looking up alike, so that both see the same; known values are overwritten wherever they stand, in the
 * spellings that `secrets/scrub.ts` knows. Pure.
 * Does not: know a secret that neither its place nor the vault tells.
 */
import { createHash } from "node:crypto"
import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib"
import { createScrubber, spellingsOf } from "../secrets/scrub.ts"
import { leastSecret, tapeBodyBytes } from "./limits.ts"
import type { TapeHeader } from "./words.ts"

const REDACTED = "redacted"
const secretName =
  /(?:^|[-_.])(?:authorization|cookie|token|tokens|secret|password|passwd|pwd|api[-_]?key|apikey|key|sig|signature|credential|credentials|session|sessionid|sid|jwt|auth|code|nonce|assertion)$|^x-amz-|access[-_]?token|refresh[-_]?token|id[-_]?token|client[-_]?secret/i
/** names that end in one of those words and are none */
const harmless = new Set(["content-security-policy", "x-content-key", "etag", "sec-websocket-key", "key"])

export const isSecretName = (name: string): boolean => secretName.test(name) && !harmless.has(name.toLowerCase())

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text.replaceAll("+", " "))
  } catch {
    return text
  }
}

/** Each `name=value` of a query or a form; the value of a secret name is told to `seen`. */
const fields = (text: string, seen: (value: string) => void): string =>
  text
    .split("&")
    .map((field) => {
      const at = field.indexOf("=")
      if (at < 0 || !isSecretName(decoded(field.slice(0, at)))) return field
      seen(field.slice(at + 1))
      seen(decoded(field.slice(at + 1)))
      return `${field.slice(0, at)}=${REDACTED}`
    })
    .join("&")

export const redactPath = (path: string, seen: (value: string) => void): string => {
  const at = path.indexOf("?")
  return at < 0 ? path : `${path.slice(0, at)}?${fields(path.slice(at + 1), seen)}`
}

/** An address in a header, as `Location` has it: without credentials, and with its query looked at. */
const redactAddress = (value: string, seen: (value: string) => void): string => {
  const bare = value.replace(/^([a-z][a-z0-9+.-]*:\/\/)([^/?#@]*)@/i, (_, scheme: string, user: string) => {
    for (const part of user.split(":")) seen(decoded(part))
    return scheme
  })
  return bare
    .split("#")
    .map((part) => redactPath(part, seen))
    .join("#")
}

const cookieValues = (value: string): readonly string[] =>
  value.split(";").map((pair) => pair.slice(pair.indexOf("=") + 1).trim())

/** The values in a header that is a secret by its name. */
const valuesIn = (name: string, value: string): readonly string[] => {
  if (/cookie$/i.test(name))
    return name.toLowerCase() === "set-cookie" ? cookieValues(value).slice(0, 1) : cookieValues(value)
  const bare = value.replace(/^[A-Za-z][A-Za-z0-9-]* +/, "").trim()
  if (!/^basic /i.test(value)) return [bare, value]
  const pair = Buffer.from(bare, "base64").toString("utf8")
  return [bare, pair.slice(pair.indexOf(":") + 1)]
}

export const redactHeader = ([name, value]: TapeHeader, seen: (value: string) => void): TapeHeader => {
  const lower = name.toLowerCase()
  if (lower === "location" || lower === "content-location" || lower === "refresh" || lower === "link")
    return [name, redactAddress(value, seen)]
  if (!isSecretName(lower)) return [name, value]
  for (const each of valuesIn(lower, value)) seen(each)
  if (lower !== "set-cookie") return [name, REDACTED]
  return [name, value.replace(/^([^=;]*)=[^;]*/, `$1=${REDACTED}`)]
}

const jsonField =
  /("((?:[A-Za-z0-9_.-]{0,40}[-_])?(?:access_?token|refresh_?token|id_?token|session_?token|auth_?token|client_?secret|private_?key|api_?key|password|secret|token|assertion|jwt))"\s*:\s*")((?:[^"\\]|\\.){8,}?)(")/gi

/** `^1.2.0 || ^2.0.0` of a package by the name of token is none. */
const looksSecret = (name: string, value: string): boolean =>
  !/\s/.test(value) &&
  (/_|[a-z][A-Z]/.test(name) || (value.length >= 16 && !/^[\^~<>=v]?\d+\./.test(value) && !/^[a-z]+:/.test(value)))

const redactText = (text: string, type: string, seen: (value: string) => void): string => {
  if (type.includes("x-www-form-urlencoded")) return fields(text, seen)
  if (!type.includes("json") && !type.includes("javascript")) return text
  return text.replace(jsonField, (whole, head: string, name: string, value: string, tail: string) => {
    if (!looksSecret(name, value)) return whole
    seen(value)
    return `${head}${REDACTED}${tail}`
  })
}

/** A body by what its type says that it is; bytes of other types pass. */
export const redactBody = (body: Buffer, type: string, seen: (value: string) => void): Buffer => {
  if (!/json|javascript|x-www-form-urlencoded/.test(type)) return body
  const text = body.toString("latin1")
  const left = redactText(text, type, seen)
  return left === text ? body : Buffer.from(left, "latin1")
}

/** Text and bytes without these values, however they are spelled. */
export interface Scrub {
  text(said: string): string
  bytes(body: Buffer): Buffer
}
export const scrubOf = (values: Iterable<string>): Scrub => {
  const spellings = [...values].filter((value) => value.length >= leastSecret).flatMap(spellingsOf)
  const bytes = (body: Buffer): Buffer => {
    if (spellings.every((spelling) => !body.includes(spelling))) return body
    const scrubber = createScrubber(spellings)
    const first = scrubber.push(Buffer.from(body))
    return Buffer.concat([first, scrubber.end()])
  }
  return { bytes, text: (said) => bytes(Buffer.from(said, "latin1")).toString("latin1") }
}

/** A body as it was before it was compressed; undefined where nothing here can undo that. */
export const plainBody = (body: Buffer, encoding: string): Buffer | undefined => {
  const bounded = { maxOutputLength: tapeBodyBytes }
  try {
    if (encoding === "" || encoding === "identity" || body.length === 0) return body
    if (encoding === "gzip" || encoding === "x-gzip") return gunzipSync(body, bounded)
    if (encoding === "deflate") return inflateSync(body, bounded)
    return encoding === "br" ? brotliDecompressSync(body, bounded) : undefined
  } catch {
    return undefined
  }
}

const sha256 = (bytes: Buffer): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`
export const digestOfBytes = sha256

/** The boundary of a form with files is another one each time. */
const withoutBoundary = (body: Buffer, type: string): Buffer => {
  const boundary = /^multipart\/[^;]+;.*?boundary="?([^";,]{1,70})"?/i.exec(type)?.[1]
  if (boundary === undefined) return body
  return Buffer.from(body.toString("latin1").replaceAll(boundary, "boundary"), "latin1")
}

/** By what a sent body is known again: without what is secret in it, and what is chance. */
export const sentDigest = (body: Buffer, type: string, scrub: Scrub): string =>
  sha256(scrub.bytes(redactBody(withoutBoundary(body, type), type.toLowerCase(), () => undefined)))
