/** Three tools in place of a thousand: find, describe, call. Pure. */
import type { CallToolResult, Tool } from "@modelcontextprotocol/server"
import type { CallRequest, ToolListing } from "../host/types.ts"
import type { JsonValue } from "../manifest/types.ts"
import { mcpLimits } from "./limits.ts"
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
      properties: { query: { type: "string", maxLength: 400 } },
    },
    annotations: reading,
  },
]

export const isFinder = (name: string): boolean => finders.some((tool) => tool.name === name)

const said = (value: unknown, isError = false): CallToolResult => ({
  content: [{ type: "text", text: typeof value === "string" ? value : JSON.stringify(value) }],
  ...(isError ? { isError } : {}),
})

const textOf = (value: unknown): string => (typeof value === "string" ? value : "")

const matches = (listing: ToolListing, words: readonly string[]): boolean => {
  const { id, name, description, tags } = listing.contract
  const text = [id, name, description, ...tags].join(" ").toLowerCase()
  return words.every((word) => text.includes(word))
}

/** What to call, or what was found. */
export const find = (
  tools: ReadonlyMap<string, ToolListing>,
  finder: string,
  input: Readonly<Record<string, unknown>>,
): CallToolResult | CallRequest => {
  if (finder === "find_tools") {
    const words = textOf(input["query"]).toLowerCase().split(/\s+/).filter(Boolean)
    const found = [...tools.values()].filter((listing) => matches(listing, words))
    return said(
      found.slice(0, mcpLimits.found.value).map(({ contract: { id, description } }) => ({ name: id, description })),
    )
  }
  const name = textOf(input["name"])
  const listing = tools.get(name)
  if (listing === undefined)
    return said(`there is no tool ${name.slice(0, 100)}; find_tools names those that there are`, true)
  if (finder === "describe_tool") return said(toolOf(listing.contract))
  const given = (input["arguments"] ?? {}) as JsonValue
  return { tool: name, input: given }
}
