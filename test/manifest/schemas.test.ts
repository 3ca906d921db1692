import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Ajv2020 } from "ajv/dist/2020.js"
import { describe, expect, it } from "vitest"
import { digestOf, jcs } from "../../src/manifest/values/digest.ts"
import { SHAPES } from "../../src/manifest/schema/shape.ts"

const folder = fileURLToPath(new URL("../../schemas/", import.meta.url))
const files = readdirSync(folder).filter((name) => name.endsWith(".schema.json"))
const schema = (name: string): Record<string, unknown> =>
  JSON.parse(readFileSync(`${folder}${name}`, "utf8")) as Record<string, unknown>
const ajv = new Ajv2020({ strict: false, discriminator: true, logger: false })
ajv.addVocabulary(["x-fix"])
for (const name of files) ajv.addSchema(schema(name))
const valid = (name: string, value: unknown): boolean => ajv.validate(`urn:caisson:schema:${name}:1`, value)

describe("schemas/", () => {
  it("has a file for every shape that is checked, and for the wire formats", () => {
    expect(files.map((name) => name.replace(".schema.json", "")).sort()).toEqual(
      [...SHAPES, "common", "envelope", "audit-event"].sort(),
    )
  })
  it.each(files)("%s is a valid 2020-12 schema with our id, and compiles", (name) => {
    const own = schema(name)
    expect(own["$schema"]).toBe("https://json-schema.org/draft/2020-12/schema")
    expect(own["$id"]).toBe(`urn:caisson:schema:${name.replace(".schema.json", "")}:1`)
    expect(ajv.validateSchema(own)).toBe(true)
    expect(ajv.getSchema(own["$id"] as string)).toBeTypeOf("function")
  })
})

describe("envelope.schema.json", () => {
  const base = {
    call: "01JABCDEFGHJKMNPQRSTVWXYZ0",
    effects: [{ kind: "create", path: "a", declared: true, committed: true, after: digestOf("a") }],
    denied: [{ layer: "egress", reason: "host_not_allowed", target: "x.test:443", count: 2, message: "m", hint: "h" }],
    receipt: digestOf("r"),
  }
  const error = { code: "undeclared_write", class: "violation", message: "m", retryable: false, hint: "h", details: {} }
  it("takes both ends of a call", () => {
    expect(valid("envelope", { ...base, ok: true, value: null, driver: "jq@1" })).toBe(true)
    expect(valid("envelope", { ...base, ok: false, error })).toBe(true)
    expect(valid("envelope", { ...base, ok: false, error: { ...error, code: "git:not-a-repo" } })).toBe(true)
  })
  it.each([
    ["a success without a value", { ...base, ok: true }],
    ["a failure without an error", { ...base, ok: false }],
    ["a success with an error", { ...base, ok: true, value: 1, error }],
    ["an unknown field", { ...base, ok: true, value: 1, extra: 1 }],
    ["no receipt", { ...base, ok: true, value: 1, receipt: undefined }],
    ["an effect without a verdict", { ...base, ok: true, value: 1, effects: [{ kind: "create", path: "a" }] }],
  ])("refuses %s", (_name, value) => {
    expect(valid("envelope", JSON.parse(jcs(value)))).toBe(false)
  })
})

describe("audit-event.schema.json", () => {
  const event = {
    $schema: "agentgovernance/v1",
    doctype: "audit-event",
    seq: 0,
    ts: "2026-01-02T03:04:05.678Z",
    actor: { id: "ana" },
    action: "tool.invoked",
    subject: { kind: "tool", ref: "json.query@1" },
    prevHash: "GENESIS",
    hash: "a".repeat(64),
    hashAlg: "sha256",
    metadata: { ok: true },
  }
  it("takes an AIP-7 event", () => {
    expect(valid("audit-event", event)).toBe(true)
  })
  it.each([
    ["a negative sequence", { ...event, seq: -1 }],
    ["a short hash", { ...event, hash: "abc" }],
    ["an action in capitals", { ...event, action: "Tool" }],
    ["a decision outside the enum", { ...event, policy: { ref: "p", decision: "approve" } }],
    ["an unknown field", { ...event, extra: 1 }],
  ])("refuses %s", (_name, value) => {
    expect(valid("audit-event", value)).toBe(false)
  })
})
