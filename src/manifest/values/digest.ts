/**
 * Canonical JSON (JCS, RFC 8785) and the SHA-256 digest over it.
 *
 * Guarantees: two values that are equal as JSON give the same text, whatever the order in which their keys were
 * written; keys are ordered by UTF-16 code units; numbers are written as ECMAScript writes them.
 * Assumes: a value that JSON can carry. Anything else (NaN, Infinity, bigint, functions, lone surrogates, cycles,
 * class instances such as Date or Map) is a bug of the caller and throws, because a digest over a guess is worse
 * than none (the npm package `canonicalize` writes a Map as `{}`). Members whose value is `undefined` are left out, as
 * JSON.stringify does.
 */
import { createHash } from "node:crypto"

export type Digest = `sha256:${string}`

const MAX_DEPTH = 512

function text(value: string): string {
  if (!value.isWellFormed()) throw new TypeError("jcs: a string holds a lone surrogate")
  return JSON.stringify(value)
}

function write(value: unknown, depth: number): string {
  if (depth > MAX_DEPTH) throw new TypeError("jcs: nested too deeply, or a cycle")
  switch (typeof value) {
    case "string":
      return text(value)
    case "boolean":
      return value ? "true" : "false"
    case "number":
      if (!Number.isFinite(value)) throw new TypeError(`jcs: ${value} is not a JSON number`)
      return JSON.stringify(value)
    case "object":
      break
    default:
      throw new TypeError(`jcs: a ${typeof value} is not JSON`)
  }
  if (value === null) return "null"
  if (Array.isArray(value)) return `[${value.map((item) => write(item, depth + 1)).join(",")}]`
  const proto: unknown = Object.getPrototypeOf(value)
  if (proto !== Object.prototype && proto !== null) throw new TypeError("jcs: only plain objects are JSON")
  const members: string[] = []
  for (const key of Object.keys(value).sort()) {
    const member = (value as Record<string, unknown>)[key]
    if (member !== undefined) members.push(`${text(key)}:${write(member, depth + 1)}`)
  }
  return `{${members.join(",")}}`
}

/** The canonical text of a JSON value. */
export const jcs = (value: unknown): string => write(value, 0)

export const sha256 = (bytes: string | Uint8Array): Digest =>
  `sha256:${createHash("sha256").update(bytes).digest("hex")}`

/** `sha256:<hex>` over the canonical text. */
export const digestOf = (value: unknown): Digest => sha256(jcs(value))
