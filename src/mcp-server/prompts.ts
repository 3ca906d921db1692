/**
 * Prompts: contracts that say that their value is one, run sealed each time one is asked for.
 *
 * Guarantees: what a prompt holds is its contract's value and nothing else; a call that failed is an error with its code.
 */
import {
  type ContentBlock,
  type GetPromptRequest,
  type GetPromptResult,
  type InputRequiredResult,
  type Prompt,
  type PromptMessage,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server"
import type { JsonObject, JsonValue } from "../manifest/types.ts"
import { blockOf } from "./catalogue/blocks.ts"
import type { Entry } from "./catalogue/catalogue.ts"
import { inputsOf } from "./catalogue/shown.ts"
import { type Calling, readValue } from "./calls/reading.ts"
import { mcpLimits } from "./limits.ts"

export const promptOf = ({ name, contract, shown }: Entry): Prompt => {
  const required = contract.inputs["required"]
  const asked = new Set(
    shown.rounds.flatMap((round) =>
      Object.values(round).flatMap((ask) => (ask.by === "form" ? ask.inputs : [ask.input])),
    ),
  )
  const isRequired = (input: string): boolean =>
    Array.isArray(required) && required.includes(input) && !asked.has(input)
  return {
    name,
    title: contract.name,
    description: contract.description,
    arguments: Object.entries(inputsOf(contract)).map(([input, schema]) => ({
      name: input,
      ...(typeof schema["description"] === "string" ? { description: schema["description"] } : {}),
      required: isRequired(input),
    })),
  }
}

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const messageOf = (written: JsonValue): PromptMessage | undefined => {
  if (!isObject(written)) return undefined
  const { role, content } = written
  const block: ContentBlock | undefined =
    typeof content === "string" ? { type: "text", text: content } : content === undefined ? undefined : blockOf(content)
  return (role === "user" || role === "assistant") && block !== undefined ? { role, content: block } : undefined
}

/** `{ messages: [{ role, content }] }`, or a text, which is a user's. */
const messagesOf = (value: JsonValue): PromptMessage[] | undefined => {
  if (typeof value === "string") return [{ role: "user", content: { type: "text", text: value } }]
  const list = isObject(value) ? value["messages"] : undefined
  if (!Array.isArray(list) || list.length > mcpLimits.blocks.value) return undefined
  const messages = (list as readonly JsonValue[]).map(messageOf)
  return messages.every((message) => message !== undefined) ? messages : undefined
}

export const getPrompt = async (
  calling: Calling,
  entry: Entry | undefined,
  server: Server,
  { params }: GetPromptRequest,
  ctx: ServerContext,
): Promise<GetPromptResult | InputRequiredResult> => {
  const { name, arguments: given = {} } = params
  if (entry === undefined)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `there is no prompt ${name.slice(0, 100)}`)
  const read = await readValue(calling, entry, given, { method: "prompts/get", name, given }, server, ctx)
  if (read.is === "asks") return read.result
  const messages = messagesOf(read.value)
  if (messages === undefined)
    throw new ProtocolError(
      ProtocolErrorCode.InternalError,
      "its contract's value is no prompt: { messages: [{ role, content }] }",
    )
  return { description: entry.contract.description, messages }
}
