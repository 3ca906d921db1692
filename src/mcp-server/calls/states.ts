/**
 * What a client carries from one round of a request to the next.
 *
 * Guarantees: sealed by this process and nobody else, good for a while, for the one who was asked, and for the very request
 * that was asked about: another's, another tool's, another input's is refused. What it holds says nothing that the caller
 * did not give or may not know.
 */
import { createHash, randomBytes } from "node:crypto"
import { createRequestStateCodec, ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server"
import { type Caller, tenantOf } from "../../host/access/caller.ts"
import type { JsonObject } from "../../manifest/types.ts"
import { mcpLimits } from "../limits.ts"

export type State =
  /** what was answered so far, before the call */
  | { readonly about: "before"; readonly given: JsonObject }
  /** the effects that are held under this id */
  | { readonly about: "held"; readonly held: string }
  /** the call that waits for an answer of its own */
  | { readonly about: "running"; readonly running: string }
  /** a login */
  | { readonly about: "login"; readonly login: string }
export type SealedState = State & { readonly whose: string; readonly request: string }

/** One for each process: nobody else's states are taken. */
export const createStates = () =>
  createRequestStateCodec<SealedState>({ key: randomBytes(32), ttlSeconds: mcpLimits.stateSeconds.value })
export type States = ReturnType<typeof createStates>

/** Tenant, user and who was authenticated, as one word. */
export const whoseOf = (caller: Caller): string => JSON.stringify([tenantOf(caller), caller.user, caller.actor])

/** Whose things something is about. */
export type Subject = Pick<Caller, "tenant" | "user">
/** Of this user, whoever acts for them. */
export const isOf = (whose: string, of: Subject): boolean =>
  whose.startsWith(JSON.stringify([tenantOf(of), of.user]).slice(0, -1) + ",")

/** The request that it belongs to. */
export const requestOf = (method: string, name: string, given: unknown): string =>
  createHash("sha256")
    .update(JSON.stringify([method, name, given ?? {}]))
    .digest("base64url")

export const checkState = (state: SealedState | undefined, whose: string, request: string): State | undefined => {
  if (state === undefined) return undefined
  if (state.whose !== whose || state.request !== request)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, "this state is of another request or another caller's", {
      reason: "invalid_request_state",
    })
  return state
}
