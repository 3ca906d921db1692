/**
 * Takes secret values out of what an upstream sends back, as it streams by, however it is cut.
 *
 * Guarantees: each occurrence is overwritten with asterisks of the same length, so that lengths that were announced
 * still hold: as it is (Latin-1, UTF-8 and UTF-16), in base64 of either alphabet and any alignment, percent-encoded, in hex, and
 * with the escapes of JSON and HTML. How many bytes are held back, fewer than the longest spelling and none from before
 * a newline, depends on where the newlines are and on nothing else: if what may become a secret were held and the rest
 * not, whoever has text of its choice sent back could tell by the waiting how a secret begins, sign after sign.
 * Assumes: no value has a newline, and so no spelling does; `prepareSubstitutions` sees to it.
 * Does not: see values shorter than `leastBytes`, other or nested encodings, compressed data (its caller undoes that), a
 * value spread over other bytes, or anything derived from one.
 */
import { Transform } from "node:stream"
import { needlesFor } from "./spellings.ts"

/** A shorter value would be found in everything. */
const leastBytes = 6

const asterisk = 0x2a
const newline = 0x0a
const nothing = /(?!)/

/** The byte strings that give a value away. */
export function spellingsOf(value: string): readonly Buffer[] {
  const found = new Set<string>()
  const add = (bytes: Buffer): void => void (bytes.length >= leastBytes && found.add(bytes.toString("latin1")))
  for (const bytes of [Buffer.from(value, "latin1"), Buffer.from(value, "utf8")]) {
    const text = bytes.toString("latin1")
    add(bytes)
    const hex = bytes.toString("hex")
    for (const spelled of [hex, hex.toUpperCase()]) add(Buffer.from(spelled))
    const escaped = (keep: RegExp, spell: (code: number) => string): string =>
      text.replace(/[^]/g, (sign) => (keep.test(sign) ? sign : spell(sign.charCodeAt(0))))
    const percent = (code: number): string => `%${code.toString(16).padStart(2, "0")}`
    for (const keep of [/[A-Za-z0-9_.~-]/, /[A-Za-z0-9_.!~*'()-]/, /[A-Za-z0-9]/, nothing]) {
      add(Buffer.from(escaped(keep, percent)))
      add(Buffer.from(escaped(keep, (code) => percent(code).toUpperCase())))
    }
  }
  for (const { bytes } of needlesFor(value)) add(bytes)
  const json = JSON.stringify(value).slice(1, -1)
  const unicode = (code: number): string => `\\u${code.toString(16).padStart(4, "0")}`
  const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" }
  for (const text of [
    json,
    json.replaceAll("/", "\\/"),
    value.replace(/[^]/g, (sign) => unicode(sign.charCodeAt(0))),
    value.replace(/[^]/g, (sign) => unicode(sign.charCodeAt(0)).toUpperCase().replace("\\U", "\\u")),
    json.replace(/[^ -~]/g, (sign) => unicode(sign.charCodeAt(0))),
    json.replace(/[<>&'=]/g, (sign) => unicode(sign.charCodeAt(0))),
    json.replace(/[<>&'=]/g, (sign) => unicode(sign.charCodeAt(0)).toUpperCase().replace("\\U", "\\u")),
    value.replace(/[&<>"]/g, (sign) => entities[sign] ?? sign),
    value.replace(/[&<>"']/g, (sign) => entities[sign] ?? "&#39;"),
    value.replace(/[&<>"']/g, (sign) => entities[sign] ?? "&#x27;"),
  ])
    add(Buffer.from(text, "utf8"))
  const wide = Buffer.from(value, "utf16le")
  add(wide)
  add(Buffer.from(wide).swap16())
  return [...found].map((text) => Buffer.from(text, "latin1"))
}

interface Scrubber {
  /** What can go on: all up to the last newline, and of what follows it all but the last few bytes. */
  push(chunk: Buffer): Buffer
  /** What was held back. */
  end(): Buffer
}

const empty = Buffer.alloc(0)

export function createScrubber(spellings: readonly Buffer[]): Scrubber {
  const most = spellings.reduce((longest, { length }) => Math.max(longest, length), 1) - 1
  let held: { readonly came: Buffer; readonly goes: Buffer } = { came: empty, goes: empty }
  return {
    push(chunk) {
      const came = held.came.length === 0 ? chunk : Buffer.concat([held.came, chunk])
      let goes: Buffer | undefined
      for (const spelling of spellings)
        for (let at = came.indexOf(spelling); at >= 0; at = came.indexOf(spelling, at + 1)) {
          goes ??= Buffer.concat([held.goes, chunk])
          goes.fill(asterisk, at, at + spelling.length)
        }
      goes ??= held.goes.length === 0 ? chunk : Buffer.concat([held.goes, chunk])
      const from = Math.max(came.length - most, came.lastIndexOf(newline) + 1)
      held = { came: Buffer.from(came.subarray(from)), goes: Buffer.from(goes.subarray(from)) }
      return goes.subarray(0, from)
    },
    end() {
      const { goes } = held
      held = { came: empty, goes: empty }
      return goes
    },
  }
}

export function scrubbed(text: string, spellings: readonly Buffer[]): string {
  const scrubber = createScrubber(spellings)
  const first = scrubber.push(Buffer.from(text, "latin1"))
  return Buffer.concat([first, scrubber.end()]).toString("latin1")
}

export function scrubStream(spellings: readonly Buffer[]): Transform {
  const scrubber = createScrubber(spellings)
  return new Transform({
    transform: (chunk: Buffer, _encoding, done) => done(null, scrubber.push(chunk)),
    flush: (done) => done(null, scrubber.end()),
  })
}
