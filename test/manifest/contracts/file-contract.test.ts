import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { compileSchema } from "../../../src/manifest/schema/json-schema.ts"
import type { ManifestMode } from "../../../src/manifest/types.ts"
import { asTool, errors, load, toolFront, warnings } from "../from-text.ts"

const front = (extra: string): string => toolFront(extra)
const both = ["strict", "compat"] as const

describe("files of a tool", () => {
  it("are a host's to say where, in every input schema", () => {
    for (const mode of both) {
      const tool = asTool(load("TOOL.md", front("inputsFiles: { a: { path: a } }"), mode))
      const compiled = compileSchema(tool.inputs)
      expect(compiled.ok && compiled.validate({ q: "x", _workflowFsRoot: "/tmp/x" }).ok).toBe(true)
      expect(compiled.ok && compiled.validate({ q: "x", _workflowFsRoot: 1 }).ok).toBe(false)
      expect(compiled.ok && compiled.validate({ q: "x", other: "x" }).ok).toBe(false)
      const without = compileSchema(asTool(load("TOOL.md", front(""), mode)).inputs)
      expect(without.ok && without.validate({ q: "x", _workflowFsRoot: "/tmp/x" }).ok).toBe(false)
    }
  })
  it("leave what an author says of the reserved input, unless it is no text", () => {
    const declared = (type: string): string =>
      front("inputsFiles: { a: { path: a } }").replace("{ q:", `{ _workflowFsRoot: ${type}, q:`)
    const own = { type: "string", minLength: 1 }
    expect(asTool(load("TOOL.md", declared(JSON.stringify(own)))).inputs).toMatchObject({
      properties: { _workflowFsRoot: own },
    })
    expect(errors(load("TOOL.md", declared("{ type: integer }")))).toEqual([
      "reserved-input @ inputs.properties._workflowFsRoot",
    ])
  })
  it("that go out are effects, and ask for approval as such", () => {
    const silent = 'outputsFiles: { out: { path: "out/<isoDate>/<runId>.txt" } }'
    expect(errors(load("TOOL.md", front(silent), "strict"))).toEqual(["output-undeclared @ outputsFiles.out.path"])
    const result = load("TOOL.md", front(silent), "compat")
    expect(asTool(result)).toMatchObject({
      mutates: [{ class: "workspace", scope: "/out/*/*.txt", text: "workspace:/out/*/*.txt" }],
      approval: { class: "on-mutate" },
      source: { leniencies: expect.arrayContaining(["output-undeclared"]) as string[] },
    })
    expect(warnings(result)).toContain("output-undeclared @ outputsFiles.out.path")
    const said = `${silent}\nmutates: ["workspace:/out/**"]\napproval: on-mutate`
    for (const mode of both) expect(asTool(load("TOOL.md", front(said), mode)).mutates).toHaveLength(1)
  })
  it.each([
    [
      "two outputs at one place",
      "outputsFiles: { a: { path: x }, b: { path: x } }",
      "file-clash @ outputsFiles.b.path",
    ],
    ["in one place by case", "outputsFiles: { a: { path: x }, b: { path: X } }", "file-clash @ outputsFiles.b.path"],
    [
      "in one place by a token",
      'outputsFiles: { a: { path: "<toolId>" }, b: { path: "<workflowId>" } }',
      "file-clash @ outputsFiles.b.path",
    ],
    ["one below the other", "outputsFiles: { a: { path: x/y }, b: { path: x } }", "file-clash @ outputsFiles.b.path"],
    [
      "an output that is read-only as an input",
      "inputsFiles: { a: { path: x, mode: ro } }\noutputsFiles: { a: { path: x } }",
      "file-clash @ inputsFiles.a.mode",
    ],
    ["a pattern", 'inputsFiles: { a: { path: "secrets/*" } }', "path-escape @ inputsFiles.a.path"],
    [
      "no media type",
      'inputsFiles: { a: { path: x, contentType: "a\\e[2Jb" } }',
      "bad-value @ inputsFiles.a.contentType",
    ],
  ])("are refused with %s", (_what, extra, expected) => {
    expect(errors(load("TOOL.md", front(`${extra}\nmutates: ["workspace:/"]\napproval: on-mutate`)))).toEqual([
      expected,
    ])
  })
  it("have no other token than AIP-16's", () => {
    const extra = 'inputsFiles: { a: { path: "<locale>/x" } }'
    expect(errors(load("TOOL.md", front(extra), "strict"))).toEqual(["file-token @ inputsFiles.a.path"])
    expect(warnings(load("TOOL.md", front(extra), "compat"))).toEqual(["file-token @ inputsFiles.a.path"])
  })
  it("are read, whatever stands there, to a contract or to messages with a fix", () => {
    const entry = fc.oneof(
      fc.jsonValue({ maxDepth: 1 }),
      fc.record(
        { path: fc.oneof(fc.string(), fc.jsonValue()), mode: fc.constantFrom("ro", "rw", "x") },
        { requiredKeys: [] },
      ),
    )
    const block = fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.dictionary(fc.string({ maxLength: 8 }), entry, { maxKeys: 3 }),
    )
    fc.assert(
      fc.property(block, block, fc.constantFrom<ManifestMode>(...both), (inputs, outputs, mode) => {
        const extra = `inputsFiles: ${JSON.stringify(inputs)}\noutputsFiles: ${JSON.stringify(outputs)}`
        const result = load("TOOL.md", front(extra), mode)
        for (const { message, fix } of result.diagnostics) expect([message, fix]).not.toContain("")
        if (!result.ok) expect(result.diagnostics.some(({ severity }) => severity === "error")).toBe(true)
      }),
      { numRuns: 400 },
    )
  })
})
