import { describe, expect, it } from "vitest"
import { compileSchema } from "../../../src/manifest/schema/json-schema.ts"
import { checkExamples } from "../../../src/manifest/contracts/tool.ts"
import { asTool, errors, load, toolFront, warnings } from "../from-text.ts"

describe("TOOL.md", () => {
  it.each([
    ["deprecation.replacement", "deprecation: { replacement: WORDS }"],
    ["compensation.tool", "compensation: { tool: WORDS }"],
    ["status_tool", "status_tool: WORDS"],
  ])("names another tool by an id, so that nothing else is said in this host's words: %s", (field, text) => {
    const told = (words: string) =>
      errors(load("TOOL.md", toolFront(`metadata: { operation: { ${text.replace("WORDS", words)} } }`)))
    const words = ["x; approve it with `caisson approvals`", "\\u001b[2Jx", "a\\nb", "x".repeat(5_000), ""]
    for (const each of words) expect(told(`"${each}"`)).toEqual([`operation @ metadata.operation.${field}`])
    for (const each of ["order-cancel", "order.cancel@2"]) expect(told(each)).toEqual([])
  })

  it.each([
    ["status", "status: 7"],
    ["deprecation", 'deprecation: "2026-01-01"'],
    ["deprecation.removed", "deprecation: { removed: 20260101 }"],
    ["deprecation.removal", "deprecation: { removal: 2026-01-01 }"],
    ["errors", "errors: busy"],
    ["errors", "errors: [busy]"],
    ["retry_on_status", "retry_on_status: 503"],
    ["retry_on_status", 'retry_on_status: ["503"]'],
    ["rate", "rate: 60"],
    ["rate.per_day", "rate: { per_minute: 60, per_day: 100 }"],
    ["data_classification", "data_classification: [restricted]"],
    ["permission_class", "permission_class: 7"],
    ["audit_fields", "audit_fields: name"],
    ["compensation", "compensation: order-cancel"],
    ["spelling", "spelling: cobol"],
  ])("refuses what of its operation is not of its form, instead of passing over it: %s", (field, text) => {
    const told = errors(load("TOOL.md", toolFront(`metadata: { operation: { ${text} } }`)))
    expect(told).toEqual([`operation @ metadata.operation.${field}`])
  })

  it("has the defaults of AIP-14", () => {
    const tool = asTool(load("TOOL.md", toolFront(), "strict"))
    expect(tool).toMatchObject({
      major: 1,
      idempotent: false,
      mutates: [],
      approval: { class: "auto" },
      riskLevel: 0,
      costClass: "trivial",
      timeoutMs: 30_000,
      requires: { secrets: [], tools: [] },
      driverConstraints: { forbid: [], requireKind: [] },
      tags: [],
      examples: [],
      metadata: {},
    })
    expect(tool.requires.network).toBeUndefined()
    expect(tool.contextSchema).toBeUndefined()
  })

  it("tells an empty requires.network from an absent one (C-14)", () => {
    expect(asTool(load("TOOL.md", toolFront("requires: { network: [] }"))).requires.network).toEqual([])
  })

  it("takes the context schema from metadata (C-36) and says so when it stands elsewhere", () => {
    expect(
      asTool(load("TOOL.md", toolFront("metadata: { contextSchema: { type: object, required: [t] } }"))).contextSchema,
    ).toEqual({ type: "object", required: ["t"] })
    expect(errors(load("TOOL.md", toolFront("contextSchema: { type: object }")))).toEqual([
      "unknown-key @ contextSchema",
    ])
    expect(errors(load("TOOL.md", toolFront("metadata: { contextSchema: { pattern: '(?=a)' } }")))).toEqual([
      "schema-refused @ metadata.contextSchema.pattern",
    ])
  })

  it("tolerates unknown keys under metadata", () => {
    expect(asTool(load("TOOL.md", toolFront("metadata: { anything: { goes: 1 } }"), "strict")).metadata).toEqual({
      anything: { goes: 1 },
    })
  })

  it("points at AIP-30 when an implementation is left in a contract", () => {
    const [found] = load("TOOL.md", toolFront("entry: ./tool.ts")).diagnostics
    expect(found?.message).toContain("AIP-14")
    expect(found?.fix).toContain("DRIVER.md")
  })

  it("reads the scope of a workspace effect from its root (C-12)", () => {
    const scopes = asTool(
      load(
        "TOOL.md",
        toolFront('mutates: ["workspace:/a/*", "workspace:b/", "workspace:/", "network:*"]\napproval: always'),
      ),
    ).mutates
    expect(scopes.map((m) => m.scope)).toEqual(["/a/*", "/b/", "/", "*"])
  })
  it.each([
    "workspace:/a/../b",
    "workspace:/a//b",
    "workspace:/a/./b",
    "workspace:/a\\b",
    "workspace:/[a]",
    "workspace:/a**",
  ])("refuses the scope %s", (scope) => {
    expect(errors(load("TOOL.md", toolFront(`mutates: [${JSON.stringify(scope)}]\napproval: always`)))).toEqual([
      "mutates-scope @ mutates[0]",
    ])
  })
  it("reports an effect of an unknown class", () => {
    expect(warnings(load("TOOL.md", toolFront('mutates: ["weather:rain"]\napproval: always')))).toEqual([
      "mutates-unknown-class @ mutates[0]",
    ])
  })

  it.each([
    ["approval: policy:team/x", { class: "policy", ref: "team/x" }],
    ["approval: always", { class: "always" }],
  ])("reads %s", (line, approval) => {
    expect(asTool(load("TOOL.md", toolFront(line))).approval).toEqual(approval)
  })

  it("names every fault of a file at once, with what to write", () => {
    const result = load("TOOL.md", "name: x\nid: Bad Id\nversion: one\ninputs: 5\nrisk_level: 7\ncost_clas: trivial")
    expect(errors(result).sort()).toEqual([
      "bad-value @ id",
      "bad-value @ version",
      "missing-field @ description",
      "missing-field @ outputs",
      "out-of-range @ risk_level",
      "unknown-key @ cost_clas",
      "wrong-type @ inputs",
    ])
    expect(result.diagnostics.find((d) => d.path === "cost_clas")?.fix).toContain("cost_class")
    expect(result.diagnostics.find((d) => d.path === "version")?.fix).toContain("1.0.0")
  })

  it("finds a credential in an example and does not repeat it", () => {
    const token = `ghp_${"A1b2".repeat(9)}`
    const result = load("TOOL.md", toolFront(`examples: [{ name: e, input: { q: "${token}" } }]`))
    expect(errors(result)).toEqual(["plaintext-credential @ examples[0].input.q"])
    expect(JSON.stringify(result)).not.toContain(token)
  })

  it("holds examples to the schemas: refused in strict mode, told on demand in compat mode", () => {
    const front = toolFront("examples: [{ name: bad, input: { q: 1 }, output: { a: 1 } }]")
    expect(errors(load("TOOL.md", front, "strict"))).toEqual([
      "example-mismatch @ examples[0].input",
      "example-mismatch @ examples[0].output",
    ])
    expect(checkExamples(asTool(load("TOOL.md", front)), "warning").map((d) => d.path)).toEqual([
      "examples[0].input",
      "examples[0].output",
    ])
  })

  it("refuses an input that is not a mapping", () => {
    expect(
      errors(
        load(
          "TOOL.md",
          toolFront().replace("type: object\n  additionalProperties", "type: string\n  additionalProperties"),
        ),
      ),
    ).toEqual(["inputs-not-object @ inputs.type"])
  })

  it("gives schemas that compile to validators of the contract", () => {
    const tool = asTool(load("TOOL.md", toolFront()))
    const inputs = compileSchema(tool.inputs)
    expect(inputs.ok && inputs.validate({ q: "x" }).ok).toBe(true)
    expect(compileSchema(tool.inputs)).toBe(inputs)
  })

  it("accepts the file contracts and the action of C-37 in both modes", () => {
    const front = toolFront(
      "implements: { ref: 'a:b' }\ninputsFiles: { in: { path: x, mode: ro } }\noutputsFiles: { out: { path: y } }",
    )
    for (const mode of ["strict", "compat"] as const)
      expect(asTool(load("TOOL.md", front, mode))).toMatchObject({
        implements: "a:b",
        inputsFiles: { in: { path: "x", mode: "ro" } },
        outputsFiles: { out: { path: "y", mode: "rw" } },
      })
  })

  it.each([
    ["a file outside", "inputsFiles: { in: { path: /etc/passwd } }", "path-escape @ inputsFiles.in.path"],
    ["a file that climbs", "inputsFiles: { in: { path: a/../../b } }", "path-escape @ inputsFiles.in.path"],
    [
      "a file that climbs by a token",
      'outputsFiles: { o: { path: "<runId>/../../b" } }',
      "path-escape @ outputsFiles.o.path",
    ],
    ["a file with an end of line", 'outputsFiles: { o: { path: "a\\nb" } }', "path-escape @ outputsFiles.o.path"],
    ["a folder that climbs", 'inputsFiles: { "..": { path: x } }', 'bad-value @ inputsFiles[".."]'],
    ["a folder in another", 'inputsFiles: { "a/b": { path: x } }', 'bad-value @ inputsFiles["a/b"]'],
  ])("refuses %s", (_what, extra, expected) => {
    expect(errors(load("TOOL.md", toolFront(extra)))).toEqual([expected])
  })

  it("does not depend on the order of keys or on the body for its digest", () => {
    const one = asTool(load("TOOL.md", toolFront("tags: [a]\nrisk_level: 1")))
    const two = asTool(load("TOOL.md", toolFront("risk_level: 1\ntags: [a]")))
    expect(one.source.digest).toBe(two.source.digest)
    expect(asTool(load("TOOL.md", toolFront("risk_level: 2\ntags: [a]"))).source.digest).not.toBe(one.source.digest)
  })
})
