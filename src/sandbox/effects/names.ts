/**
 * File names as bytes, and the lossless text they are reported in.
 *
 * Guarantees: `parseName(displayName(x)) === x` for every byte string; text that is UTF-8 and holds no backslash is
 * reported as it is, everything else as `\xHH`. A `BytePath` holds one byte per character, so that it can be joined,
 * compared and used as a key like any string.
 */
declare const bytePath: unique symbol
export type BytePath = string & { readonly [bytePath]: true }

export const ROOT = "" as BytePath

export const fromBuffer = (name: Buffer): BytePath => name.toString("latin1") as BytePath
export const toBuffer = (path: BytePath): Buffer => Buffer.from(path, "latin1")
/** What a native call takes for `const char *`; typed as the string that the wrappers ask for. */
export const toNative = (path: BytePath): string => Buffer.from(`${path}\0`, "latin1") as unknown as string
export const join = (parent: BytePath, name: BytePath): BytePath =>
  (parent === "" ? name : `${parent}/${name}`) as BytePath
export const parentOf = (path: BytePath): BytePath => path.slice(0, Math.max(0, path.lastIndexOf("/"))) as BytePath
export const baseOf = (path: BytePath): BytePath => path.slice(path.lastIndexOf("/") + 1) as BytePath
/** Absolute path of a name below an absolute host folder. */
export const below = (dir: string, path: BytePath): Buffer =>
  path === "" ? Buffer.from(dir) : Buffer.concat([Buffer.from(`${dir}/`), toBuffer(path)])

const isPlain = (path: string): boolean => {
  for (let i = 0; i < path.length; i++) {
    const code = path.charCodeAt(i)
    if (code >= 0x80 || code === 0x5c) return false
  }
  return true
}

const within = (byte: number | undefined, low: number, high: number): boolean =>
  byte !== undefined && byte >= low && byte <= high

/** Bytes of the well-formed UTF-8 sequence that begins here; 0 where none does. */
const sequenceAt = (bytes: Buffer, at: number): number => {
  const lead = bytes[at] ?? 0
  const tail = (count: number): boolean => {
    for (let i = 2; i <= count; i++) if (!within(bytes[at + i], 0x80, 0xbf)) return false
    return true
  }
  if (lead < 0x80) return 1
  if (lead < 0xc2 || lead > 0xf4) return 0
  if (lead < 0xe0) return within(bytes[at + 1], 0x80, 0xbf) ? 2 : 0
  if (lead < 0xf0)
    return within(bytes[at + 1], lead === 0xe0 ? 0xa0 : 0x80, lead === 0xed ? 0x9f : 0xbf) && tail(2) ? 3 : 0
  return within(bytes[at + 1], lead === 0xf0 ? 0x90 : 0x80, lead === 0xf4 ? 0x8f : 0xbf) && tail(3) ? 4 : 0
}

const ESCAPES = Array.from({ length: 256 }, (_, byte) => `\\x${byte.toString(16).padStart(2, "0")}`)

/** One pass over the bytes, whatever they are. */
export const displayName = (path: BytePath): string => {
  if (isPlain(path)) return path
  const bytes = toBuffer(path)
  const parts: string[] = []
  let start = 0
  for (let at = 0; at < bytes.length; ) {
    const byte = bytes[at] ?? 0
    const length = byte === 0x5c ? 0 : sequenceAt(bytes, at)
    if (length === 0) {
      if (start < at) parts.push(bytes.toString("utf8", start, at))
      parts.push(ESCAPES[byte] ?? "")
      start = at + 1
    }
    at += length === 0 ? 1 : length
  }
  if (start < bytes.length) parts.push(bytes.toString("utf8", start))
  return parts.join("")
}

const asBytes = (text: string): string => (isPlain(text) ? text : Buffer.from(text).toString("latin1"))

export const parseName = (text: string): BytePath => {
  if (!text.includes("\\")) return asBytes(text) as BytePath
  const parts: string[] = []
  let start = 0
  for (let at = text.indexOf("\\"); at >= 0; at = text.indexOf("\\", at + 1)) {
    if (!/^\\x[0-9a-f]{2}$/.test(text.slice(at, at + 4))) continue
    if (start < at) parts.push(asBytes(text.slice(start, at)))
    parts.push(String.fromCharCode(Number.parseInt(text.slice(at + 2, at + 4), 16)))
    start = at + 4
    at += 3
  }
  parts.push(asBytes(text.slice(start)))
  return parts.join("") as BytePath
}

/** The path itself, where it is what `displayName` writes of a relative path whose parts are all plain names. */
export const parseRelative = (text: string): BytePath | undefined => {
  const path = parseName(text)
  const plain = path.split("/").every((part) => part !== "" && part !== "." && part !== ".." && !part.includes("\0"))
  return plain && displayName(path) === text ? path : undefined
}

/** Names that the host's own transactions may take, at any depth and in any spelling that a case-blind folder takes for them. */
export const isReserved = (path: string): boolean => /(^|\/)\.caisson-tx[^/]*(\/|$)/i.test(path)
