/** Three tools in place of a thousand: find, describe, call. Pure. */
import type { CallToolResult, Tool } from "@modelcontextprotocol/server"
import type { JsonObject } from "../../manifest/types.ts"
import { mcpLimits } from "../limits.ts"
import type { Entry } from "./catalogue.ts"
import { finderNames } from "./finder-names.ts"
import { toolOf } from "./tools.ts"

const reading = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }

export const finders: readonly Tool[] = [
  {
    name: "call_tool",
    description: "Call a tool by its name, as describe_tool tells it.",
    inputSchema: {
      type: "object",
      additionalProperties: false,
      required: ["name"],
      properties: { name: { type: "string" }, arguments: { type: "object" } },
    },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  },
  {
    name: "describe_tool",
    description: "A tool's inputs, outputs and what it may change.",
    inputSchema: {
      type: "object",
      additionalProperties: false,
      required: ["name"],
      properties: { name: { type: "string" } },
    },
    annotations: reading,
  },
  {
    name: "find_tools",
    description: "Tools whose name, description or tags have all of these words.",
    inputSchema: {
      type: "object",
      additionalProperties: false,
      required: ["query"],
      properties: { query: { type: "string", maxLength: mcpLimits.queryChars.value } },
    },
    annotations: reading,
  },
]

export const isFinder = (name: string): boolean => finderNames.includes(name)

const said = (value: unknown, isError = false): CallToolResult => ({
  content: [{ type: "text", text: typeof value === "string" ? value : JSON.stringify(value) }],
  ...(isError ? { isError } : {}),
})

const textOf = (value: unknown): string => (typeof value === "string" ? value : "")

const matches = ({ name, contract }: Entry, words: readonly string[]): boolean => {
  const { id, name: title, description, tags } = contract
  const text = [name, id, title, description, ...tags].join(" ").toLowerCase()
  return words.every((word) => text.includes(word))
}

/** What to call with what, or what was found. */
export const find = (
  tools: ReadonlyMap<string, Entry>,
  finder: string,
  input: Readonly<Record<string, unknown>>,
  fits: (entry: Entry) => boolean,
): CallToolResult | { readonly entry: Entry; readonly input: JsonObject } => {
  if (finder === "find_tools") {
    const query = textOf(input["query"])
    if (query.length > mcpLimits.queryChars.value)
      return said(`a search has at most ${mcpLimits.queryChars.value} characters`, true)
    const words = query.toLowerCase().split(/\s+/).filter(Boolean)
    const found = [...tools.values()].filter((entry) => matches(entry, words) && fits(entry))
    return said(
      found.slice(0, mcpLimits.found.value).map(({ name, contract: { description } }) => ({ name, description })),
    )
  }
  const name = textOf(input["name"])
  const entry = tools.get(name)
  if (entry === undefined)
    return said(`there is no tool ${name.slice(0, 100)}; find_tools names those that there are`, true)
  if (finder === "describe_tool") return said(toolOf(entry))
  const given = input["arguments"] ?? {}
  if (typeof given !== "object" || Array.isArray(given)) return said("`arguments` is an object", true)
  return { entry, input: given as JsonObject }
}
