/** Lists in pages. Pure: a cursor is the key that a page begins after, so that what comes or goes between two pages moves nothing else. */
import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server"
import { mcpLimits } from "./limits.ts"

const CURSOR = /^[A-Za-z0-9_-]{1,1024}$/

export const pageOf = <T>(
  all: readonly T[],
  keyOf: (one: T) => string,
  cursor: string | undefined,
): { readonly page: T[]; readonly nextCursor?: string } => {
  if (cursor !== undefined && !CURSOR.test(cursor))
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, "this cursor is none that this list gave")
  const sorted = all.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1))
  const after = cursor === undefined ? undefined : Buffer.from(cursor, "base64url").toString("utf8")
  const rest = after === undefined ? sorted : sorted.filter((one) => keyOf(one) > after)
  const page = rest.slice(0, mcpLimits.page.value)
  const last = page.at(-1)
  if (last === undefined || rest.length <= page.length) return { page }
  return { page, nextCursor: Buffer.from(keyOf(last)).toString("base64url") }
}
