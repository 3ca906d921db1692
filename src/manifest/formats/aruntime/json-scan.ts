/**
 * Where each value of a JSON text stands, and what `JSON.parse` would pass over: keys that come twice.
 *
 * Guarantees: linear; bounded in depth and values; a text that passes is JSON (RFC 8259). Never throws.
 */
import { limits } from "../../limits.ts"
import { joinPath } from "../../values/diagnostics.ts"

interface Fault {
  readonly ok: false
  readonly line: number
  readonly column: number
  readonly message: string
  readonly rule?: string
  readonly path?: string
}
interface Scanned {
  readonly ok: true
  readonly keys: ReadonlySet<string>
  /** of each value, by its path: where it begins */
  readonly places: ReadonlyMap<string, number>
}

class Stop extends Error {
  readonly at: number
  readonly rule: string | undefined
  readonly path: string | undefined
  constructor(at: number, message: string, rule?: string, path?: string) {
    super(message)
    this.at = at
    this.rule = rule
    this.path = path
  }
}

const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*"/y
const OTHER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y
const BLANK = /[ \t\r\n]*/y

class Scanner {
  readonly #text: string
  #at = 0
  #values = 0
  readonly keys = new Set<string>()
  readonly places = new Map<string, number>()
  constructor(text: string) {
    this.#text = text
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    if (found !== undefined) this.#at += found.length
    return found
  }
  #is(char: string): boolean {
    this.#take(BLANK)
    if (this.#text[this.#at] !== char) return false
    this.#at += 1
    return true
  }
  #want(char: string): void {
    if (!this.#is(char)) throw new Stop(this.#at, `\`${char}\` is missing`)
  }

  whole(): void {
    this.#value("", 0)
    this.#take(BLANK)
    if (this.#at < this.#text.length) throw new Stop(this.#at, "something stands after the value")
  }

  #value(path: string, depth: number): void {
    this.#take(BLANK)
    this.#values += 1
    if (this.#values > limits.yamlNodes)
      throw new Stop(this.#at, `more than ${limits.yamlNodes} values`, "json-too-many")
    if (depth > limits.yamlDepth) throw new Stop(this.#at, `deeper than ${limits.yamlDepth} levels`, "json-too-deep")
    if (path.length < 512) this.places.set(path, this.#at)
    if (this.#is("{")) this.#object(path, depth)
    else if (this.#is("[")) this.#list(path, depth)
    else if (this.#take(STRING) === undefined && (this.#take(OTHER) ?? "") === "")
      throw new Stop(this.#at, "a value is missing or malformed")
  }

  #object(path: string, depth: number): void {
    const seen = new Set<string>()
    if (this.#is("}")) return
    do {
      this.#take(BLANK)
      const start = this.#at
      const written = this.#take(STRING)
      if (written === undefined) throw new Stop(this.#at, "a key is missing or malformed")
      const key = JSON.parse(written) as string
      const at = joinPath(path, key)
      if (seen.has(key)) throw new Stop(start, "the key appears twice", "json-duplicate-key", at)
      seen.add(key)
      this.keys.add(key)
      this.#want(":")
      this.#value(at, depth + 1)
    } while (this.#is(","))
    this.#want("}")
  }

  #list(path: string, depth: number): void {
    if (this.#is("]")) return
    let index = 0
    do this.#value(joinPath(path, index++), depth + 1)
    while (this.#is(","))
    this.#want("]")
  }
}

/** From 1 on. */
export const linePlace = (text: string, offset: number): { readonly line: number; readonly column: number } => {
  const before = text.slice(0, offset)
  const line = before.split("\n").length
  return { line, column: offset - before.lastIndexOf("\n") }
}

export const scanJson = (text: string): Fault | Scanned => {
  const scanner = new Scanner(text)
  try {
    scanner.whole()
    return { ok: true, keys: scanner.keys, places: scanner.places }
  } catch (error) {
    if (!(error instanceof Stop)) throw error
    const { rule, path } = error
    return {
      ok: false,
      ...linePlace(text, error.at),
      message: error.message,
      ...(rule === undefined ? {} : { rule }),
      ...(path === undefined ? {} : { path }),
    }
  }
}
