import { expect, it } from "vitest"
import { mirrorsWell } from "../../../../src/host/drivers/mcp/mirrored.ts"
import type { JsonObject } from "../../../../src/manifest/types.ts"

const header = (word: unknown, type = "string"): JsonObject => ({ type, "x-mcp-header": word }) as JsonObject
const schema = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({ type: "object", properties, ...more })

it.each<[string, JsonObject]>([
  ["no headers", schema({ a: { type: "string" } })],
  ["headers of primitive arguments", schema({ a: header("A"), b: header("B", "integer"), c: header("C", "boolean") })],
  ["one of an argument inside another", schema({ a: schema({ b: header("B") }) })],
])("a tool with %s is taken", (_what, given) => expect(mirrorsWell(given)).toBe(true))

it.each<[string, JsonObject]>([
  ["an empty name", schema({ a: header("") })],
  ["a name that is no text", schema({ a: header(1) })],
  ["a name with a blank", schema({ a: header("A B") })],
  ["a name with a line end", schema({ a: header("A\r\nX: y") })],
  ["a header of an object", schema({ a: header("A", "object") })],
  ["a header of a number", schema({ a: header("A", "number") })],
  ["one name for two, in another case", schema({ a: header("A"), b: header("a") })],
  ["one below a list", schema({ a: { type: "array", items: header("A") } })],
  ["one below a composition", schema({}, { anyOf: [schema({ a: header("A") })] })],
  ["one of the whole", { ...schema({}), "x-mcp-header": "A" }],
])("a tool with %s is not", (_what, given) => expect(mirrorsWell(given)).toBe(false))
