/**
 * A call's value as content that a client shows: text, pictures, sound, resources.
 *
 * Guarantees: pure and total. Only a contract that says its value is blocks has it read as such, and only blocks that are
 * whole pass; anything else is text. What is in a block is the tool's word: its addresses are none of this host's own.
 */
import type { ContentBlock } from "@modelcontextprotocol/server"
import type { JsonValue } from "../../manifest/types.ts"
import { mcpLimits } from "../limits.ts"

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/
const MEDIA = /^[\w.+-]{1,64}\/[\w.+-]{1,64}$/
const ADDRESS = /^[a-z][a-z0-9+.-]{0,31}:\S{1,2000}$/i
const OWN = /^(?:caisson|javascript|vbscript):/i

type Fields = Readonly<Record<string, JsonValue | undefined>>
const isObject = (value: JsonValue | undefined): value is Record<string, JsonValue> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const text = (value: JsonValue | undefined): string | undefined => (typeof value === "string" ? value : undefined)
const data = (value: JsonValue | undefined): string | undefined =>
  typeof value === "string" && value.length % 4 === 0 && BASE64.test(value) ? value : undefined
const media = (value: JsonValue | undefined): string | undefined =>
  typeof value === "string" && MEDIA.test(value) ? value : undefined
const address = (value: JsonValue | undefined): string | undefined =>
  typeof value === "string" && ADDRESS.test(value) && !OWN.test(value) ? value : undefined

const resourceOf = (from: Fields): ContentBlock | undefined => {
  const uri = address(from["uri"])
  if (uri === undefined) return undefined
  const mimeType = media(from["mimeType"])
  const rest = { uri, ...(mimeType === undefined ? {} : { mimeType }) }
  const words = text(from["text"])
  if (words !== undefined) return { type: "resource", resource: { ...rest, text: words } }
  const blob = data(from["blob"])
  return blob === undefined ? undefined : { type: "resource", resource: { ...rest, blob } }
}

export const blockOf = (written: JsonValue): ContentBlock | undefined => {
  if (!isObject(written)) return undefined
  switch (written["type"]) {
    case "text": {
      const words = text(written["text"])
      return words === undefined ? undefined : { type: "text", text: words }
    }
    case "image":
    case "audio": {
      const bytes = data(written["data"])
      const mimeType = media(written["mimeType"])
      if (bytes === undefined || mimeType === undefined) return undefined
      return { type: written["type"], data: bytes, mimeType }
    }
    case "resource":
      return isObject(written["resource"]) ? resourceOf(written["resource"]) : undefined
    default:
      return undefined
  }
}

/** Undefined: it is no list of blocks. */
export const blocksOf = (value: JsonValue): ContentBlock[] | undefined => {
  const list = isObject(value) ? value["content"] : value
  if (!Array.isArray(list) || list.length === 0 || list.length > mcpLimits.blocks.value) return undefined
  const blocks = (list as readonly JsonValue[]).map(blockOf)
  return blocks.every((block) => block !== undefined) ? blocks : undefined
}
