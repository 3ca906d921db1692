/**
 * What a client can read beside the tools: calls as they ended, held calls with what they would change, receipts, and the
 * contracts that say that their value is a resource, run sealed each time.
 *
 * Guarantees: of calls its caller's own alone; whether another's is there nobody learns. An address of this host's own is
 * never a contract's, and one that two contracts answer for is neither's.
 */
import {
  type InputRequiredResult,
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  type Resource,
  ResourceNotFoundError,
  type ResourceTemplateType,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server"
import type { Caller } from "../host/access/caller.ts"
import type { Host } from "../host/types.ts"
import type { JsonObject, JsonValue } from "../manifest/types.ts"
import { inputIn } from "./catalogue/address.ts"
import type { Catalogue, Entry } from "./catalogue/catalogue.ts"
import { type Calling, readValue } from "./calls/reading.ts"
import { mcpLimits } from "./limits.ts"

type ReadingHost = Pick<Host, "approvals" | "approval" | "recorded" | "receipts">

const ADDRESS = /^caisson:\/\/(calls|approvals|receipts)\/([0-9A-Z]{26})$/
const mimeType = "application/json"

/** Contracts first, which are the same each time. */
export const resourcesOf = async (
  host: Pick<ReadingHost, "approvals">,
  caller: Caller,
  { resources }: Catalogue,
): Promise<Resource[]> => {
  const own = [...resources.values()]
    .filter(({ shown }) => !shown.uri?.includes("{"))
    .map(({ name, contract, shown }) => ({
      uri: shown.uri ?? "",
      name,
      title: contract.name,
      description: contract.description,
      ...(shown.mimeType === undefined ? {} : { mimeType: shown.mimeType }),
    }))
  const held = (await host.approvals({ caller })).map(({ id, tool, changes }) => ({
    uri: `caisson://approvals/${id}`,
    name: `${tool} ${id}`,
    description: `${changes} changed path${changes === 1 ? "" : "s"}, held until somebody decides`,
    mimeType,
  }))
  return [...own, ...held]
}

const ownTemplates: readonly ResourceTemplateType[] = [
  { kind: "approvals", name: "held call", description: "what a held call would change" },
  { kind: "calls", name: "call", description: "what a call answered, with effects, denials and receipt" },
  { kind: "receipts", name: "receipts", description: "what the log has of a call, chained and signed" },
].map(({ kind, name, description }) => ({ uriTemplate: `caisson://${kind}/{call}`, name, description, mimeType }))

export const templatesOf = ({ resources }: Catalogue): ResourceTemplateType[] => [
  ...ownTemplates,
  ...[...resources.values()]
    .filter(({ shown }) => shown.uri?.includes("{"))
    .map(({ name, contract, shown }) => ({
      uriTemplate: shown.uri ?? "",
      name,
      title: contract.name,
      description: contract.description,
      ...(shown.mimeType === undefined ? {} : { mimeType: shown.mimeType }),
    })),
]

const contentOf = (uri: string, { shown }: Entry, value: JsonValue): ReadResourceResult => {
  const media = shown.mimeType
  const isBlob = typeof value === "object" && value !== null && !Array.isArray(value) && "blob" in value
  const blob = isBlob ? (value as JsonObject)["blob"] : undefined
  if (typeof blob === "string") return { contents: [{ uri, mimeType: media ?? "application/octet-stream", blob }] }
  const text = typeof value === "string" ? value : JSON.stringify(value)
  return { contents: [{ uri, mimeType: media ?? (typeof value === "string" ? "text/plain" : mimeType), text }] }
}

const ownOf = async (host: ReadingHost, caller: Caller, kind: string, id: string): Promise<unknown> => {
  if (kind === "approvals") return host.approval(id, { caller })
  if (kind === "calls") return host.recorded(id, { caller })
  const told = await host.receipts({ caller, call: id })
  return told.ok && told.receipts.length > 0 ? told.receipts : undefined
}

export const readResource = async (
  calling: Calling & { readonly host: ReadingHost },
  catalogue: () => Promise<Catalogue>,
  uri: string,
  server: Server,
  ctx: ServerContext,
): Promise<ReadResourceResult | InputRequiredResult> => {
  const { host, caller } = calling
  const [, kind = "", id = ""] = ADDRESS.exec(uri) ?? []
  if (kind !== "") {
    const found = await ownOf(host, caller, kind, id)
    if (found === undefined) throw new ResourceNotFoundError(uri)
    return { contents: [{ uri, mimeType, text: JSON.stringify(found) }] }
  }
  const fit = [...(await catalogue()).resources].flatMap(([pattern, entry]) => {
    const input = inputIn(pattern, uri)
    return input === undefined ? [] : [{ entry, input }]
  })
  const [one, other] = fit
  if (one !== undefined && other !== undefined)
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      `more than one contract answers for this address: ${fit.map(({ entry }) => entry.contract.id).join(", ")}`.slice(
        0,
        mcpLimits.questionChars.value,
      ),
    )
  if (one !== undefined) {
    const { entry, input } = one
    const read = await readValue(calling, entry, input, { method: "resources/read", name: uri, given: {} }, server, ctx)
    return read.is === "asks" ? read.result : contentOf(uri, entry, read.value)
  }
  throw new ResourceNotFoundError(uri)
}
