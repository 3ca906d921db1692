import { describe, expect, it } from "vitest"
import { checkTree, fillTree } from "../../../src/host/invoke/template-tree.ts"
import type { Template, TemplateTree } from "../../../src/manifest/templates/template-tree.ts"
import { parseTemplate } from "../../../src/manifest/templates/template.ts"
import type { JsonObject, JsonValue } from "../../../src/manifest/types.ts"

const template = (text: string): Template => {
  const parsed = parseTemplate(text)
  if (!parsed.ok) throw new Error(parsed.message)
  return { text, parts: parsed.parts }
}
const tree = (value: JsonValue): TemplateTree => {
  if (typeof value === "string") return { type: "text", ...template(value) }
  if (value === null || typeof value !== "object") return { type: "plain", value }
  if (Array.isArray(value)) return { type: "list", items: (value as readonly JsonValue[]).map(tree) }
  return {
    type: "object",
    entries: Object.entries(value as JsonObject).map(([key, item]) => ({ key, value: tree(item) })),
  }
}
const input: JsonObject = { name: "ada", n: 7, list: [[1], 2], none: null, odd: "${input.n}", o: { k: true } }
const fill = (value: JsonValue) =>
  fillTree(tree(value), {
    input,
    context: { who: "me" },
    secret: (name) => (name === "KEY" ? "placeholder" : undefined),
  })

describe("filling a tree of templates", () => {
  // biome-ignore format: a table reads by rows
  it.each([
    ["${input.name}", "ada"],
    ["${input.n}", 7],
    ["${input.list}", [[1], 2]],
    ["${input.list.0}", [1]],
    ["${input.o.k}", true],
    ["${input.none}", null],
    ["hello ${input.name}, ${input.n}!", "hello ada, 7!"],
    ["${input.odd}", "${input.n}"],
    ["<${input.odd}>", "<${input.n}>"],
    ["${input.gone | default('x')}", "x"],
    ["${input.gone | default(3)}", 3],
    ["${input.o | json}", '{"k":true}'],
    ["${context.who}", "me"],
    ["${secrets.KEY}", "placeholder"],
    ["Bearer ${secrets.KEY}", "Bearer placeholder"],
    ["${input.gone}", undefined],
    [{ a: "${input.gone}", b: ["${input.gone}", "${input.list}"], c: 1 }, { b: [null, [[1], 2]], c: 1 }],
    ["${input.toString}", undefined],
  ] as [JsonValue, JsonValue | undefined][])("%j", (written, expected) => {
    expect(fill(written)).toEqual({ ok: true, value: expected })
  })
  it.each([
    ["a ${input.gone}", "input_invalid"],
    ["a ${input.list}", "input_invalid"],
    ["a ${input.none}", "input_invalid"],
    ["${secrets.OTHER}", "auth_required"],
  ])("refuses %j by its name", (written, code) => {
    expect(fill(written)).toMatchObject({ ok: false, code })
  })
})

it("fills what is absent with the contract's default, behind a filter's, and leaves a null alone", () => {
  const scope = {
    inputs: { type: "object", properties: { gone: { default: 4 }, none: { default: 5 } } },
    mapping: {},
  } as const
  const values = { input, context: {}, secret: () => undefined, scope }
  const written = { a: "${input.gone}", b: "n ${input.gone}", c: "${input.gone | default(6)}", d: "${input.none}" }
  expect(fillTree(tree(written), values)).toEqual({ ok: true, value: { a: 4, b: "n 4", c: 6, d: null } })
})

describe("checking a tree of templates", () => {
  const scope = {
    inputs: { type: "object", additionalProperties: false, properties: { name: {}, other: { default: 1 }, old: {} } },
    mapping: { renamed: { from: "old" } },
  } as const
  const check = (value: JsonValue) => checkTree(tree(value), scope, { file: "f", path: "args" })
  it.each([
    [{ a: ["${input.gone}"] }, "template-unknown-value", "args.a[0]"],
    ["${input.old}", "template-renamed-input", "args"],
    ["${input.name | flag('--x')}", "template-filter", "args"],
    ["${input.name | default(input.other)}", "template-filter", "args"],
  ] as [JsonValue, string, string][])("%j is %s", (written, rule, path) => {
    expect(check(written).diagnostics).toMatchObject([{ rule, path, severity: "error" }])
  })
  it("knows what a text cannot be written without", () => {
    const { needs, diagnostics } = check({
      a: "${input.name}",
      b: "x ${input.name}",
      c: "x ${input.other}",
      d: "x ${input.renamed | default('y')}",
      e: "${secrets.KEY}",
    })
    expect(diagnostics).toEqual([])
    expect(needs.map(({ keys }) => keys.join("."))).toEqual(["name"])
  })
})
