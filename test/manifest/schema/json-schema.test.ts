import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { compileSchema } from "../../../src/manifest/schema/json-schema.ts"
import type { Validation } from "../../../src/manifest/schema/json-schema.ts"
import { limits } from "../../../src/manifest/limits.ts"
import { checkSchema } from "../../../src/manifest/schema/schema-check.ts"

function validate(schema: unknown, value: unknown): Validation {
  const compiled = compileSchema(schema)
  if (!compiled.ok) throw new Error(`${compiled.path}: ${compiled.message}`)
  return compiled.validate(value)
}
const fault = (schema: unknown): { path: string; message: string; fix: string } => {
  const compiled = compileSchema(schema)
  if (compiled.ok) throw new Error("the schema was accepted")
  return compiled
}
const ok = { ok: true }
const wrong = (path: string, message: string): object => ({
  ok: false,
  errors: [{ path, message: expect.stringContaining(message) as string }],
})

describe("validation", () => {
  it.each([
    ["a missing property", { required: ["a"] }, {}, wrong("a", "is missing")],
    ["an inherited property as missing", { required: ["toString"] }, {}, wrong("toString", "is missing")],
    ["an unknown property", { additionalProperties: false }, { x: 1 }, wrong("x", "not a known property")],
    [
      "an unevaluated property (2020-12)",
      { allOf: [{ properties: { a: true } }], unevaluatedProperties: false },
      { a: 1, b: 2 },
      wrong("b", "not a known property"),
    ],
    ["prefix items (2020-12)", { prefixItems: [{ type: "string" }] }, [1], wrong("[0]", "must be string")],
    ["a value outside an enum", { properties: { a: { enum: ["x", "y"] } } }, { a: "z" }, wrong("a", '"x", "y"')],
    [
      "a nested fault by its path",
      { properties: { a: { items: { properties: { "b-c": { type: "integer" } } } } } },
      { a: [{}, { "b-c": 1.5 }] },
      wrong("a[1].b-c", "must be integer"),
    ],
    ["a wrong format", { format: "date-time" }, "yesterday", wrong("", "format")],
    [
      "equal items with another key order",
      { uniqueItems: true },
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      wrong("", "same item twice"),
    ],
    [
      "a property of a prototype's name",
      { properties: { hasOwnProperty: { type: "string" } } },
      { hasOwnProperty: 1 },
      wrong("hasOwnProperty", "must be string"),
    ],
  ])("reports %s", (_name, schema, value, expected) => {
    expect(validate(schema, value)).toEqual(expected)
  })

  it("keeps several patterns of one schema apart", () => {
    const schema = {
      properties: { a: { pattern: "^a$" }, b: { pattern: "^b$" }, c: { pattern: "^[0-9]%$" } },
      patternProperties: { "^x": { pattern: "^x$" } },
    }
    expect(validate(schema, { a: "a", b: "b", c: "5%", x1: "x" })).toEqual(ok)
    expect(validate(schema, { b: "a" }).ok).toBe(false)
  })

  it("leaves properties named like keywords alone", () => {
    const schema = {
      type: "object",
      properties: {
        enum: { type: "string" },
        $ref: { type: "string" },
        properties: { type: "object" },
        items: { type: "array" },
      },
    }
    expect(validate(schema, { enum: "x", $ref: "y", properties: {}, items: [] })).toEqual(ok)
    expect(validate(schema, { $ref: 1 })).toEqual(wrong("$ref", "must be string"))
  })

  it("follows recursive schemas through a tree", () => {
    const schema = {
      $ref: "#/$defs/tree",
      $defs: { tree: { type: "object", properties: { kids: { type: "array", items: { $ref: "#/$defs/tree" } } } } },
    }
    expect(validate(schema, { kids: [{ kids: [] }, {}] })).toEqual(ok)
    expect(validate(schema, { kids: [{ kids: [3] }] })).toEqual(wrong("kids[0].kids[0]", "must be object"))
  })

  it("follows references to any place where a schema stands", () => {
    const schema = {
      $defs: { any: true, "a/b~c": { type: "string" } },
      properties: {
        x: { $ref: "#/$defs/any" },
        y: { $ref: "#/$defs/a~1b~0c" },
        z: { $ref: "#/properties/y" },
        w: { $ref: "#/$defs/a~1b%7E0c" },
      },
    }
    expect(validate(schema, { x: 1, y: "s", z: "s", w: "s" })).toEqual(ok)
    expect(validate(schema, { z: 1 }).ok).toBe(false)
  })

  it.each([
    ["^[a-z0-9-_]+$", "a-_9", "a b"],
    ["^\\p{L}+$", "é", "1"],
    ["^\\u0041$", "A", "B"],
    ["^(?<year>\\d{4})-\\d\\d$", "2026-01", "26-01"],
    ["^[\\w.+-]+@[\\w-]+\\.[\\w.-]+$", "a.b@c.test", "a.b"],
    ["^\\/x$", "/x", "x"],
    ["^.$", "😀", "ab"],
    ["a$", "ba", "a\n"],
  ])("reads the pattern %s as ECMAScript does", (pattern, good, bad) => {
    expect([good, bad].map((text) => validate({ pattern }, text).ok)).toEqual([true, false])
    expect([good, bad].map((text) => new RegExp(pattern, "u").test(text))).toEqual([true, false])
  })

  it("changes neither the value nor the schema", () => {
    const schema = { type: "object", properties: { a: { type: "string", default: "x" } } }
    const value = {}
    const before = JSON.stringify(schema)
    validate(schema, value)
    expect(value).toEqual({})
    expect(JSON.stringify(schema)).toBe(before)
  })

  it("takes the stubs of the specs for schemas that accept anything, and fetches nothing", () => {
    expect(
      validate({ properties: { a: { $ref: "https://agent.test/docs/aip-27/REF.schema.json" } } }, { a: { b: 1 } }),
    ).toEqual(ok)
    expect(validate({ $ref: "https://agent.test/schemas/aip-16/IO.schema.json" }, 1)).toEqual(ok)
  })
})

describe("schemas that are refused", () => {
  const deep = (n: number): object => (n === 0 ? {} : { properties: { x: deep(n - 1) } })
  it.each([
    ["a remote reference", { $ref: "https://evil.test/x.json" }, "nothing is ever fetched"],
    ["a file reference", { $ref: "file:///etc/passwd" }, "nothing is ever fetched"],
    ["a relative reference", { $ref: "other.json#/a" }, "nothing is ever fetched"],
    [
      "a reference that looks like a stub",
      { $ref: "https://evil.test/x?/docs/aip-27/REF.schema.json" },
      "nothing is ever fetched",
    ],
    ["a reference to nothing", { $ref: "#/$defs/none" }, "no subschema"],
    ["a reference into a prototype", { $ref: "#/constructor" }, "no subschema"],
    ["a reference to itself", { $ref: "#" }, "never end"],
    ["references in a circle", { $defs: { a: { $ref: "#/$defs/b" }, b: { not: { $ref: "#/$defs/a" } } } }, "never end"],
    ["a lookahead", { pattern: "^(?=a)" }, "lookarounds"],
    ["a lookbehind in patternProperties", { patternProperties: { "(?<!a)b": {} } }, "lookarounds"],
    ["a backreference", { pattern: "(a)\\1" }, "backreferences"],
    ["a pattern that explodes when compiled", { pattern: "((a{100}){100}){100}" }, "not a valid pattern"],
    ["a pattern that is too long", { pattern: "a".repeat(1001) }, "1001 characters"],
    ["a pattern that repeats too much", { pattern: "a{999}".repeat(100) }, "99900 times"],
    [
      "many patterns that are costly together",
      { properties: Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`p${i}`, { pattern: "a{999}" }])) },
      "more than 50000 steps",
    ],
    ["asynchronous validation", { $async: true }, "asynchronous"],
    ["a dynamic reference", { $dynamicRef: "#x" }, "dynamic"],
    ["an inner $id", { properties: { a: { $id: "https://x.test/" } } }, "$id"],
    ["another dialect", { $schema: "https://evil.test/meta" }, "2020-12"],
    ["draft-07 item lists", { items: [{}] }, "2020-12"],
    ["an unknown type", { type: "strnig" }, "not a JSON Schema type"],
    ["properties that are no mapping", { properties: [] }, "mapping"],
    ["a schema that is no schema", { properties: { a: 5 } }, "mapping, true or false"],
    ["a negative count", { minLength: -1 }, "whole number"],
    ["required that is no list", { required: "a" }, "list of strings"],
    ["an empty enum", { enum: [] }, "1 to 1000"],
    [
      "too many properties",
      { properties: Object.fromEntries(Array.from({ length: limits.schemaProperties + 1 }, (_, i) => [`p${i}`, {}])) },
      "more than 500",
    ],
    ["too deep a nesting", deep(limits.schemaDepth + 1), "deeper than"],
    [
      "too many subschemas",
      { allOf: Array.from({ length: 5 }, () => ({ anyOf: Array.from({ length: 450 }, () => ({})) })) },
      "more than 2000",
    ],
    ["no mapping at all", [], "mapping"],
  ])("%s", (_name, schema, message) => {
    const refused = fault(schema)
    expect(refused.message).toContain(message)
    expect(refused.fix).not.toBe("")
  })

  it("names the path of the fault", () => {
    expect(fault({ properties: { a: { items: { pattern: "(" } } } }).path).toBe("properties.a.items.pattern")
  })

  it("takes what is exactly at the limits", () => {
    expect(checkSchema(deep(limits.schemaDepth / 2)).ok).toBe(true)
    expect(
      checkSchema({
        properties: Object.fromEntries(Array.from({ length: limits.schemaProperties }, (_, i) => [`p${i}`, {}])),
      }).ok,
    ).toBe(true)
    expect(checkSchema({ pattern: "a".repeat(limits.patternLength) }).ok).toBe(true)
  })
})

describe("work is bounded", () => {
  const tooMany = wrong("", "too many steps")
  it("ends on a pattern that would backtrack for ages", () => {
    expect(validate({ pattern: "^(([a-z])+.)+[A-Z]([a-z])+$" }, `${"a".repeat(200_000)}!`)).toEqual(
      wrong("", "must match pattern"),
    )
  })
  it("ends on a bomb of references", () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 40 }, (_, i) => [
        `d${i}`,
        i === 39 ? { type: "string" } : { anyOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] },
      ]),
    )
    expect(validate({ $ref: "#/$defs/d0", $defs }, 1)).toEqual(tooMany)
  })
  it("ends on recursion that doubles at every level of the value", () => {
    const branch = { properties: { x: { $ref: "#/$defs/n" } } }
    const schema = { $ref: "#/$defs/n", $defs: { n: { allOf: [branch, branch] } } }
    let value: object = {}
    for (let i = 0; i < 60; i++) value = { x: value }
    expect(validate(schema, value)).toEqual(tooMany)
  })
  it("ends on many passes over a long list", () => {
    expect(
      validate({ allOf: Array.from({ length: 400 }, () => ({ items: { type: "number" } })) }, Array(300_000).fill(1)),
    ).toEqual(tooMany)
    expect(
      validate(
        { allOf: Array.from({ length: 400 }, () => ({ uniqueItems: true })) },
        Array.from({ length: 50_000 }, (_, i) => i),
      ),
    ).toEqual(tooMany)
  })
  it("ends on a costly pattern over many strings", () => {
    expect(validate({ items: { pattern: "(x{400}){2}" } }, Array(2_000).fill("x".repeat(1_000)))).toEqual(tooMany)
  })
  it("refuses values that are too deep or too large before it starts", () => {
    let value: unknown = 1
    for (let i = 0; i <= limits.valueDepth; i++) value = [value]
    expect(validate({}, value)).toEqual(wrong("", "deeper than"))
    expect(validate({}, Array(limits.valueNodes).fill(0))).toEqual(wrong("", "more than"))
  })
  it("still takes an honest large value", () => {
    const rows = Array.from({ length: 20_000 }, (_, i) => ({ id: i, name: `row ${i}`, tags: ["a", "b"] }))
    const row = {
      type: "object",
      required: ["id"],
      properties: {
        id: { type: "integer" },
        name: { type: "string", maxLength: 50 },
        tags: { type: "array", uniqueItems: true, items: { type: "string" } },
      },
    }
    expect(validate({ type: "array", items: { $ref: "#/$defs/row" }, $defs: { row } }, rows)).toEqual(ok)
  })
  it("never throws and never stays, on any schema and value", () => {
    const key = fc.constantFrom(
      "type",
      "properties",
      "items",
      "allOf",
      "anyOf",
      "$ref",
      "$defs",
      "pattern",
      "enum",
      "required",
      "additionalProperties",
      "not",
      "if",
      "then",
      "x",
    )
    const schema = fc.letrec((tie) => ({
      any: fc.oneof(
        { depthSize: "small" },
        fc.constantFrom("string", "object", "#", "#/$defs/x", "#/properties/x", "^(a|b)*$", 1, true, null),
        fc.array(tie("any"), { maxLength: 3 }),
        tie("node"),
      ),
      node: fc.dictionary(key, tie("any"), { maxKeys: 4 }),
    })).node
    fc.assert(
      fc.property(schema, fc.jsonValue(), (s, v) => {
        const compiled = compileSchema(s)
        if (compiled.ok) expect(typeof compiled.validate(v).ok).toBe("boolean")
        else expect(compiled.message).not.toBe("")
      }),
      { numRuns: 400 },
    )
  })
})
