import type { CallToolResult } from "@modelcontextprotocol/client"
import { describe, expect, it } from "vitest"
import { readResult } from "../../../../src/host/drivers/mcp/result.ts"
import { parseExtract } from "../../../../src/manifest/templates/extract.ts"
import type { JsonSchema } from "../../../../src/manifest/types.ts"

const text = (...words: string[]): CallToolResult["content"] => words.map((each) => ({ type: "text", text: each }))
const read = (result: Partial<CallToolResult>, outputs: JsonSchema = {}, extract = "$") =>
  readResult({ content: [], ...result }, outputs, parseExtract(extract) ?? [], "t")
const object: JsonSchema = { type: "object" }

describe("what a server's tool gave back", () => {
  it.each<[string, Partial<CallToolResult>, JsonSchema, string, unknown]>([
    ["text for a contract that promises text", { content: text("a") }, { type: "string" }, "$", "a"],
    ["text that looks like JSON stays text there", { content: text('{"a":1}') }, { type: "string" }, "$", '{"a":1}'],
    ["several texts are lines", { content: text("a", "b") }, { type: "string" }, "$", "a\nb"],
    ["JSON in a text, for one that promises an object", { content: text('{"a":1}') }, object, "$", { a: 1 }],
    [
      "what is structured, for one that promises an object",
      { content: text("x"), structuredContent: { a: 1 } },
      object,
      "$",
      { a: 1 },
    ],
    [
      "the text beside it, for one that promises text",
      { content: text("x"), structuredContent: { a: 1 } },
      { type: "string" },
      "$",
      "x",
    ],
    [
      "a path into what is structured",
      { structuredContent: { rows: [{ n: 1 }, { n: 2 }] } },
      {},
      "$.rows[*].n",
      [1, 2],
    ],
    ["a path into JSON in a text", { content: text('{"rows":[1]}') }, {}, "$.rows[0]", 1],
    [
      "a path into the protocol's own list",
      { content: text("a", "b"), structuredContent: { content: "c" } },
      {},
      "$.content[1].text",
      "b",
    ],
    [
      "a path to a property of that name",
      { content: text("a"), structuredContent: { content: "c" } },
      {},
      "$.content",
      "c",
    ],
    ["a path that says what it goes into", { structuredContent: { a: 1 } }, {}, "$.structuredContent.a", 1],
    [
      "text that is no JSON, for one that promises an object",
      { content: text("a") },
      object,
      "$",
      { content: [{ type: "text", text: "a" }] },
    ],
  ])("is %s", (_what, result, outputs, extract, value) => {
    expect(read(result, outputs, extract)).toEqual({ ok: true, value, notes: [] })
  })
  it("is a failure where the server says so, whatever else it gave", () => {
    const failed = read({ isError: true, content: text("no\u001b[31m way"), structuredContent: { a: 1 } })
    expect(failed).toMatchObject({ ok: false, code: "upstream_error" })
    expect(failed.ok ? "" : failed.message).not.toContain("\u001b")
  })
  it("is a failure where the path leads nowhere", () => {
    expect(read({ content: text("a") }, {}, "$.rows[0]")).toMatchObject({ ok: false, code: "output_parse_failed" })
  })
  it.each([
    ["https://a.test/x", "https://a.test/x"],
    ["https://u:p@a.test/x", "https://a.test/x"],
    ["urn:a:b", "urn:a:b"],
    ["javascript:x", undefined],
    ["JavaScript:x", undefined],
    ["not an address", undefined],
    [`https://a.test/${"x".repeat(5_000)}`, undefined],
  ])("names a resource %s by %s", (uri, shown) => {
    const given = read({ content: [{ type: "resource_link", uri, name: "n" }] })
    if (shown === undefined) expect(given).toMatchObject({ ok: false, code: "output_parse_failed" })
    else expect(given).toMatchObject({ ok: true, value: { content: [{ uri: shown }] } })
  })
})
