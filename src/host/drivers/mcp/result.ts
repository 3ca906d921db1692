/**
 * What a server's tool gave back → the call's value or its failure.
 *
 * Guarantees: pure and total. `isError` is a failure with the server's words, whatever else is in it. A contract that
 * promises text gets the text, any other what is structured; text is read as JSON where the contract promises something
 * else, and never otherwise. Addresses of resources are addresses, without credentials or script. Nothing is made to fit: whether the
 * value is what the contract promises is judged afterwards.
 */
import type { CallToolResult } from "@modelcontextprotocol/client"
import type { ExtractPath } from "../../../manifest/templates/extract.ts"
import { shown } from "../../../manifest/values/diagnostics.ts"
import type { JsonObject, JsonSchema, JsonValue } from "../../../manifest/types.ts"
import type { Failure, Success } from "../../failure.ts"
import { extract as extracted } from "../../invoke/extract.ts"
import { hostLimits } from "../../limits.ts"

type Block = CallToolResult["content"][number]

const SCRIPT = new Set(["javascript:", "vbscript:"])

/** An address that may be shown and followed, or undefined. */
const safeUri = (written: string): string | undefined => {
  if (written.length > hostLimits.mcpUriChars.value || !URL.canParse(written)) return undefined
  const url = new URL(written)
  if (SCRIPT.has(url.protocol)) return undefined
  if (url.username === "" && url.password === "")
    return /[\u0000-\u0020\u007f-\u009f]/.test(written) ? url.href : written
  url.username = ""
  url.password = ""
  return url.href
}

class OddUri extends Error {}
const checkedUri = (written: string): string => {
  const uri = safeUri(written)
  if (uri === undefined)
    throw new OddUri(`the server names a resource by \`${shown(written, 60)}\`, which is no address`)
  return uri
}

const optional = (entries: Readonly<Record<string, JsonValue | undefined>>): JsonObject =>
  Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined)) as JsonObject

/** What a contract can hold of one block; what only a client of its own would use is left out. */
const blockOf = (block: Block): JsonObject => {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text }
    case "image":
    case "audio":
      return { type: block.type, mimeType: block.mimeType, data: block.data }
    case "resource": {
      const { resource } = block
      const { uri, mimeType } = resource
      const content: JsonObject = "text" in resource ? { text: resource.text } : { blob: resource.blob }
      return { type: "resource", resource: { uri: checkedUri(uri), ...optional({ mimeType }), ...content } }
    }
    case "resource_link": {
      const { uri, name, description, mimeType, size } = block
      return { type: "resource_link", uri: checkedUri(uri), name, ...optional({ description, mimeType, size }) }
    }
  }
}

const textOf = (content: readonly Block[]): string | undefined =>
  content.length > 0 && content.every((block) => block.type === "text")
    ? content.map((block) => (block.type === "text" ? block.text : "")).join("\n")
    : undefined

const readJson = (text: string): JsonValue | undefined => {
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    return undefined
  }
}

/** What a result is to a contract, where the driver takes nothing else of it. */
const payloadOf = ({ content, structuredContent }: CallToolResult, outputs: JsonSchema): JsonValue => {
  const text = textOf(content)
  // What is structured is told as text, too, for those who want text.
  if (text !== undefined && outputs["type"] === "string") return text
  if (structuredContent !== undefined) return structuredContent as JsonValue
  if (text === undefined) return { content: content.map(blockOf) }
  if (outputs["type"] === undefined) return text
  return readJson(text) ?? (outputs["type"] === "object" ? { content: content.map(blockOf) } : text)
}

/** `$.content[0].text`: a path into the protocol's own list, rather than into what it carries. */
const isIntoContent = ([first, second]: ExtractPath): boolean =>
  first?.take === "property" && first.name === "content" && second !== undefined && second.take !== "property"
const isIntoStructured = ([first]: ExtractPath): boolean =>
  first?.take === "property" && first.name === "structuredContent"

const taken = (result: CallToolResult, outputs: JsonSchema, extract: ExtractPath): JsonValue | undefined => {
  if (isIntoContent(extract)) return extracted({ content: result.content.map(blockOf) }, extract)
  if (isIntoStructured(extract))
    return result.structuredContent === undefined
      ? undefined
      : extracted(result.structuredContent as JsonValue, extract.slice(1))
  // A path leads into something, so that a text is never meant as it is.
  return extracted(payloadOf(result, extract.length === 0 ? outputs : { type: "object" }), extract)
}

export const readResult = (
  result: CallToolResult,
  outputs: JsonSchema,
  extract: ExtractPath,
  toolName: string,
): Success | Failure => {
  if (result.isError === true) {
    const said = textOf(result.content.filter((block) => block.type === "text")) ?? ""
    const words = shown(said, hostLimits.mcpMessageChars.value)
    return {
      ok: false,
      code: "upstream_error",
      message: words === "" ? `the server's tool \`${shown(toolName, 60)}\` failed` : words,
      details: { tool_name: toolName.toWellFormed() },
    }
  }
  try {
    const value = taken(result, outputs, extract)
    if (value !== undefined) return { ok: true, value, notes: [] }
    return {
      ok: false,
      code: "output_parse_failed",
      message: "`result_extract` leads to nothing in what the server gave back",
      hint: "compare it with what the server's tool returns",
      details: {},
    }
  } catch (error) {
    if (!(error instanceof OddUri)) throw error
    return { ok: false, code: "output_parse_failed", message: error.message, details: {} }
  }
}
