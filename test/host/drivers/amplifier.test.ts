/** What a module of Amplifier's says, whatever it says. */
import { readFileSync } from "node:fs"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { manifestsOf } from "../../../src/host/assemble/amplifier-manifests.ts"
import { outcomeOf, readResult } from "../../../src/host/drivers/amplifier/answer.ts"
import { discoverTools } from "../../../src/host/drivers/amplifier/discover.ts"
import { hooksOf } from "../../../src/host/drivers/amplifier/hooks.ts"
import type { FoundModule } from "../../../src/host/drivers/runner/found-module.ts"
import type { ModuleAnswer } from "../../../src/host/drivers/runner/run-in-module.ts"
import { reasons } from "../../../src/host/reasons.ts"
import type { JsonValue } from "../../../src/manifest/types.ts"

const found: FoundModule = {
  module: { path: "/opt/driver/x.py" },
  interpreter: { language: "python", program: "/usr/bin/python3", inside: "/usr/bin/python3", bundles: {}, spawn: {} },
  bundles: {},
  edition: "",
}
const json = fc.jsonValue({ maxDepth: 4 }).map((value) => value as JsonValue)
const likeResult = fc.record(
  {
    success: fc.oneof(fc.boolean(), json),
    output: fc.oneof(fc.string(), json),
    left_out: fc.oneof(fc.integer(), json),
    error: fc.oneof(fc.record({ type: fc.string(), message: fc.string(), exit_code: json, raised: json }), json),
    metadata: json,
  },
  { requiredKeys: [] },
) as fc.Arbitrary<JsonValue>

describe("an answer of a tool", () => {
  it("is a bounded value or a failure of the table, whatever it is", () => {
    fc.assert(
      fc.property(fc.oneof(likeResult, json), fc.integer({ min: 1, max: 50 }), (value, most) => {
        const outcome = outcomeOf("x@1", readResult(value, most))
        if (!outcome.ok) {
          expect(Object.keys(reasons)).toContain(outcome.code)
          return
        }
        const { output } = outcome.value as { output: JsonValue }
        // Nothing is nothing, and not four characters.
        const text = typeof output === "string" ? output : output === null ? "" : JSON.stringify(output)
        expect(text.replace(/\n\[\d+ more characters were left out: [^\n]*\]$/, "").length).toBeLessThanOrEqual(most)
      }),
    )
  })
  it.each([
    ["PermissionError", "policy_violation"],
    ["SecurityError", "policy_violation"],
    ["FileNotFoundError", "not_found"],
    ["TimeoutError", "timeout"],
    ["FileTooLarge", "limit_exceeded"],
    ["CommandFailed", "upstream_error"],
    ["ValidationError", "input_invalid"],
    ["constructor", "upstream_error"],
    ["Whatever", "upstream_error"],
  ])("of the type %s has the code %s", (type, code) => {
    const result = readResult({ success: false, error: { type, message: "m", exit_code: 3 } }, 100)
    expect(outcomeOf("x@1", result)).toMatchObject({ ok: false, code, details: { type, message: "m", exit_code: 3 } })
  })
  it("says how much of it was left out", () => {
    expect(readResult({ success: true, output: "abcdef" }, 4)?.output).toBe(
      "abcd\n[2 more characters were left out: the budget of this tool's output is 4]",
    )
    expect(readResult({ success: true, output: "abcd", left_out: 10 }, 4)?.output).toContain("[10 more characters")
    expect(readResult({ success: true, output: "abcd" }, 4)?.output).toBe("abcd")
  })
})

const answering = (answer: ModuleAnswer) => () => Promise.resolve(answer)
const likeTool = fc.record(
  { name: fc.oneof(fc.string(), json), description: fc.oneof(fc.string(), json), schema: json },
  { requiredKeys: [] },
) as fc.Arbitrary<JsonValue>

describe("what a module mounts", () => {
  it("becomes contracts with ids of their own, or is refused, whatever it says", async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(json, fc.record({ tools: fc.array(likeTool), more: json })), async (value) => {
        const run = answering({ ok: true, value: value as JsonValue, streamed: false })
        const told = await discoverTools(found, {}, run)
        if (!told.ok) return
        const module = { module: "./x.py", path: "/srv/x.py", tools: {} }
        const made = manifestsOf({ module, index: 0, file: "caisson.yaml" }, told.tools, new Set())
        const ids = made.manifests.filter(({ doctype }) => doctype === "tool").map(({ front }) => front["id"])
        expect(new Set(ids).size).toBe(ids.length)
        for (const { front, doctype } of made.manifests)
          if (doctype === "tool") expect(front).toMatchObject({ mutates: [], approval: "always" })
        expect(made.manifests.every(({ front }) => !/[\u0000-\u001f\u007f-\u009f]/.test(String(front["name"])))).toBe(
          true,
        )
      }),
    )
  })
  it("is opened by the operator's annotation alone, a second name of one id is refused, and one that nothing has is told", () => {
    const module = {
      module: "./x.py",
      path: "/srv/x.py",
      egress: ["a.test"],
      tools: { write_it: { mutates: ["workspace:notes/**"] }, absent: { mutates: [] } },
    }
    const tools = ["write_it", "Write-It", "look"].map((name) => ({ name, description: "d" }))
    const { manifests, diagnostics } = manifestsOf({ module, index: 3, file: "c" }, tools, new Set())
    expect(manifests.map(({ front }) => front)).toMatchObject([
      { id: "write-it", version: "1.0.0", approval: "on-mutate", mutates: ["workspace:notes/**"] },
      { id: "look", version: "0.0.0", approval: "always", mutates: [] },
      { id: "amplifier-x", kind: "sdk", network: { egress: ["a.test"] }, implements: [{}, {}] },
    ])
    expect(diagnostics.map(({ rule, path }) => `${rule} ${path}`)).toEqual([
      "amplifier-no-schema amplifier[3].tools.write_it",
      "amplifier-id amplifier[3].tools.Write-It",
      "amplifier-closed amplifier[3].tools.look",
      "amplifier-no-schema amplifier[3].tools.look",
      "amplifier-no-tool amplifier[3].tools.absent",
    ])
  })
})

describe("an answer of a hook", () => {
  const hook = { module: new URL("../../../fixtures/amplifier/hooks/guard.py", import.meta.url).pathname, config: {} }
  const asked = (answer: ModuleAnswer) =>
    hooksOf([{ ...hook, events: ["tool:pre"], timeoutMs: 1000 }], { interpreters: {}, runInModule: answering(answer) })
  it("lets a call through where it says so in so many words, and blocks whatever else it is", async () => {
    await fc.assert(
      fc.asyncProperty(json, async (value) => {
        const verdict = await asked({ ok: true, value, streamed: false })?.("tool:pre", { input: {} })
        const action = (value as { action?: unknown } | null)?.action
        expect(verdict?.blocked).toBe(!["continue", "modify", "inject_context"].includes(action as string))
      }),
    )
    const said = async (value: JsonValue) =>
      (await asked({ ok: true, value, streamed: false })?.("tool:pre", {}))?.blocked
    expect(await said({ action: "continue", handlers: 1 })).toBe(false)
    expect(await said({ action: "continue", handlers: 0 })).toBe(true)
    expect(await said({ action: "deny" })).toBe(true)
    for (const kind of ["silent", "protocol", "limit", "ended", "unsealed"] as const)
      expect((await asked({ ok: false, kind, message: "" })?.("tool:pre", {}))?.blocked).toBe(true)
  })
})

it("the documentation has each field of Amplifier's models and each setting of caisson.yaml", () => {
  const at = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8")
  const text = at("docs/amplifier.md")
  const core = at("src/runner/amplifier_core.py")
  const fieldsOf = (model: string): readonly string[] => {
    const [, block = ""] = new RegExp(`class ${model}\\(_Model\\):\\n {4}_fields = \\{([^}]*)\\}`).exec(core) ?? []
    return [...block.matchAll(/"(\w+)":/g)].map(([, name = ""]) => `\`${model}.${name}\``)
  }
  const fields = [...fieldsOf("ToolResult"), ...fieldsOf("HookResult")]
  expect(fields.length).toBe(19)
  expect(fields.filter((field) => !text.includes(field))).toEqual([])
  interface Shape {
    readonly properties: Readonly<Record<string, Shape>>
    readonly items: Shape
    readonly additionalProperties: Shape
  }
  const { properties } = JSON.parse(at("schemas/config.schema.json")) as Shape
  const module = properties["amplifier"]?.items.properties ?? {}
  const settings = [
    ...Object.keys(module),
    ...Object.keys(module["tools"]?.additionalProperties.properties ?? {}),
    ...Object.keys(properties["amplifier_hooks"]?.items.properties ?? {}),
  ]
  expect(settings.length).toBeGreaterThan(15)
  expect(settings.filter((name) => !new RegExp(`[^\\w]${name}[^\\w]`).test(text))).toEqual([])
})
