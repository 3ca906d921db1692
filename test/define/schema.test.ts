import { toStandardJsonSchema } from "@valibot/to-json-schema"
import fc from "fast-check"
import * as v from "valibot"
import { describe, expect, it } from "vitest"
import { z } from "zod"
import { defineTool, ManifestError } from "../../src/define/index.ts"
import { canonicalSchema } from "../../src/define/schema.ts"
import { compileSchema } from "../../src/manifest/schema/json-schema.ts"

const object = { type: "object", properties: { a: { type: "string" } }, required: ["a"] }
const tool = (inputSchema: unknown, outputSchema: unknown = {}): unknown =>
  defineTool({ id: "t.one", description: "d", inputSchema, outputSchema }).front["inputs"]

describe("a schema becomes JSON Schema", () => {
  it.each([
    ["JSON Schema, as it stands", object],
    ["JSON Schema that names our draft", { $schema: "https://json-schema.org/draft/2020-12/schema", ...object }],
    ["zod", z.object({ a: z.string() })],
    ["valibot, with its converter", toStandardJsonSchema(v.object({ a: v.string() }))],
  ])("from %s", (_, schema) => {
    expect(tool(schema)).toEqual(object)
  })

  it("as what may be given for inputs, and as what comes out for outputs", () => {
    const schema = z.object({ a: z.string().default("x") })
    const { front } = defineTool({ id: "t.one", description: "d", inputSchema: schema, outputSchema: schema })
    expect((front["inputs"] as { required?: unknown }).required).toBeUndefined()
    expect((front["outputs"] as { required?: unknown }).required).toEqual(["a"])
  })

  it("that accepts and refuses what the library does, where JSON can say it", () => {
    const library = z.object({
      name: z.string().min(2).max(5),
      size: z.number().int().min(0).optional(),
      kind: z.enum(["a", "b"]),
      list: z.array(z.union([z.string(), z.boolean()])).max(2),
    })
    const made = canonicalSchema(library, "input")
    const compiled = compileSchema(made.ok ? made.schema : {})
    if (!compiled.ok) throw new Error(compiled.message)
    const value = fc.record(
      {
        name: fc.string({ maxLength: 7 }),
        size: fc.oneof(fc.integer({ min: -2, max: 3 }), fc.constant(0.5)),
        kind: fc.constantFrom("a", "b", "c"),
        list: fc.array(fc.oneof(fc.string(), fc.boolean(), fc.integer()), { maxLength: 3 }),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(value, (each) => {
        expect(compiled.validate(each).ok).toBe(library.safeParse(each).success)
      }),
    )
  })
})

describe("a schema is refused, with what to do about it,", () => {
  class Odd {}
  it.each([
    ["of a library without a converter", v.object({ a: v.string() }), /valibot.*toStandardJsonSchema/],
    [
      "of an unknown library",
      { "~standard": { version: 1, vendor: "odd", validate: () => ({}) } },
      /`odd`.*JSON Schema/,
    ],
    ["with a date", z.object({ at: z.date() }), /Date cannot be represented.*types that JSON has/],
    ["whose output is computed", z.string().transform(Number), /Transforms cannot be represented/],
    ["that is a function", () => true, /a function is no schema/],
    ["that is an instance of a class", new Odd(), /no Standard Schema/],
    ["that is text", "string", /JSON Schema object/],
    ["that is a list", [], /JSON Schema object/],
    [
      "whose converter gives no object",
      { "~standard": { vendor: "odd", jsonSchema: { output: () => 7 } } },
      /gave no JSON Schema/,
    ],
    ["of another draft", { $schema: "http://json-schema.org/draft-04/schema#", type: "object" }, /\$schema|draft/],
  ])("%s", (_, schema, message) => {
    expect(() => defineTool({ id: "t.one", description: "d", inputSchema: {}, outputSchema: schema })).toThrow(message)
    expect(() => defineTool({ id: "t.one", description: "d", inputSchema: {}, outputSchema: schema })).toThrow(
      ManifestError,
    )
  })
})
