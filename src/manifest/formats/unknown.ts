/** Fields that a format does not have: refused in strict mode, named in compat mode, never passed over. */
import type { JsonObject, JsonValue } from "../base-types.ts"
import { joinPath, nearest, shown } from "../values/diagnostics.ts"
import { isObject } from "../values/fields.ts"
import type { FieldRow, FormatContext } from "./format.ts"

interface Known {
  /** `*`: any; with nothing below it: whatever stands there */
  readonly below: Map<string, Known>
}

const treeOf = (rows: readonly FieldRow[]): Known => {
  const root: Known = { below: new Map() }
  for (const { field } of rows) {
    let at = root
    for (const name of field.replaceAll("[]", ".[]").split(".")) {
      const next: Known = at.below.get(name) ?? { below: new Map() }
      at.below.set(name, next)
      at = next
    }
  }
  return root
}

const visit = (value: JsonValue, known: Known, path: string, { report, mode }: FormatContext): void => {
  if (known.below.size === 0) return
  if (Array.isArray(value)) {
    const each = known.below.get("[]")
    if (each !== undefined)
      value.forEach((item: JsonValue, i) => visit(item, each, joinPath(path, i), { report, mode } as FormatContext))
    return
  }
  if (!isObject(value)) return
  for (const [key, item] of Object.entries(value)) {
    const next = known.below.get(key) ?? known.below.get("*")
    if (next !== undefined) {
      visit(item, next, joinPath(path, key), { report, mode } as FormatContext)
      continue
    }
    const near = nearest(key, [...known.below.keys()])
    const say = mode === "strict" ? report.error : report.lenient
    say(
      "unknown-key",
      joinPath(path, key),
      `\`${shown(key, 40)}\` is not a field of this format${mode === "strict" ? "" : " and is ignored"}`,
      near === undefined ? "remove it" : `did you mean \`${near}\`?`,
    )
  }
}

export const checkFields = (front: JsonObject, rows: readonly FieldRow[], context: FormatContext): void =>
  visit(front, treeOf(rows), "", context)
