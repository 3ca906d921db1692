import path from "node:path"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { checkWorkspacePaths, workspacePathFault } from "../../../src/host/invoke/workspace-path.ts"
import type { JsonSchema, JsonValue } from "../../../src/manifest/types.ts"

describe("a workspace path", () => {
  it.each(["a", "a/b.txt", ".", ".git/config", "-rf", "a b/ü", "...", "a/..b", "~x", "a\\b", `${"x".repeat(255)}/y`])(
    "may be %j",
    (text) => {
      expect(workspacePathFault(text)).toBeUndefined()
    },
  )
  // biome-ignore format: a table reads by rows
  it.each([
    ["", /empty/], ["/etc/passwd", /absolute/], ["//x", /absolute/], ["..", /`\.\.`/], ["../x", /`\.\.`/], ["a/../b", /`\.\.`/], ["a/..", /`\.\.`/],
    ["./a", /`\.` segment/], ["a/./b", /`\.` segment/], ["a//b", /empty segment/], ["a/", /empty segment/], ["~", /~/], ["~/x", /~/], ["a\0b", /NUL/],
    ["a\ud800", /well-formed/], ["x".repeat(256), /255/], ["x/".repeat(2048) + "x", /4095/],
  ] as const)("may not be %j", (text, problem) => {
    expect(workspacePathFault(text)?.[0]).toMatch(problem)
  })

  it("always stays in the workspace and is its own normal form", () => {
    const segment = fc.constantFrom("a", ".", "..", "", "~", "b c", "-x", "/")
    fc.assert(
      fc.property(
        fc.oneof(
          fc.array(segment, { maxLength: 6 }).map((each) => each.join("/")),
          fc.string(),
        ),
        (text) => {
          if (workspacePathFault(text) !== undefined) return
          const joined = path.posix.join("/workspace", text)
          expect(joined === "/workspace" || joined.startsWith("/workspace/")).toBe(true)
          expect(path.posix.normalize(text)).toBe(text)
        },
      ),
      { numRuns: 500 },
    )
  })
})

describe("inputs marked workspace-path", () => {
  const file = { type: "string", format: "workspace-path" }
  // biome-ignore format: a table reads by rows
  it.each<[string, JsonSchema, JsonValue, string | undefined]>([
    ["passes a good one", { properties: { f: file } }, { f: "a" }, undefined],
    ["finds a bad one", { properties: { f: file } }, { f: "/a" }, "input.f"],
    ["leaves other texts alone", { properties: { f: { type: "string" } } }, { f: "/a" }, undefined],
    ["looks into lists", { properties: { f: { items: file } } }, { f: ["a", "../b"] }, "input.f[1]"],
    ["looks into tuples", { properties: { f: { prefixItems: [{ type: "string" }, file] } } }, { f: ["/ok", "/b"] }, "input.f[1]"],
    ["looks into objects", { properties: { o: { properties: { f: file } } } }, { o: { f: ".." } }, "input.o.f"],
    ["looks into further properties", { additionalProperties: file }, { any: "/x" }, "input.any"],
    ["follows a local $ref", { $defs: { f: file }, properties: { f: { $ref: "#/$defs/f" } } }, { f: "/x" }, "input.f"],
    ["looks into every branch", { properties: { f: { anyOf: [{ type: "number" }, file] } } }, { f: "/x" }, "input.f"],
    ["looks into allOf at the top", { allOf: [{ properties: { f: file } }] }, { f: "/x" }, "input.f"],
    ["ends on a schema that refers to itself", { $defs: { t: { properties: { next: { $ref: "#/$defs/t" }, f: file } } }, $ref: "#/$defs/t" }, { next: { next: { f: "/x" } } }, "input.next.next.f"],
    ["sees a mark beside a $ref", { $defs: { t: { type: "string" } }, properties: { f: { $ref: "#/$defs/t", format: "workspace-path" } } }, { f: "/x" }, "input.f"],
    ["sees a mark between two references", { $defs: { t: { type: "string" }, p: { $ref: "#/$defs/t", format: "workspace-path" } }, properties: { f: { $ref: "#/$defs/p" } } }, { f: "/x" }, "input.f"],
    ["sees properties beside a $ref", { $defs: { t: { type: "object" } }, $ref: "#/$defs/t", properties: { f: file } }, { f: "/x" }, "input.f"],
    ["looks into properties by pattern", { patternProperties: { "^f": file } }, { f1: "/x" }, "input.f1"],
    ["leaves those of another pattern alone", { patternProperties: { "^f": file } }, { g: "/x" }, undefined],
    ["looks into what a property brings along", { dependentSchemas: { a: { properties: { f: file } } } }, { a: 1, f: "/x" }, "input.f"],
    ["looks into conditions", { if: { properties: { f: file } } }, { f: "/x" }, "input.f"],
    ["looks into what nothing else speaks of", { properties: { a: {} }, unevaluatedProperties: file }, { a: "/ok", b: "/x" }, "input.b"],
    ["looks into the rest of a list", { properties: { f: { prefixItems: [{}], unevaluatedItems: file } } }, { f: ["/ok", "/x"] }, "input.f[1]"],
    ["looks at names", { properties: { m: { propertyNames: file } } }, { m: { "../x": 1 } }, "input.m"],
    ["passes good names", { properties: { m: { propertyNames: file } } }, { m: { "a/x": 1 } }, undefined],
    ["takes no mark from what must not be", { properties: { f: { not: file } } }, { f: "/x" }, undefined],
    ["ends on branches that refer to each other", { anyOf: [{ $ref: "#" }], properties: { f: file } }, { f: "/x" }, "input.f"],
  ])("%s", (_, schema, input, field) => {
    expect(checkWorkspacePaths(schema, input)?.details["field"]).toBe(field)
  })

  it("visits each schema once, however many branches lead to it", () => {
    const twice = (name: string): JsonSchema => ({ anyOf: [{ $ref: `#/$defs/${name}` }, { $ref: `#/$defs/${name}` }] })
    const chain = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`s${index}`, twice(`s${index + 1}`)]))
    const schema = {
      $defs: { ...chain, s60: { properties: { f: file, next: { $ref: "#/$defs/s0" } } } },
      $ref: "#/$defs/s0",
    }
    expect(checkWorkspacePaths(schema, { next: { next: { f: "/x" } } })?.details["field"]).toBe("input.next.next.f")
  })
})
