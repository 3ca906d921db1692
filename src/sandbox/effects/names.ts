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

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const isPlain = (path: string): boolean => {
  for (let i = 0; i < path.length; i++) {
    const code = path.charCodeAt(i)
    if (code >= 0x80 || code === 0x5c) return false
  }
  return true
}

export const displayName = (path: BytePath): string => {
  if (isPlain(path)) return path
  const bytes = toBuffer(path)
  let out = ""
  for (let at = 0; at < bytes.length; ) {
    const byte = bytes[at] ?? 0
    const length = byte < 0x80 ? 1 : byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
    const char = byte === 0x5c ? undefined : decode(bytes.subarray(at, at + length))
    out += char ?? `\\x${byte.toString(16).padStart(2, "0")}`
    at += char === undefined ? 1 : length
  }
  return out
}
const decode = (bytes: Buffer): string | undefined => {
  try {
    const text = utf8.decode(bytes)
    return Array.from(text).length === 1 ? text : undefined
  } catch {
    return undefined
  }
}

export const parseName = (text: string): BytePath => {
  const parts: Buffer[] = []
  for (const part of text.split(/(\\x[0-9a-f]{2})/)) {
    parts.push(part.startsWith("\\x") ? Buffer.from([Number.parseInt(part.slice(2), 16)]) : Buffer.from(part))
  }
  return fromBuffer(Buffer.concat(parts))
}

/** The path itself, where it is what `displayName` writes of a relative path whose parts are all plain names. */
export const parseRelative = (text: string): BytePath | undefined => {
  const path = parseName(text)
  const plain = path.split("/").every((part) => part !== "" && part !== "." && part !== ".." && !part.includes("\0"))
  return plain && displayName(path) === text ? path : undefined
}

/** Names that the host's own transactions may take, at any depth and in any spelling that a case-blind folder takes for them. */
export const isReserved = (path: string): boolean => /(^|\/)\.caisson-tx[^/]*(\/|$)/i.test(path)
