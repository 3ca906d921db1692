/**
 * `x-mcp-header`: arguments that a tool of the newer era wants repeated in headers of the request (SEP-2243).
 *
 * Guarantees: pure. A tool passes only where each such word names a header, on an argument of its own that is text, a whole
 * number or a truth value, under a name that no other has; one that stands anywhere else is refused with it. The client
 * itself leaves such tools out of a list, and says so on this process's own output in the server's words.
 */
import type { JsonObject, JsonValue } from "../../../manifest/types.ts"

const KEY = "x-mcp-header"
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/
const PRIMITIVE = new Set<JsonValue | undefined>(["string", "integer", "boolean"])

const isRecord = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const countOf = (value: JsonValue): number => {
  if (Array.isArray(value)) return (value as readonly JsonValue[]).reduce<number>((sum, each) => sum + countOf(each), 0)
  if (!isRecord(value)) return 0
  const own = Object.hasOwn(value, KEY) ? 1 : 0
  return Object.values(value).reduce<number>((sum, each) => sum + countOf(each), own)
}

/** The words that stand where they may. */
const fitting = (schema: JsonObject): readonly string[] => {
  const { properties } = schema
  if (!isRecord(properties)) return []
  return Object.values(properties).flatMap((property) => {
    if (!isRecord(property)) return []
    const word = property[KEY]
    const own = typeof word === "string" && TOKEN.test(word) && PRIMITIVE.has(property["type"]) ? [word] : []
    return [...own, ...fitting(property)]
  })
}

export const mirrorsWell = (inputSchema: JsonObject): boolean => {
  const words = fitting(inputSchema)
  return words.length === countOf(inputSchema) && new Set(words.map((word) => word.toLowerCase())).size === words.length
}
