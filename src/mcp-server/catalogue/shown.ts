/**
 * How a contract wants to be seen by MCP clients: `metadata.mcp` of its TOOL.md, read into what this room works with.
 *
 * Guarantees: pure and total. What is malformed is as if it was not there; nothing here lets a contract do more than it
 * could as a plain tool: it chooses a name, a form of its answer, and which of its inputs the caller's side is asked for.
 * A prompt or a resource changes nothing, so that reading one needs nobody's yes; addresses of this host's own are nobody's.
 */
import type { JsonObject, JsonSchema, JsonValue, ToolContract } from "../../manifest/types.ts"
import { mcpLimits } from "../limits.ts"
import { isAmbiguous } from "./address.ts"

/** What the caller's side is asked for before a call: some inputs by a person, one by its model, one its folders. */
export type Ask =
  | { readonly by: "form"; readonly message: string; readonly inputs: readonly string[] }
  | { readonly by: "sample"; readonly prompt: string; readonly maxTokens: number; readonly input: string }
  | { readonly by: "roots"; readonly input: string }
export type Round = Readonly<Record<string, Ask>>

export interface Shown {
  /** the name it asks for */
  readonly name?: string
  readonly as: "tool" | "prompt" | "resource"
  /** of a resource: its address, or a pattern of addresses with `{input}` */
  readonly uri?: string
  readonly mimeType?: string
  /** its value is a list of content blocks */
  readonly blocks: boolean
  /** may, or must, a call of it go on as a task */
  readonly task: "never" | "may" | "must"
  readonly rounds: readonly Round[]
}

const NAME = /^[A-Za-z0-9_.-]{1,128}$/
const KEY = /^[A-Za-z0-9_.-]{1,64}$/
const ADDRESS = /^[a-z][a-z0-9+.-]{0,31}:[^\s<>"\\^`|]{1,512}$/i
const MEDIA = /^[\w.+-]{1,64}\/[\w.+-]{1,64}$/
const OWN = /^(?:caisson|javascript|vbscript|data):/i

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)
const textIn = (from: JsonObject, key: string, most: number): string | undefined => {
  const value = from[key]
  return typeof value === "string" && value !== "" && value.length <= most ? value : undefined
}

export const inputsOf = (contract: ToolContract): Readonly<Record<string, JsonSchema>> => {
  const { properties } = contract.inputs
  return isObject(properties) ? (properties as Readonly<Record<string, JsonSchema>>) : {}
}

const askOf = (written: JsonValue, known: Readonly<Record<string, JsonSchema>>): Ask | undefined => {
  if (!isObject(written)) return undefined
  const has = (input: unknown): input is string => typeof input === "string" && Object.hasOwn(known, input)
  const { inputs, input } = written
  if (Array.isArray(inputs)) {
    if (inputs.length === 0 || !inputs.every(has)) return undefined
    const message = textIn(written, "message", mcpLimits.questionChars.value)
    return { by: "form", message: message ?? `needs ${inputs.join(", ")}`, inputs }
  }
  if (!has(input)) return undefined
  if (written["roots"] === true) return { by: "roots", input }
  const prompt = textIn(written, "sample", mcpLimits.questionChars.value)
  const tokens = written["max_tokens"]
  const maxTokens = typeof tokens === "number" && Number.isSafeInteger(tokens) && tokens > 0 ? tokens : 1_000
  return prompt === undefined ? undefined : { by: "sample", prompt, maxTokens, input }
}

const roundsOf = (written: JsonValue | undefined, known: Readonly<Record<string, JsonSchema>>): readonly Round[] => {
  const list = Array.isArray(written) ? written : []
  return list
    .slice(0, mcpLimits.rounds.value)
    .filter(isObject)
    .map((round) =>
      Object.fromEntries(
        Object.entries(round)
          .slice(0, mcpLimits.asks.value)
          .flatMap(([key, value]) => {
            const ask = KEY.test(key) ? askOf(value, known) : undefined
            return ask === undefined ? [] : [[key, ask] as const]
          }),
      ),
    )
    .filter((round) => Object.keys(round).length > 0)
}

const plain: Shown = { as: "tool", blocks: false, task: "never", rounds: [] }

export const shownOf = (contract: ToolContract): Shown => {
  const written = contract.metadata["mcp"]
  if (!isObject(written)) return plain
  const name = textIn(written, "name", 128)
  const uri = textIn(written, "uri", 545)
  const mimeType = textIn(written, "mime_type", 129)
  const isQuiet = contract.mutates.length === 0
  const isAddress = uri !== undefined && ADDRESS.test(uri) && !OWN.test(uri) && !isAmbiguous(uri)
  const as =
    written["as"] === "prompt" && isQuiet
      ? "prompt"
      : written["as"] === "resource" && isQuiet && isAddress
        ? "resource"
        : "tool"
  const { task } = written
  return {
    as,
    ...(name !== undefined && NAME.test(name) ? { name } : {}),
    ...(as === "resource" && uri !== undefined ? { uri } : {}),
    ...(mimeType !== undefined && MEDIA.test(mimeType) ? { mimeType } : {}),
    blocks: written["content"] === "blocks",
    task: task === "may" || task === "must" ? task : "never",
    rounds: roundsOf(written["ask"], inputsOf(contract)),
  }
}
