/**
 * Where in its file a field stands that a diagnostic names.
 *
 * Guarantees: line and column count from 1; where the field itself is missing, it is the nearest above it that is there.
 * Never throws; a text that cannot be read has the place that its parser named, and no other. Pure.
 */
import { linePlace, scanJson } from "../formats/aruntime/json-scan.ts"
import { writtenFile } from "../formats/format.ts"
import type { Diagnostic } from "../types.ts"
import type { ManifestBytes } from "./bounded.ts"
import { locatorOf } from "./locate.ts"

type Place = Pick<Required<Diagnostic>, "line" | "column">
type Find = (path: string) => Place | undefined

/** Shorter and shorter: the field, what it is in, and so on. */
const shortened = (path: string): readonly string[] => {
  const all = [path]
  for (let rest = path; rest !== ""; ) {
    rest = rest.replace(/(?:\.?[^.[\]]+|\[[^\]]*\])$/, (found) => (found === rest ? "" : ""))
    if (rest === all.at(-1)) break
    all.push(rest)
  }
  return all
}

const inJson = (text: string): Find => {
  const scanned = scanJson(text)
  return (path) => {
    if (!scanned.ok) return { line: scanned.line, column: scanned.column }
    for (const each of shortened(path)) {
      const offset = scanned.places.get(each)
      if (offset !== undefined) return linePlace(text, offset)
    }
    return undefined
  }
}

const NAMED = /\bat line (\d+), column (\d+)/

/** The diagnostics with their places; `bytesOf` gives what was read, of files that were. */
export const withPlaces = (
  diagnostics: readonly Diagnostic[],
  bytesOf: (file: string) => ManifestBytes | undefined,
): readonly Diagnostic[] => {
  const finders = new Map<string, Find>()
  const finderOf = (file: string): Find => {
    const known = finders.get(file)
    if (known !== undefined) return known
    const bytes = bytesOf(file)
    let find: Find = () => undefined
    try {
      if (bytes !== undefined && typeof bytes !== "string") {
        const text = Buffer.from(bytes).toString("utf8")
        find = file.endsWith(".json") ? inJson(text) : locatorOf(text)
      }
    } catch {
      // A text that no parser takes has no places.
    }
    finders.set(file, find)
    return find
  }
  return diagnostics.map((each) => {
    if (each.line !== undefined) return each
    const named = each.path === "" ? NAMED.exec(each.message) : null
    const file = writtenFile(each.file)
    if (named !== null) return { ...each, file, line: Number(named[1]), column: Number(named[2]) }
    return { ...each, file, ...finderOf(file)(each.path) }
  })
}
