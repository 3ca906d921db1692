/**
 * Lists of a manifest with values added and removed, as text: everything else stays as its author wrote it.
 *
 * Guarantees: pure. A value is quoted where YAML would take it for more. A list that is not there, and cannot be put there
 * in one line, is not made: what was left out is told.
 */
import { isCollection, isMap, isNode, isScalar, parseDocument, stringify } from "yaml"

export interface ListEdit {
  readonly path: readonly string[]
  readonly add: readonly string[]
  readonly remove: readonly string[]
}

interface Amended {
  readonly text: string
  readonly left: readonly ListEdit[]
}

const OPEN = /^\uFEFF?---\r?\n/

const flow = (values: readonly string[]): string =>
  stringify(values, { collectionStyle: "flow", flowCollectionPadding: false, lineWidth: 0 }).trimEnd()

const spliced = (text: string, edit: ListEdit): string | undefined => {
  const start = OPEN.exec(text)?.[0].length
  if (start === undefined) return undefined
  const close = /^---[ \t]*\r?$/m.exec(text.slice(start))
  if (close === null) return undefined
  const document = parseDocument(text.slice(start, start + close.index), { version: "1.2", logLevel: "silent" })
  const node = document.getIn(edit.path, true)
  if (isNode(node) && isCollection(node) && !isMap(node) && node.range) {
    const before = node.items.map((item) => (isScalar(item) ? String(item.value) : undefined))
    if (before.includes(undefined)) return undefined
    const kept = (before as readonly string[]).filter((each) => !edit.remove.includes(each))
    const values = [...kept, ...edit.add.filter((each) => !kept.includes(each))]
    const [from, to] = [start + node.range[0], start + node.range[1]]
    const tail = /\s*$/.exec(text.slice(from, to))?.[0] ?? ""
    return text.slice(0, from) + flow(values) + tail + text.slice(to)
  }
  const [key] = edit.path
  if (node !== undefined || key === undefined || edit.path.length > 1 || edit.add.length === 0) return undefined
  const end = start + close.index
  return `${text.slice(0, end)}${key}: ${flow(edit.add)}\n${text.slice(end)}`
}

export const amend = (text: string, edits: readonly ListEdit[]): Amended => {
  const left: ListEdit[] = []
  let now = text
  for (const edit of edits) {
    if (edit.add.length === 0 && edit.remove.length === 0) continue
    const next = spliced(now, edit)
    if (next === undefined) left.push(edit)
    else now = next
  }
  return { text: now, left }
}
