/**
 * A server's tool as it is offered: what a person accepts of it, and whether it can serve the contract.
 *
 * Guarantees: pure. What is accepted is all that a caller or a model is told of the tool (name, title, description, both
 * schemas, annotations), whatever the order of its keys; decoration (icons, `_meta`) does not count. A tool that cannot
 * get what it requires, takes none of what the driver sends, or takes it in another type, does not fit.
 */
import type { Tool } from "@modelcontextprotocol/client"
import { shown } from "../../../manifest/values/diagnostics.ts"
import type { Implementation, JsonObject, JsonValue, ToolContract } from "../../../manifest/types.ts"

const offered = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"] as const

export const offerOf = (tool: Tool): JsonObject =>
  Object.fromEntries(offered.flatMap((key) => (tool[key] === undefined ? [] : [[key, tool[key] as JsonValue]])))

const isRecord = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)
const recordAt = (schema: JsonObject, key: string): JsonObject => {
  const found = schema[key]
  return isRecord(found) ? found : {}
}
const namesAt = (schema: JsonObject, key: string): readonly string[] => {
  const found = schema[key]
  return Array.isArray(found) ? found.filter((name): name is string => typeof name === "string") : []
}

const typesOf = (schema: JsonValue | undefined): readonly string[] | undefined => {
  if (!isRecord(schema)) return undefined
  const type = schema["type"]
  if (typeof type === "string") return [type]
  return Array.isArray(type) ? namesAt(schema, "type") : undefined
}
/** No value is of both. */
const clash = (one: JsonValue | undefined, other: JsonValue | undefined): boolean => {
  const [a, b] = [typesOf(one), typesOf(other)]
  if (a === undefined || b === undefined) return false
  const wide = (types: readonly string[]): readonly string[] =>
    types.includes("number") ? [...types, "integer"] : types
  return !wide(a).some((type) => wide(b).includes(type))
}

/** The server's argument for an input of the driver's own names. */
const argumentFor = (mapping: Implementation["mcp"], input: string): string | undefined => {
  if (mapping?.arguments === undefined) return input
  return mapping.arguments.find((pair) => pair.input === input)?.argument
}

/** What the server's tool is called with. */
export const argumentsFor = (mapping: Implementation["mcp"], input: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(input).flatMap(([name, value]) => {
      const argument = argumentFor(mapping, name)
      return argument === undefined ? [] : [[argument, value]]
    }),
  )

interface Sent {
  readonly argument: string
  readonly schema: JsonValue | undefined
}

/** What the driver sends of this contract's inputs, under the server's names. */
const sentBy = ({ inputs }: ToolContract, entry: Implementation): readonly Sent[] => {
  const properties = recordAt(inputs, "properties")
  const renamed = new Map(Object.entries(entry.mapping).map(([key, rule]) => [rule.from, { key, rule }]))
  return Object.keys(properties)
    .filter((name) => !entry.dropInputs.includes(name))
    .flatMap((name) => {
      const rule = renamed.get(name)
      const argument = argumentFor(entry.mcp, rule?.key ?? name)
      // What a transform makes of a value has a type that no schema tells.
      const schema = rule?.rule.transform === undefined ? properties[name] : undefined
      return argument === undefined ? [] : [{ argument, schema }]
    })
}

/** Why the server's tool cannot serve the contract by this entry; undefined where it can. */
export const misfit = (tool: Tool, contract: ToolContract, entry: Implementation): string | undefined => {
  const takes = tool.inputSchema as unknown as JsonObject
  const properties = recordAt(takes, "properties")
  const sent = sentBy(contract, entry)
  // Inputs may also come from patterns, compositions or an open schema, which only the call itself can show.
  const isOpen = contract.inputs["additionalProperties"] !== false
  const missing = namesAt(takes, "required").find((name) => !sent.some(({ argument }) => argument === name))
  if (missing !== undefined && !isOpen)
    return `requires the argument \`${shown(missing, 60)}\`, for which the contract has no input`
  for (const { argument, schema } of sent) {
    const known = Object.hasOwn(properties, argument)
    if (!known && takes["additionalProperties"] === false) return `takes no argument \`${shown(argument, 60)}\``
    if (known && clash(schema, properties[argument]))
      return `takes the argument \`${shown(argument, 60)}\` in another type than the contract's`
  }
  const gives = tool.outputSchema as unknown as JsonObject | undefined
  const isWhole = (entry.mcp?.extract.length ?? 0) === 0 && contract.outputs["type"] !== "string"
  if (gives !== undefined && isWhole && clash(contract.outputs, gives))
    return "gives back another type than the contract promises"
  return undefined
}
