import type { Tool } from "@modelcontextprotocol/client"
import { describe, expect, it } from "vitest"
import { argumentsFor, misfit, offerOf } from "../../../../src/host/drivers/mcp/offer.ts"
import { digestOf } from "../../../../src/manifest/values/digest.ts"
import type { Implementation, JsonSchema } from "../../../../src/manifest/types.ts"
import { implementationOf, toolOf } from "../../call/values.ts"

const offered = (properties: object, more: object = {}): Tool =>
  ({ name: "t", description: "d", inputSchema: { type: "object", properties, ...more } }) as unknown as Tool
const TEXT = { type: "string" }
const inputs = (properties: Record<string, JsonSchema>, more: object = {}): JsonSchema => ({
  type: "object",
  properties,
  additionalProperties: false,
  ...more,
})
const entry = (change: Partial<Implementation> = {}): Implementation =>
  implementationOf({ mcp: { toolName: "t", extract: [] }, ...change })
const fit = (tool: Tool, given: JsonSchema, change: Partial<Implementation> = {}, outputs: JsonSchema = {}) =>
  misfit(tool, toolOf({ inputs: given, outputs }), entry(change))

describe("a server's tool against a contract", () => {
  it.each<[string, string | undefined]>([
    ["takes what is sent", fit(offered({ a: TEXT }, { required: ["a"] }), inputs({ a: TEXT }))],
    [
      "takes it under the name that the driver gives it",
      fit(offered({ b: TEXT }, { required: ["b"] }), inputs({ a: TEXT }), {
        mcp: { toolName: "t", extract: [], arguments: [{ input: "a", argument: "b" }] },
      }),
    ],
    [
      "takes a number where an integer comes",
      fit(offered({ a: { type: "number" } }), inputs({ a: { type: "integer" } })),
    ],
    ["is open for what it does not name", fit(offered({}), inputs({ a: TEXT }))],
    [
      "is not sent what the driver drops",
      fit(offered({}, { additionalProperties: false }), inputs({ a: TEXT }), { dropInputs: ["a"] }),
    ],
    [
      "gives text beside an object, for a contract of text",
      fit({ ...offered({}), outputSchema: { type: "object" } } as Tool, inputs({}), {}, { type: "string" }),
    ],
  ])("fits that %s", (_what, found) => expect(found).toBeUndefined())
  it.each<[string, string | undefined, RegExp]>([
    [
      "requires what nobody sends",
      fit(offered({ a: TEXT, b: TEXT }, { required: ["b"] }), inputs({ a: TEXT })),
      /requires the argument `b`/,
    ],
    [
      "does not take what is sent",
      fit(offered({}, { additionalProperties: false }), inputs({ a: TEXT })),
      /takes no argument `a`/,
    ],
    ["takes another type", fit(offered({ a: { type: "integer" } }), inputs({ a: TEXT })), /another type/],
    [
      "gives another type",
      fit({ ...offered({}), outputSchema: { type: "object" } } as Tool, inputs({}), {}, { type: "array" }),
      /gives back another type/,
    ],
  ])("does not fit that %s", (_what, found, why) => expect(found).toMatch(why))
  it("is sent the inputs that the mapping names, under its names, and no others", () => {
    const mapping = { toolName: "t", extract: [], arguments: [{ input: "a", argument: "b" }] }
    expect(argumentsFor(mapping, { a: 1, c: 2 })).toEqual({ b: 1 })
    expect(argumentsFor({ toolName: "t", extract: [] }, { a: 1, c: 2 })).toEqual({ a: 1, c: 2 })
  })
  it("is accepted by all that is told of it, and by nothing else", () => {
    const base = offered({ a: TEXT })
    const digest = (tool: object): string => digestOf(offerOf(tool as Tool))
    expect(digest({ ...base, icons: [{ src: "x" }], _meta: { x: 1 } })).toBe(digest(base))
    for (const change of [
      { description: "e" },
      { title: "t" },
      { annotations: { readOnlyHint: true } },
      { outputSchema: { type: "object" } },
      { inputSchema: { type: "object", properties: { a: TEXT, b: TEXT } } },
    ])
      expect(digest({ ...base, ...change })).not.toBe(digest(base))
  })
})
