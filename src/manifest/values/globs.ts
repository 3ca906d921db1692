/**
 * Workspace paths and the one glob grammar over them: of contracts, drivers, views, homes and judgements alike.
 *
 * Grammar: segments between `/`; `*` any run of characters within one segment, `**` alone in a segment any number of
 * segments; a trailing `/` means everything below; a leading `/` or `./` means the workspace root, which is the base
 * anyway; `/` alone is everything. Matching is case-sensitive, dotfiles match like any other name. `\xHH` is the byte
 * HH, as in reported paths, so that `\x2a` is a literal star; `?`, brackets, braces and `!`, which other languages know
 * as wildcards, are written so too.
 * Guarantees: `a/**` and `a/` match what lies below `a`, not `a` itself; time is linear in path × pattern (there are
 * no regular expressions to blow up); a value of either branded type was made by its parser.
 * Does not: touch a file system or resolve symlinks.
 */
declare const workspacePath: unique symbol
/** Relative, `/`-separated, no empty, `.` or `..` segment; bytes that are not UTF-8 are escaped. `""` is the root. */
export type WorkspacePath = string & { readonly [workspacePath]: true }

type Token = string | typeof STAR
const STAR = Symbol("*")
type Segment =
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "wild"; readonly tokens: readonly Token[] }
  | { readonly kind: "any-depth" }

export interface Glob {
  readonly text: string
  readonly segments: readonly Segment[]
}
type ParsedGlob = { readonly ok: true; readonly glob: Glob } | { readonly ok: false; readonly message: string }

/** wildcards of other languages */
const ELSEWHERE: ReadonlySet<string> = new Set(["?", "[", "]", "{", "}", "!"])
const MAX_GLOB_LENGTH = 1024
const MAX_GLOB_SEGMENTS = 64

export const parseWorkspacePath = (
  text: string,
): { ok: true; path: WorkspacePath } | { ok: false; message: string } => {
  if (text === "") return { ok: true, path: text as WorkspacePath }
  if (text.includes("\0")) return { ok: false, message: "a path cannot hold a NUL" }
  for (const segment of text.split("/")) {
    if (segment === "") return { ok: false, message: `"${text}" is not relative or has an empty segment` }
    if (segment === "." || segment === "..") return { ok: false, message: `"${text}" has a "${segment}" segment` }
  }
  return { ok: true, path: text as WorkspacePath }
}

export const parseGlob = (text: string): ParsedGlob => {
  const fail = (message: string): ParsedGlob => ({ ok: false, message })
  if (text === "") return fail("an empty pattern matches nothing; write / for everything")
  if (text.length > MAX_GLOB_LENGTH) return fail(`the pattern is longer than ${MAX_GLOB_LENGTH} characters`)
  if (text.includes("\0")) return fail("a pattern cannot hold a NUL")
  if (text === "~" || text.startsWith("~/")) return fail(`"${text}" is below the home folder, not in the workspace`)
  let rest = text.startsWith("./") ? text.slice(2) : text.startsWith("/") ? text.slice(1) : text
  if (rest === ".") rest = ""
  if (rest === "/") return fail(`"${text}" has an empty segment`)
  const subtree = rest === "" || rest.endsWith("/")
  if (rest.endsWith("/")) rest = rest.slice(0, -1)
  const segments: Segment[] = []
  for (const part of rest === "" ? [] : rest.split("/")) {
    const segment = parseSegment(part, text)
    if (typeof segment === "string") return fail(segment)
    if (segment.kind !== "any-depth" || segments.at(-1)?.kind !== "any-depth") segments.push(segment)
  }
  if (subtree && segments.at(-1)?.kind !== "any-depth") segments.push({ kind: "any-depth" })
  // What lies below: at least one more segment.
  if (segments.at(-1)?.kind === "any-depth") segments.push({ kind: "wild", tokens: [STAR] })
  if (segments.length > MAX_GLOB_SEGMENTS) return fail(`the pattern has more than ${MAX_GLOB_SEGMENTS} segments`)
  return { ok: true, glob: Object.freeze({ text, segments: Object.freeze(segments) }) }
}

/** The pattern that matches this path, as it is reported, and nothing else. */
export const exactGlob = (path: string): string =>
  `/${path.replace(/[*?[\]{}!]/g, (char) => `\\x${char.charCodeAt(0).toString(16)}`)}`

const parseSegment = (part: string, whole: string): Segment | string => {
  if (part === "") return `"${whole}" has an empty segment`
  if (part === "." || part === "..") return `"${whole}" has a "${part}" segment; name the path from the workspace root`
  if (part === "**") return { kind: "any-depth" }
  if (part.includes("**"))
    return `"**" stands alone between slashes: write "${part.replace(/\*\*+/, "**/*")}" in "${whole}"`
  const tokens: Token[] = []
  for (const char of characters(part)) {
    if (char === "*") tokens.push(STAR)
    else if (char === "\\") return `"${whole}" has a lone backslash; write \\x5c for one`
    else if (ELSEWHERE.has(char))
      return `"${whole}" has a "${char}", and only * and ** are wildcards; write \\x${char.charCodeAt(0).toString(16)} for the character itself`
    else tokens.push(canonicalCharacter(char))
  }
  const literal = tokens.every((token) => typeof token === "string")
  return literal ? { kind: "literal", text: tokens.join("") } : { kind: "wild", tokens }
}

const ESCAPE_LENGTH = 4
const BACKSLASH = 0x5c
/** Code points, an escaped byte counting as one. */
const characters = (text: string): string[] => {
  if (!text.includes("\\")) return Array.from(text)
  const out: string[] = []
  for (let at = 0; at < text.length; ) {
    const escape = text.charCodeAt(at) === BACKSLASH ? text.slice(at, at + ESCAPE_LENGTH) : ""
    const char = /^\\x[0-9a-fA-F]{2}$/.test(escape) ? escape : String.fromCodePoint(text.codePointAt(at) ?? 0)
    out.push(char)
    at += char.length
  }
  return out
}
/** An escape as a reported path spells it: ASCII other than the backslash is never escaped. */
const canonicalCharacter = (char: string): string => {
  if (char.length !== ESCAPE_LENGTH || !char.startsWith("\\x")) return char
  const byte = Number.parseInt(char.slice(2), 16)
  return byte < 0x80 && byte !== 0x5c ? String.fromCharCode(byte) : char.toLowerCase()
}

const wildMatches = (tokens: readonly Token[], text: string): boolean => {
  const chars = characters(text)
  let token = 0
  let char = 0
  let star = -1
  let retry = 0
  while (char < chars.length) {
    const expected = tokens[token]
    if (expected === STAR) {
      star = token++
      retry = char
    } else if (expected !== undefined && expected === chars[char]) {
      token++
      char++
    } else if (star >= 0) {
      token = star + 1
      char = ++retry
    } else return false
  }
  while (tokens[token] === STAR) token++
  return token === tokens.length
}

const split = (path: WorkspacePath): string[] => (path === "" ? [] : path.split("/"))

/** Is the path matched, or a folder above it? One walk, however deep the path is. */
export const matchesAbove = (glob: Glob, path: WorkspacePath): boolean => {
  let found = false
  const end = walk(glob, split(path), undefined, (states) => {
    found ||= states.has(glob.segments.length)
  })
  return found || end.has(glob.segments.length)
}

/** Pattern positions reachable after the path; `literalOnly[i]` forbids wildcards to take segment i. */
const walk = (
  glob: Glob,
  path: readonly string[],
  literalOnly?: readonly boolean[],
  onWay?: (states: ReadonlySet<number>) => void,
): Set<number> => {
  let states = new Set<number>()
  const enter = (into: Set<number>, position: number): void => {
    into.add(position)
    if (glob.segments[position]?.kind === "any-depth") into.add(position + 1)
  }
  enter(states, 0)
  for (const [index, name] of path.entries()) {
    const next = new Set<number>()
    const literal = literalOnly?.[index] === true
    for (const position of states) {
      const segment = glob.segments[position]
      if (segment === undefined) continue
      if (segment.kind === "literal") {
        if (segment.text === name) enter(next, position + 1)
      } else if (!literal) {
        if (segment.kind === "any-depth") enter(next, position)
        else if (wildMatches(segment.tokens, name)) enter(next, position + 1)
      }
    }
    if (next.size === 0) return next
    states = next
    onWay?.(states)
  }
  return states
}

export const matches = (glob: Glob, path: WorkspacePath, literalOnly?: readonly boolean[]): boolean =>
  walk(glob, split(path), literalOnly).has(glob.segments.length)

/** Is everything below this folder matched? May say no where the answer is yes by a roundabout pattern. */
export const coversTree = (glob: Glob, dir: WorkspacePath, literalOnly?: readonly boolean[]): boolean => {
  for (const position of walk(glob, split(dir), literalOnly)) {
    const rest = glob.segments.slice(position)
    const fixed = rest.filter((segment) => segment.kind !== "any-depth")
    const only = fixed[0]
    if (
      rest.length > fixed.length &&
      fixed.length === 1 &&
      only?.kind === "wild" &&
      only.tokens.every((token) => token === STAR)
    )
      return true
  }
  return false
}

/** Could anything below this folder be matched? */
export const mayMatchBelow = (glob: Glob, dir: WorkspacePath): boolean => {
  for (const position of walk(glob, split(dir))) if (position < glob.segments.length) return true
  return false
}

const segmentCovers = (wide: Segment, narrow: Segment): boolean => {
  if (narrow.kind === "any-depth" || wide.kind === "any-depth") return false
  if (narrow.kind === "literal")
    return wide.kind === "literal" ? wide.text === narrow.text : wildMatches(wide.tokens, narrow.text)
  if (wide.kind === "literal") return false
  if (wide.tokens.every((token) => token === STAR)) return true
  return wide.tokens.length === narrow.tokens.length && wide.tokens.every((token, at) => token === narrow.tokens[at])
}

/** Is every path that `narrow` matches matched by `wide`? May say no where the answer is yes by a roundabout pattern. */
export const covers = (wide: Glob, narrow: Glob): boolean => {
  // reach[j]: the segments of `wide` so far can cover the first j of `narrow`; one row a segment, so quadratic at worst
  let reach = [true, ...narrow.segments.map(() => false)]
  for (const segment of wide.segments) {
    const next = reach.map(() => false)
    for (const [at, other] of [undefined, ...narrow.segments].entries()) {
      if (segment.kind === "any-depth") next[at] = reach[at] === true || next[at - 1] === true
      else if (other !== undefined) next[at] = reach[at - 1] === true && segmentCovers(segment, other)
    }
    reach = next
  }
  return reach[narrow.segments.length] === true
}

/** The names that something matched below this folder can begin with: those listed, or any. */
export const namesBelow = (glob: Glob, dir: WorkspacePath): ReadonlySet<string> | "any" => {
  const names = new Set<string>()
  for (const position of walk(glob, split(dir))) {
    const segment = glob.segments[position]
    if (segment === undefined) continue
    if (segment.kind !== "literal") return "any"
    names.add(segment.text)
  }
  return names
}
