import { expect, it } from "vitest"
import { wholeInput } from "../../../src/host/invoke/whole-input.ts"
import type { JsonObject } from "../../../src/manifest/types.ts"

const inputs = {
  type: "object",
  $defs: { count: { type: "integer", default: 3 } },
  properties: {
    text: { type: "string" },
    path: { type: "string", default: "notes/new.txt" },
    count: { $ref: "#/$defs/count" },
    off: { type: "boolean", default: false },
  },
}
const whole = (input: JsonObject, more: object = {}): JsonObject =>
  wholeInput({ tool: { inputs }, binding: { implementation: { mapping: {}, dropInputs: [], ...more } }, input })

it("an input that was left out is the contract's default, whatever its type, and one that was given stays", () => {
  expect(whole({ text: "a" })).toEqual({ text: "a", path: "notes/new.txt", count: 3, off: false })
  expect(whole({ path: "x", count: 0, off: true })).toEqual({ path: "x", count: 0, off: true })
})

it("a default has the driver's name and form, and is left out where the driver does not take it", () => {
  expect(whole({}, { mapping: { file: { from: "path", transform: "uppercase" } }, dropInputs: ["off"] })).toEqual({
    file: "NOTES/NEW.TXT",
    count: 3,
  })
  expect(whole({ file: "given" }, { mapping: { file: { from: "path" } } })).toMatchObject({ file: "given" })
  expect(whole({}, { mapping: { count: { from: "count", transform: "uppercase" } } })).not.toHaveProperty("count")
})
