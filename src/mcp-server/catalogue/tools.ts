/**
 * The catalogue as MCP's tools: what is listed of a contract, and what an envelope becomes.
 *
 * Guarantees: pure. Annotations follow from the contract and from nothing else: a tool that changes nothing is read-only,
 * one that changes what no layer can undo is destructive, one that reaches hosts is open to the world. A call's effects, denials and receipt come with its
 * value, and a call that failed is an error with its code, whoever reads it.
 */
import type { CallToolResult, ContentBlock, Tool } from "@modelcontextprotocol/server"
import type { JsonObject, JsonSchema, JsonValue, ToolContract } from "../../manifest/types.ts"
import type { CallError, Envelope } from "../../host/types.ts"
import { mcpLimits } from "../limits.ts"
import { blocksOf } from "./blocks.ts"
import type { Entry } from "./catalogue.ts"
import { portable } from "./portable.ts"
import type { Shown } from "./shown.ts"

/** What is asked of the caller's side nobody has to give. */
const inputOf = ({ contract: { inputs }, shown: { rounds } }: Entry): Tool["inputSchema"] => {
  const asked = new Set(
    rounds.flatMap((round) => Object.values(round).flatMap((ask) => (ask.by === "form" ? ask.inputs : [ask.input]))),
  )
  const { required, ...rest } = portable({ ...inputs, type: "object" }) as JsonObject
  const names = Array.isArray(required)
    ? (required as readonly JsonValue[]).filter((name) => !asked.has(name as string))
    : []
  return { ...rest, ...(names.length === 0 ? {} : { required: names }), type: "object" } as Tool["inputSchema"]
}

/** References within it lead into itself, wherever it stands. */
const embedded = ({ id, major, outputs }: ToolContract): JsonSchema =>
  outputs["$id"] === undefined && JSON.stringify(outputs).includes('"$ref"')
    ? { $id: `urn:caisson:outputs:${id}:${major}`, ...outputs }
    : outputs

const object = { type: "object" } as const
const list = { type: "array", items: object } as const

/** `value` is what the contract says; the rest is the host's. A call that failed has `error` in place of a value. */
const outputOf = (contract: ToolContract): Tool["outputSchema"] =>
  ({
    type: "object",
    required: ["call", "effects", "denied", "receipt"],
    properties: {
      value: portable(embedded(contract)),
      error: object,
      call: { type: "string" },
      driver: { type: "string" },
      effects: list,
      denied: list,
      receipt: { type: "string" },
    },
  }) as Tool["outputSchema"]

/** `workspace:…` is undone by throwing a layer away, and asked about before that. */
const isUndoable = ({ mutates }: ToolContract): boolean => mutates.every((scope) => scope.class === "workspace")

const isClosed = ({ requires }: ToolContract): boolean =>
  requires.network !== undefined && requires.network.length === 0

const made = new WeakMap<ToolContract, Tool>()
/** Contracts are frozen, and a name seldom changes: a tool is made once. */
export const toolOf = (entry: Entry): Tool => {
  const known = made.get(entry.contract)
  if (known?.name === entry.name) return known
  const tool = freshTool(entry)
  made.set(entry.contract, tool)
  return tool
}

const freshTool = ({ contract, ...entry }: Entry): Tool => ({
  name: entry.name,
  title: contract.name,
  description: contract.description,
  inputSchema: inputOf({ contract, ...entry }),
  outputSchema: outputOf(contract),
  annotations: {
    title: contract.name,
    readOnlyHint: contract.mutates.length === 0,
    destructiveHint: contract.mutates.length > 0 && !isUndoable(contract),
    idempotentHint: contract.idempotent,
    openWorldHint: !isClosed(contract),
  },
})

const cut = (text: string): string =>
  text.length <= mcpLimits.textChars.value ? text : `${text.slice(0, mcpLimits.textChars.value)}…`

/** What this host says, beside a tool's own words, so that a client can tell them apart. */
const OWN = { "caisson/from": "host" } as const
const own = (text: string): ContentBlock => ({ type: "text", text, _meta: OWN })

const addressOf = ({ details }: CallError): string => {
  const { approval } = details as { readonly approval?: { readonly id?: unknown; readonly url?: unknown } }
  if (typeof approval?.id !== "string") return ""
  const at = typeof approval.url === "string" ? `, or ${approval.url} of the daemon` : ""
  return `\ndecide: \`caisson approvals show ${approval.id}\`${at}`
}

const contentOf = (envelope: Envelope, blocks: boolean): ContentBlock[] => {
  if (!envelope.ok) {
    const { error } = envelope
    const hint = error.hint === "" ? "" : `\nhint: ${error.hint}`
    return [own(`${error.code}: ${error.message}${hint}${addressOf(error)}`)]
  }
  const { value } = envelope
  const shown = blocks ? blocksOf(value) : undefined
  return shown ?? [{ type: "text", text: cut(typeof value === "string" ? value : JSON.stringify(value)) }]
}

/** One text for a model, and the whole for a program. */
export const resultOf = (envelope: Envelope, { blocks }: Pick<Shown, "blocks">): CallToolResult => {
  const { call, driver, effects, denied, receipt } = envelope
  const rest = { call, ...(driver === undefined ? {} : { driver }), effects, denied, receipt }
  const notes = denied.map(({ message }) => message).slice(0, mcpLimits.notes.value)
  return {
    content: [...contentOf(envelope, blocks), ...(notes.length === 0 ? [] : [own(`stopped: ${notes.join("; ")}`)])],
    structuredContent: (envelope.ok
      ? { value: envelope.value, ...rest }
      : { error: envelope.error, ...rest }) as unknown as Record<string, unknown>,
    ...(envelope.ok ? {} : { isError: true }),
  }
}
