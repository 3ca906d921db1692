/** Formats beside AIP's own: what each field becomes, what is refused, and where in the file that is said. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import fc from "fast-check"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { effectClasses } from "../../../src/manifest/formats/aruntime/classes.ts"
import { amlFields } from "../../../src/manifest/formats/aml/fields.ts"
import { aruntimeFields } from "../../../src/manifest/formats/aruntime/fields.ts"
import { buildCatalogue } from "../../../src/manifest/read/catalogue.ts"
import { discoverManifests, type LoadOptions } from "../../../src/manifest/read/discover.ts"
import { createRegistry } from "../../../src/host/registry/registry.ts"
import type { Diagnostic, ToolContract } from "../../../src/manifest/types.ts"
import { withTables } from "./tables.ts"

const fixtures = fileURLToPath(new URL("../../../fixtures/formats", import.meta.url))
const aml = (name: string): string => readFileSync(join(fixtures, "aml", `${name}.tool.md`), "utf8")
const aruntime = (name: string): Record<string, unknown> =>
  JSON.parse(readFileSync(join(fixtures, "aruntime", `${name}.tool.json`), "utf8")) as Record<string, unknown>

let folder = ""
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "caisson-formats-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const put = (name: string, text: string): string => {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}
const load = (options: Partial<LoadOptions> = {}) => {
  const results = discoverManifests([folder], { mode: "compat", ...options })
  const catalogue = buildCatalogue(results)
  return { results, ...catalogue, said: results.flatMap((each) => each.diagnostics) }
}
const errors = (said: readonly Diagnostic[]): readonly string[] =>
  said.filter(({ severity }) => severity === "error").map(({ rule }) => rule)
const onlyTool = (options: Partial<LoadOptions> = {}): ToolContract => {
  const { tools, said } = load(options)
  expect(errors(said)).toEqual([])
  return tools[0] as ToolContract
}

test("docs/formats.md says of every field of each format where it goes", () => {
  const text = readFileSync(fileURLToPath(new URL("../../../docs/formats.md", import.meta.url)), "utf8")
  expect(withTables(text)).toBe(text)
  for (const { field } of [...amlFields, ...aruntimeFields]) expect(text).toContain(`| \`${field}\` |`)
})

test("every fixture is read, and each of the seven classes is among them", () => {
  for (const format of ["aml", "aruntime"]) cpSync(join(fixtures, format), join(folder, format), { recursive: true })
  const { tools, drivers, said } = load()
  expect(errors(said)).toEqual([])
  expect(tools).toHaveLength(15)
  expect(
    new Set(tools.map((tool) => (tool.metadata["origin"] as Record<string, unknown>)["side_effect_class"])),
  ).toEqual(new Set([undefined, ...effectClasses.map(({ name }) => name)]))
  expect(drivers.map(({ id }) => id).sort()).toEqual(
    [
      "invoice-render",
      "order-event",
      "order-lookup",
      "refund-approve",
      "refund-create",
      "stock-query",
      "ticket-search",
    ].map((id) => `${id}-driver`),
  )
})

describe("AML", () => {
  const cases: readonly (readonly [what: string, from: string | RegExp, to: string, path: string, rule: string])[] = [
    ["spec_version missing", 'spec_version: "1.2"\n', "", "spec_version", "aml-required"],
    ["spec_version not approved", '"1.2"', '"9.0"', "spec_version", "aml-spec-version"],
    ["tool_id missing", "tool_id: order_lookup\n", "", "tool_id", "aml-required"],
    ["tool_id malformed", "order_lookup", "Order.Lookup", "tool_id", "aml-tool-id"],
    ["version missing", "version: 1.0.0\n", "", "version", "aml-required"],
    ["version malformed", "version: 1.0.0", "version: one", "version", "aml-version"],
    ["status missing", "status: active\n", "", "status", "aml-required"],
    ["meta.name missing", "  name: Order lookup\n", "", "meta.name", "aml-required"],
    ["meta.description missing", /  description: Finds.*\n/, "", "meta.description", "aml-required"],
    ["meta.owner missing", "  owner: orders-team\n", "", "meta.owner", "aml-required"],
    ["type missing", "type: retrieval\n", "", "type", "aml-required"],
    ["type unknown", "type: retrieval", "type: magic", "type", "aml-type"],
    ["use_guidance missing", /use_guidance:[^]*?\n---/, "---", "use_guidance", "aml-required"],
    ["transport.type unknown", "type: rest-api", "type: pigeon", "transport.type", "aml-transport-type"],
    ["transport.type grpc", "type: rest-api", "type: grpc", "transport.type", "aml-transport-type"],
    [
      "input no schema",
      "    type: object\n    additionalProperties",
      "    type: thing\n    additionalProperties",
      "interface.input.type",
      "schema-refused",
    ],
    [
      "output no schema",
      "total: { type: number }",
      "total: { type: money }",
      "interface.output.properties.total.type",
      "schema-refused",
    ],
    ["transport missing", /transport:[^]*?use_guidance/, "use_guidance", "transport", "aml-transport-missing"],
    ["credentials missing", /  credentials:.*\n/, "", "transport.credentials", "aml-credentials-missing"],
    ["scheme unknown", "scheme: bearer-token", "scheme: smile", "transport.credentials.scheme", "aml-scheme"],
    ["source missing", "source: env, ", "", "transport.credentials.source", "aml-source-missing"],
    [
      "oauth2 incomplete",
      "scheme: bearer-token, source: env, name: ORDERS_TOKEN",
      "scheme: oauth2",
      "transport.credentials.provider",
      "aml-oauth2-incomplete",
    ],
    ["base_url with a slash at its end", "shop.test/v1", "shop.test/v1/", "transport.base_url", "aml-base-url"],
    ["endpoint without method", "GET /orders/{order}", "/orders", "transport.endpoint", "aml-endpoint"],
    ["endpoint with a field that is not there", "{order}", "{number}", "transport.endpoint", "aml-endpoint"],
  ]
  test.each(cases)(
    "refuses a file with %s, and names the field, its line and column",
    (_what, from, to, path, rule) => {
      const text = aml("order-lookup")
      expect(text.replace(from, to)).not.toBe(text)
      const file = put("x.tool.md", text.replace(from, to))
      const { said, tools } = load()
      expect(tools).toEqual([])
      const found = said.find((each) => each.rule === rule)
      expect(found).toMatchObject({ severity: "error", file, path })
      expect(found?.line).toBeGreaterThan(0)
      expect(found?.column).toBeGreaterThan(0)
    },
  )

  test("a message stands at the line of the value that it is about", () => {
    const text = aml("order-lookup").replace("type: retrieval", "type: magic")
    put("x.tool.md", text)
    const found = load().said.find(({ rule }) => rule === "aml-type")
    expect(text.split("\n")[(found?.line ?? 0) - 1]).toBe("type: magic")
  })

  test.each([
    ["aml-side-effects-absent", "refund-create", /\n  side_effects:.*\n/, "\n"],
    ["aml-side-effects-none", "refund-create", /side_effects:.*\n/, "side_effects: None\n"],
    ["aml-guidance-absent", "order-lookup", /  avoid_when:.*\n/, ""],
    ["aml-deprecated-undated", "refund-create", ", last_updated: 2026-06-30", ""],
  ] as const)("warns by the lint rule %s, and serves the tool", (rule, name, from, to) => {
    put("x.tool.md", aml(name).replace(from, to))
    const { said, tools } = load()
    expect(said.filter((each) => each.rule === rule)).toMatchObject([{ severity: "warning" }])
    expect(tools).toHaveLength(1)
  })

  test("becomes a contract and an http driver, and keeps what it was", () => {
    put("x.tool.md", aml("order-lookup"))
    const { tools, drivers } = load()
    expect(tools[0]).toMatchObject({
      id: "order-lookup",
      timeoutMs: 8000,
      mutates: [],
      approval: { class: "auto" },
      requires: { network: ["orders.shop.test:443"] },
      retry: { maxAttempts: 2 },
      metadata: { origin: { format: "aml", id: "order_lookup", owner: "orders-team" } },
      operation: { status: "active", retryOnStatus: [503], errors: [{ status: 404 }, { status: 429 }] },
    })
    expect(tools[0]?.description).toContain("Avoid when: the order's number is not known")
    expect(drivers[0]).toMatchObject({
      id: "order-lookup-driver",
      body: { kind: "http", http: { base: { origin: "https://orders.shop.test", path: "/v1" } } },
      auth: { state: { env: ["ORDERS_TOKEN"] } },
      implements: [{ tool: "order-lookup", http: { method: "GET", endpoint: { text: "/orders/${input.order}" } } }],
    })
  })

  test("an action changes the host that it reaches, and is asked about", () => {
    put("x.tool.md", aml("refund-create"))
    expect(onlyTool()).toMatchObject({
      mutates: [{ class: "external", scope: "pay.shop.test:443" }],
      approval: { class: "on-mutate" },
      riskLevel: 2,
      retry: { maxAttempts: 1 },
    })
  })

  test.each([
    ["timeout_ms", "timeout_ms: 8000", 'timeout_ms: "8000"'],
    ["retry_policy", "retry_policy: { max_attempts: 2, on_status: [503] }", "retry_policy: none"],
    ["retry_policy.max_attempts", "max_attempts: 2", 'max_attempts: "1"'],
    ["retry_policy.on_status", "on_status: [503]", "on_status: 503"],
    ["retry_policy.on_status", "on_status: [503]", 'on_status: ["503"]'],
  ] as const)("refuses transport.%s that is not of its form, instead of passing over it", (path, from, to) => {
    const text = aml("order-lookup")
    expect(text).toContain(from)
    put("x.tool.md", text.replace(from, to))
    const { said, tools } = load()
    expect(tools).toEqual([])
    expect(said).toContainEqual(
      expect.objectContaining({ severity: "error", rule: "aml-form", path: `transport.${path}` }),
    )
  })
  test.each([
    ["error_codes", /error_codes:[^]*?\n(?=transport)/, "error_codes: [404]\n"],
    ["use_guidance", /use_guidance:[^]*?\n---/, "use_guidance: always\n---"],
    ["use_guidance.use_when", /use_when:.*\n/, "use_when: { a: b }\n"],
  ] as const)("refuses %s that is not of its form", (path, from, to) => {
    const text = aml("order-lookup")
    expect(text.replace(from, to)).not.toBe(text)
    put("x.tool.md", text.replace(from, to))
    expect(load().said).toContainEqual(expect.objectContaining({ severity: "error", rule: "aml-form", path }))
  })

  test.each(["rest-api", "mcp", "lambda"])("a person is asked whatever transport says how: %s", (type) => {
    const of = {
      "rest-api": "base_url: https://desk.test, endpoint: POST /ask",
      mcp: 'url: "https://desk.test/mcp", tool_name: ask, protocol_version: "2025-11-25"',
      lambda: "provider: aws, function_id: ask, invocation_type: Event",
    }[type]
    const transport = `transport: { type: ${type}, ${of ?? ""}, credentials: { scheme: none } }\nuse_guidance`
    put("x.tool.md", aml("refund-approve").replace("use_guidance", transport))
    const { drivers, tools, said } = load({ mode: "strict" })
    expect(errors(said)).toEqual([])
    expect(said.map(({ rule }) => rule)).toContain("aml-human-transport")
    expect(tools[0]).toMatchObject({ requires: { network: [] }, timeoutMs: 600_000 })
    expect(drivers[0]).toMatchObject({
      body: { kind: "builtin" },
      implements: [{ builtin: { hostId: "caisson.human" } }],
    })
  })

  test.each(["invoice-render", "order-event", "stock-query"])("%s is listed as unavailable with the reason", (name) => {
    put("x.tool.md", aml(name))
    const { drivers } = load()
    expect(drivers[0]?.unusable).toMatch(/DRIVER\.md|caisson\.yaml/)
  })
})

describe("ARuntime", () => {
  test.each(effectClasses)("class $name has its risk and its approval", ({ name, risk, approval }) => {
    put("x.tool.json", JSON.stringify({ ...aruntime("note-read"), sideEffectClass: name }))
    expect(onlyTool()).toMatchObject({ riskLevel: risk, approval: { class: approval } })
  })

  test.each(["toolId", "version", "description", "inputSchema", "outputSchema", "sideEffectClass"])(
    "refuses a contract without %s",
    (key) => {
      const { [key]: _gone, ...rest } = aruntime("note-read")
      put("x.tool.json", JSON.stringify(rest))
      expect(load().said).toContainEqual(
        expect.objectContaining({ severity: "error", rule: "aruntime-required", path: key }),
      )
    },
  )

  test.each([
    ["egressPolicy", { default: "allow" }, "aruntime-form"],
    ["egressPolicy", 7, "aruntime-form"],
    ["concurrency", 0, "aruntime-form"],
    ["rateLimits", { perSecond: 3 }, "aruntime-form"],
    ["compensation", 3, "aruntime-form"],
    ["errors", 3, "aruntime-form"],
    ["authenticationRef", 3, "aruntime-form"],
    ["egressPolicy", { default: "deny", allow: ["*.example.com"], deny: ["admin.example.com"] }, "aruntime-form"],
    ["egressPolicy", { allow: "api.example.com" }, "aruntime-form"],
    ["rateLimits", { perMinute: 60, perDay: 100 }, "aruntime-form"],
    ["rateLimits", [{ perMinute: 60 }, { perMinute: 1 }], "aruntime-form"],
    ["concurrency", { max: 4, perUser: 1 }, "aruntime-form"],
    ["retryPolicy", "never", "aruntime-form"],
    ["retryPolicy", { maxAttempts: "1" }, "aruntime-form"],
    ["retryPolicy", { maxAttempts: 3, backoff: "linear" }, "aruntime-form"],
    ["retryPolicy", { maxAttempts: 3, retryOn: "conflict" }, "aruntime-form"],
    ["auditFields", "name", "aruntime-form"],
    ["auditFields", [{ path: "name" }], "aruntime-form"],
    ["dataClassification", ["restricted"], "aruntime-form"],
    ["permissionClass", { class: "write" }, "aruntime-form"],
    ["deprecation", "2026-01-01", "aruntime-form"],
    ["deprecation", { removal: 20260101 }, "aruntime-form"],
    ["deprecation", { affectedPolicies: "all" }, "aruntime-form"],
    ["idempotency", 7, "aruntime-form"],
    ["description", 7, "aruntime-form"],
    ["sideEffectClass", "harmless", "aruntime-class"],
    ["timeoutSeconds", -1, "aruntime-timeout"],
    ["deprecation", { removal: "soon" }, "operation"],
    ["deprecation", { removal: "2026-02-31" }, "operation"],
    ["deprecation", { deprecated: "2027-01-01", removal: "2026-01-01" }, "operation"],
  ])("refuses %s: %j, at its line", (key, value, rule) => {
    const text = JSON.stringify({ ...aruntime("note-read"), [key]: value }, null, 2)
    put("x.tool.json", text)
    const found = load().said.find((each) => each.rule === rule)
    expect(found?.severity).toBe("error")
    expect(found?.path.startsWith(key)).toBe(true)
    const line = text.split("\n").findIndex((each) => each.includes(`"${key}"`)) + 1
    expect(found?.line).toBeGreaterThanOrEqual(line)
  })

  test.each([[["amount > 100"]], ["amount > 100"], [{ amount: { over: 100 } }], [true]])(
    "what triggers an approval cannot be told here, so that every call is asked about: %j",
    (approvalTriggers) => {
      put("x.tool.json", JSON.stringify({ ...aruntime("note-read"), approvalTriggers }))
      expect(onlyTool().approval).toEqual({ class: "always" })
    },
  )
  test.each([[[]], [null], ["none"], [false]])("where nothing triggers one, its class says: %j", (approvalTriggers) => {
    put("x.tool.json", JSON.stringify({ ...aruntime("note-read"), approvalTriggers }))
    expect(onlyTool().approval).toEqual({ class: "auto" })
  })
  test("errors that are tried again are those that it names, listed or not", () => {
    const retryPolicy = { maxAttempts: 3, retryOn: ["dependency.unavailable"] }
    put("x.tool.json", JSON.stringify({ ...aruntime("note-read"), retryPolicy, errors: ["conflict"] }))
    expect(onlyTool().operation?.errors).toEqual([
      { code: "conflict", retryable: false },
      { code: "dependency.unavailable", retryable: true },
    ])
  })

  test("carries limits, dates, data class and compensation into the contract", () => {
    put(
      "x.tool.json",
      JSON.stringify({
        ...aruntime("user-disable"),
        dataClassification: "restricted",
        compensation: { toolId: "user_enable" },
        deprecation: { deprecated: "2026-01-01", removal: "2027-01-01T12:00:00Z", replacement: "user_lock" },
        errors: [{ code: "conflict", meaning: "busy", action: "wait", retryable: true }],
      }),
    )
    expect(onlyTool().operation).toEqual({
      spelling: "aruntime",
      dataClassification: "restricted",
      auditFields: ["name"],
      concurrency: 1,
      rate: { perMinute: 6, burst: 2 },
      compensation: { tool: "user-enable" },
      deprecation: {
        deprecated: Date.parse("2026-01-01"),
        removed: Date.parse("2027-01-01T12:00:00Z"),
        replacement: "user-lock",
      },
      errors: [{ code: "conflict", meaning: "busy", action: "wait", retryable: true }],
    })
  })
})

describe("what a format cannot say", () => {
  const annotations = { "note-write": { mutates: ["workspace:/notes/*"], egress: ["notes.test:443"] } }
  test("is closed, and the message says how it is opened", () => {
    put("x.tool.json", JSON.stringify(aruntime("note-write")))
    const { tools, said } = load()
    expect(tools[0]).toMatchObject({ mutates: [], requires: { network: [] } })
    const found = said.find(({ rule }) => rule === "closed-until-annotated")
    expect(found?.fix).toContain("annotations: { note-write:")
  })
  test("is what the operator says, in a folder that the operator vouches for", () => {
    put("x.tool.json", JSON.stringify(aruntime("note-write")))
    const { tools, said } = load({ annotations, vouched: [folder] })
    expect(tools[0]).toMatchObject({
      mutates: [{ class: "workspace", scope: "/notes/*" }],
      requires: { network: ["notes.test:443"] },
    })
    expect(said.map(({ rule }) => rule)).not.toContain("closed-until-annotated")
  })
  test("stays closed for a stranger's file of the same id", () => {
    put("x.tool.json", JSON.stringify(aruntime("note-write")))
    const { tools } = load({ annotations, vouched: [`${folder}-other`] })
    expect(tools[0]).toMatchObject({ mutates: [], requires: { network: [] } })
  })
})

describe("ids", () => {
  test("two that become one are both refused", () => {
    put("a.tool.json", JSON.stringify({ ...aruntime("note-read"), toolId: "note_read" }))
    put("b.tool.json", JSON.stringify({ ...aruntime("note-read"), toolId: "note-read" }))
    const { tools, diagnostics } = load()
    expect(tools).toEqual([])
    expect(diagnostics.filter(({ rule }) => rule === "duplicate-id")).toHaveLength(2)
  })
  test.each(["nоte_read", "note\u200bread", "ﬁle_read", "NOTE_READ", "_note", "note_", "__proto__", "a/../b"])(
    "%j is no id",
    (toolId) => {
      put("a.tool.json", JSON.stringify({ ...aruntime("note-read"), toolId }))
      const { tools, said } = load()
      expect(tools).toEqual([])
      expect(errors(said)).toEqual(["format-id"])
    },
  )
  test.each(["x.tool.json", "x.tool.md"])("a stranger's %s does not take over the id of an earlier folder", (name) => {
    const own = mkdtempSync(join(tmpdir(), "caisson-own-"))
    try {
      writeFileSync(
        join(own, "TOOL.md"),
        "---\nname: Mine\nid: note-read\ndescription: Mine.\nversion: 1.0.0\ninputs: { type: object }\noutputs: { type: string }\n---\n",
      )
      put(
        name,
        name.endsWith("json")
          ? JSON.stringify({ ...aruntime("note-read"), version: "1.9.0" })
          : aml("order-lookup").replace("order_lookup", "note_read"),
      )
      const registry = createRegistry({ dirs: [{ dir: own, trusted: true }, folder], mode: "compat" })
      expect(registry.tool("note-read")?.name).toBe("Mine")
      expect(registry.toolsNamed("note-read")).toHaveLength(1)
    } finally {
      rmSync(own, { recursive: true, force: true })
    }
  })
  test("one that was refused still holds its id against a later folder", () => {
    const later = mkdtempSync(join(tmpdir(), "caisson-later-"))
    try {
      put("x.tool.json", JSON.stringify({ ...aruntime("note-read"), version: "one" }))
      writeFileSync(join(later, "x.tool.json"), JSON.stringify(aruntime("note-read")))
      const registry = createRegistry({ dirs: [{ dir: folder, trusted: true }, later], mode: "compat" })
      expect(registry.tool("note-read")).toBeUndefined()
    } finally {
      rmSync(later, { recursive: true, force: true })
    }
  })
})

describe("hostile text", () => {
  const bomb = ["a: &a [x]", ...Array.from({ length: 30 }, (_, i) => `b${i}: &b${i} [*a, *a, *a]`)].join("\n")
  test.each([
    ["an anchor", "spec_version: &a 1", "yaml-anchor"],
    ["a billion laughs", bomb, "yaml-anchor"],
    ["a key twice", "tool_id: a_b\ntool_id: c_d", "yaml-duplicate-key"],
    ["a prototype's key", "__proto__: { x: 1 }", "yaml-forbidden-key"],
    ["a number that is not exact", "tool_id: 123456789012345678901234567890", "yaml-bad-number"],
    ["a tag", "tool_id: !!js/function x", "yaml-tag"],
  ])("of YAML is refused: %s", (_what, front, rule) => {
    put("x.tool.md", `---\n${front}\n---\n`)
    expect(errors(load().said)).toContain(rule)
  })
  test.each([
    ['{"toolId":"abc",\n "toolId":"abd"}', "json-duplicate-key"],
    ['{"toolId":"abc",\n "x" 1}', "json-syntax"],
    [`{"toolId":"abc",\n "x": ${"[".repeat(200)}${"]".repeat(200)}}`, "json-too-deep"],
  ])("JSON that cannot be read is told of at its line and column: %s", (text, rule) => {
    put("x.tool.json", text)
    const found = load().said.find((each) => each.rule === rule)
    expect(found).toMatchObject({ severity: "error", line: 2 })
    expect(found?.column).toBeGreaterThan(1)
  })
  test.each([
    ["a key twice", '{"toolId":"a_b","toolId":"c_d"}', "json-duplicate-key"],
    ["a key twice, once escaped", '{"toolId":"a_b","\\u0074oolId":"c_d"}', "json-duplicate-key"],
    ["a prototype's key", '{"a":{"__proto__":{"x":1}}}', "json-forbidden-key"],
    ["a number that is not exact", '{"a":123456789012345678901}', "json-bad-number"],
    ["a number beyond all", '{"a":1e999}', "json-bad-number"],
    ["half a surrogate", '{"a":"\\ud800"}', "json-bad-text"],
    ["depth", `${"[".repeat(5000)}${"]".repeat(5000)}`, "json-too-deep"],
    ["many values", `[${"1,".repeat(20_000)}1]`, "json-too-many"],
    ["a trailing comma", '{"a":1,}', "json-syntax"],
    ["a comment", '{"a":1 // x\n}', "json-syntax"],
    ["no object", "[]", "json-not-object"],
  ])("of JSON is refused: %s", (_what, text, rule) => {
    put("x.tool.json", text)
    expect(errors(load().said)).toContain(rule)
  })
  test("whatever the bytes, there are results, and no exception", () => {
    const seeds = [aml("order-lookup"), aml("stock-query"), JSON.stringify(aruntime("mail-send"), null, 1)]
    fc.assert(
      fc.property(
        fc.constantFrom(...seeds.keys()),
        fc.array(fc.tuple(fc.nat(2000), fc.string({ maxLength: 6, unit: "binary" }), fc.nat(12)), { maxLength: 4 }),
        (which, edits) => {
          let text = seeds[which] as string
          for (const [at, inserted, gone] of edits) text = text.slice(0, at) + inserted + text.slice(at + gone)
          put(which === 2 ? "x.tool.json" : "x.tool.md", text)
          const { results } = load()
          rmSync(join(folder, which === 2 ? "x.tool.json" : "x.tool.md"))
          expect(results.length).toBeGreaterThan(0)
          expect(results.flatMap((each) => each.diagnostics).map(({ rule }) => rule)).not.toContain("internal")
        },
      ),
      { numRuns: Number(process.env["CAISSON_FUZZ_RUNS"] ?? 300) },
    )
  })
})
