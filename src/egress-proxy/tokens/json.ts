/**
 * The strings of a JSON text, each with the name of its member and its place, so that one can be put in the place of
 * another without touching the rest. Pure.
 *
 * Guarantees: only what `JSON.parse` takes is read; a member that is named twice in one object, which two readers could
 * see differently, is refused, and so is nesting beyond `deepest`. Names are told as `plainName` has them. The work is
 * linear in the text.
 */
export interface JsonString {
  /** of the member that it is, or that the list is which it stands in; "" at the top */
  readonly name: string
  /** names of the objects and lists around it, with a slash behind each */
  readonly within: string
  readonly value: string
  /** of the text with its quotes */
  readonly from: number
  readonly to: number
  /** objects and lists around it */
  readonly depth: number
}
export interface JsonNumber {
  readonly name: string
  readonly within: string
  readonly value: number
  readonly depth: number
}

type JsonRead =
  | { readonly ok: true; readonly strings: readonly JsonString[]; readonly numbers: readonly JsonNumber[] }
  | { readonly ok: false; readonly reason: string }

const deepest = 32

/** `refresh_token`, `refreshToken`, `Refresh-Token`: one name. */
export const plainName = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, "")

interface Frame {
  readonly list: boolean
  readonly within: string
  readonly keys: Set<string>
  /** the name that stands before a value of an object, or the list's own */
  name: string
  /** in an object: a name comes next */
  naming: boolean
}

export function jsonStrings(text: string): JsonRead {
  try {
    JSON.parse(text)
  } catch {
    return { ok: false, reason: "it is not JSON" }
  }
  const strings: JsonString[] = []
  const numbers: JsonNumber[] = []
  const frames: Frame[] = []
  // What is read is known to be JSON, so that its marks and texts are all there is to tell apart.
  const token = /[\s,:]*(?:([{[])|([}\]])|("(?:[^"\\]|\\[^])*")|([^\s,:{}[\]"]+))/y
  for (let found = token.exec(text); found !== null; found = token.exec(text)) {
    const [, opens, closes, quoted, bare] = found
    const top = frames.at(-1)
    if (opens !== undefined) {
      if (frames.length === deepest) return { ok: false, reason: "it is nested too deep" }
      const name = top?.name ?? ""
      if (top !== undefined && !top.list) top.naming = true
      const list = opens === "["
      const within = top === undefined ? "" : `${top.within}${name}/`
      frames.push({ list, within, keys: new Set(), name: list ? name : "", naming: !list })
    } else if (closes !== undefined) frames.pop()
    else if (quoted !== undefined) {
      const value = JSON.parse(quoted) as string
      if (top?.naming === true && !top.list) {
        if (top.keys.has(value)) return { ok: false, reason: "a member is named twice" }
        top.keys.add(value)
        top.name = plainName(value)
        top.naming = false
        continue
      }
      const to = token.lastIndex
      const [name, within] = [top?.name ?? "", top?.within ?? ""]
      strings.push({ name, within, value, from: to - quoted.length, to, depth: frames.length })
      if (top !== undefined && !top.list) top.naming = true
    } else if (bare !== undefined) {
      const value = Number(bare)
      if (Number.isFinite(value))
        numbers.push({ name: top?.name ?? "", within: top?.within ?? "", value, depth: frames.length })
      if (top !== undefined && !top.list) top.naming = true
    }
  }
  return { ok: true, strings, numbers }
}
