/**
 * The catalogue as MCP's tools: what is listed of a contract, and what an envelope becomes.
 *
 * Guarantees: pure. Annotations follow from the contract and from nothing else: a tool that changes nothing is read-only,
 * one that changes what no layer can undo is destructive, one that reaches hosts is open to the world. A call's effects, denials and receipt come with its
 * value, and a call that failed is an error with its code, whoever reads it.
 */
import type { CallToolResult, Tool } from "@modelcontextprotocol/server"
import type { JsonObject, JsonSchema, ToolContract } from "../manifest/types.ts"
import type { Envelope } from "../host/types.ts"
import { mcpLimits } from "./limits.ts"

const asObject = (schema: JsonSchema): Tool["inputSchema"] =>
  ({ ...(schema as JsonObject), type: "object" }) as Tool["inputSchema"]

const object = { type: "object" } as const
const list = { type: "array", items: object } as const

/** `value` is what the contract says; the rest is the host's. */
const outputOf = (contract: ToolContract): Tool["outputSchema"] =>
  ({
    type: "object",
    required: ["value", "call", "effects", "denied", "receipt"],
    properties: {
      value: contract.outputs,
      call: { type: "string" },
      driver: { type: "string" },
      effects: list,
      denied: list,
      receipt: { type: "string" },
    },
  }) as Tool["outputSchema"]

/** `workspace:…` is undone by throwing a layer away, and asked about before that. */
const isUndoable = ({ mutates }: ToolContract): boolean => mutates.every((scope) => scope.class === "workspace")

export const toolOf = (contract: ToolContract): Tool => ({
  name: contract.id,
  title: contract.name,
  description: contract.description,
  inputSchema: asObject(contract.inputs),
  outputSchema: outputOf(contract),
  annotations: {
    title: contract.name,
    readOnlyHint: contract.mutates.length === 0,
    destructiveHint: contract.mutates.length > 0 && !isUndoable(contract),
    idempotentHint: contract.idempotent,
    openWorldHint: (contract.requires.network ?? ["?"]).length > 0,
  },
})

const cut = (text: string): string =>
  text.length <= mcpLimits.textChars.value ? text : `${text.slice(0, mcpLimits.textChars.value)}…`

const textOf = (envelope: Envelope): string => {
  if (!envelope.ok) {
    const { code, message, hint } = envelope.error
    return `${code}: ${message}${hint === "" ? "" : `\nhint: ${hint}`}`
  }
  return cut(typeof envelope.value === "string" ? envelope.value : JSON.stringify(envelope.value))
}

/** One text for a model, and the whole for a program. */
export const resultOf = (envelope: Envelope): CallToolResult => {
  const { call, driver, effects, denied, receipt } = envelope
  const rest = { call, ...(driver === undefined ? {} : { driver }), effects, denied, receipt }
  const notes = denied.map(({ message }) => message).slice(0, mcpLimits.notes.value)
  return {
    content: [
      { type: "text", text: textOf(envelope) },
      ...(notes.length === 0 ? [] : [{ type: "text" as const, text: `stopped: ${notes.join("; ")}` }]),
    ],
    structuredContent: JSON.parse(
      JSON.stringify(envelope.ok ? { value: envelope.value, ...rest } : { error: envelope.error, ...rest }),
    ) as Record<string, unknown>,
    ...(envelope.ok ? {} : { isError: true }),
  }
}
