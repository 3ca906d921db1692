/**
 * Where in a manifest's text a field stands: `implements[0].version` → line and column, both from 1.
 *
 * Guarantees: pure; never throws for what a text holds. Of a field that is not there, the place of the nearest one above it
 * that is; of what cannot be read as YAML, the first line. Assumes: a text within the loader's limits.
 */
import type * as Yaml from "yaml"
import { onDemand } from "../schema/on-demand.ts"

const yaml = onDemand<typeof Yaml>("yaml")

interface Place {
  readonly line: number
  readonly column: number
}

/** `a["b c"][0].d` → a, b c, 0, d */
const partsOf = (path: string): readonly (string | number)[] =>
  [...path.matchAll(/\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|([^.[\]]+)/g)].map(([, index, quoted, plain]) =>
    index === undefined ? (quoted ?? plain ?? "") : Number(index),
  )

/** The offset of the key, or of the list's item, and what stands there. */
const step = (node: unknown, part: string | number): { readonly at: number; readonly value: unknown } | undefined => {
  const { isMap, isNode, isScalar, isSeq } = yaml()
  if (isSeq(node) && typeof part === "number") {
    const item = node.items[part]
    const start = isNode(item) ? item.range?.[0] : undefined
    return start === undefined ? undefined : { at: start, value: item }
  }
  if (!isMap(node)) return undefined
  const pair = node.items.find(({ key }) => (isScalar(key) ? String(key.value) : key) === String(part))
  const start = isScalar(pair?.key) ? pair.key.range?.[0] : undefined
  return start === undefined ? undefined : { at: start, value: pair?.value }
}

/** For many places in one text. */
export const locatorOf = (text: string): ((path: string) => Place) => {
  const open = /^\uFEFF?---\r?\n/.exec(text)
  const first = { line: 1, column: 1 }
  if (open === null) return () => first
  const start = open[0].length
  const close = /^---[ \t]*\r?$/m.exec(text.slice(start))
  const { LineCounter, parseDocument } = yaml()
  const lines = new LineCounter()
  try {
    const { contents } = parseDocument(text.slice(start, close === null ? undefined : start + close.index), {
      lineCounter: lines,
      version: "1.2",
      uniqueKeys: false,
      logLevel: "silent",
    })
    return (path) => {
      let node: unknown = contents
      let at: number | undefined
      for (const part of partsOf(path)) {
        const found = step(node, part)
        if (found === undefined) break
        node = found.value
        at = found.at
      }
      if (at === undefined) return first
      const { line, col } = lines.linePos(at)
      return { line: line + 1, column: col }
    }
  } catch {
    return () => first
  }
}
