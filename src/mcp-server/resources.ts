/** What a client can read beside the tools: calls as they ended, and held calls with what they would change; its caller's own. */
import { type ListResourcesResult, type ReadResourceResult, ResourceNotFoundError } from "@modelcontextprotocol/server"
import type { Caller } from "../host/access/caller.ts"
import type { Host } from "../host/types.ts"

const ADDRESS = /^caisson:\/\/(calls|approvals)\/([0-9A-Z]{26})$/
const mimeType = "application/json"

export const listResources = async (host: Pick<Host, "approvals">, caller: Caller): Promise<ListResourcesResult> => ({
  resources: (await host.approvals({ caller })).map(({ id, tool, changes }) => ({
    uri: `caisson://approvals/${id}`,
    name: `${tool} ${id}`,
    description: `${changes} changed path${changes === 1 ? "" : "s"}, held until somebody decides`,
    mimeType,
  })),
})

export const readResource = async (
  host: Pick<Host, "approval" | "recorded">,
  caller: Caller,
  uri: string,
): Promise<ReadResourceResult> => {
  const [, kind, id = ""] = ADDRESS.exec(uri) ?? []
  const found =
    kind === "approvals"
      ? await host.approval(id, { caller })
      : kind === "calls"
        ? await host.recorded(id, { caller })
        : undefined
  if (found === undefined) throw new ResourceNotFoundError(uri)
  return { contents: [{ uri, mimeType, text: JSON.stringify(found) }] }
}
