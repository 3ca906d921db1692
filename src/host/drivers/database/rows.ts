/**
 * Rows as they come over the wire → JSON, as the contract's output wants it. Pure.
 *
 * Guarantees: a number that JSON has no exact form for stays text; a column may have any name. An output that is an array
 * gets all rows, an object with `rows` gets them there, any other object is the first row.
 */
import type { JsonObject, JsonSchema, JsonValue } from "../../../manifest/types.ts"

const INTEGERS = new Set([20, 21, 23, 26])
const FLOATS = new Set([700, 701])
const BOOLEAN = 16
const JSONS = new Set([114, 3802])

/** By the type's number in PostgreSQL's own catalogue. */
export const valueOf = (type: number, text: string | null): JsonValue => {
  if (text === null) return null
  if (type === BOOLEAN) return text === "t"
  if (INTEGERS.has(type) || FLOATS.has(type)) {
    const number = Number(text)
    return Number.isFinite(number) && (FLOATS.has(type) || Number.isSafeInteger(number)) ? number : text
  }
  return JSONS.has(type) ? (JSON.parse(text) as JsonValue) : text
}

/** As the client gives it: exact decimals, times and far whole numbers are texts already; bytes become base64. */
export const mysqlValue = (value: unknown): JsonValue => {
  if (value === null || value === undefined) return null
  if (Buffer.isBuffer(value)) return value.toString("base64")
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value)
  if (typeof value === "string" || typeof value === "boolean") return value
  return typeof value === "object" ? (JSON.parse(JSON.stringify(value)) as JsonValue) : String(value as bigint)
}

export const shaped = (rows: readonly JsonObject[], outputs: JsonSchema): JsonValue => {
  if (outputs["type"] === "array") return rows
  const { properties } = outputs
  if (typeof properties === "object" && properties !== null && Object.hasOwn(properties, "rows"))
    return { rows, row_count: rows.length }
  return rows[0] ?? {}
}
