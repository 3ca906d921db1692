/**
 * A contract's value for a client that reads: a prompt or a resource, run sealed as every call.
 *
 * Guarantees: the same authorization and receipt as a tool's call; whoever leaves cancels it; what failed is a protocol error
 * with its code, because a reader has no other.
 */
import {
  type InputRequiredResult,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server"
import type { Caller } from "../../host/access/caller.ts"
import type { Host } from "../../host/types.ts"
import type { JsonObject, JsonValue } from "../../manifest/types.ts"
import type { Entry } from "../catalogue/catalogue.ts"
import { askBefore } from "./before.ts"
import { reachOf } from "./reach.ts"
import { checkState, requestOf, type SealedState, type States, whoseOf } from "./states.ts"

export interface Calling {
  readonly host: Pick<Host, "call">
  readonly caller: Caller
  readonly states: States
  readonly workspace?: string
  readonly empty?: string
}
interface Named {
  readonly method: string
  readonly name: string
  readonly given: unknown
}

export const readValue = async (
  { host, caller, states, workspace, empty }: Calling,
  entry: Entry,
  given: JsonObject,
  named: Named,
  server: Server,
  ctx: ServerContext,
): Promise<
  { readonly is: "value"; readonly value: JsonValue } | { readonly is: "asks"; readonly result: InputRequiredResult }
> => {
  const whose = whoseOf(caller)
  const request = requestOf(named.method, named.name, named.given)
  const state = checkState(ctx.mcpReq.requestState<SealedState>(), whose, request)
  const before = await askBefore(entry, given, state, { states, whose, request, reach: reachOf(server, ctx) }, ctx)
  if (before.is === "asks") return before
  if (before.is === "refused")
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `input_invalid: ${before.message}`)
  const asked = { tool: entry.contract.id, input: before.input as JsonValue }
  const envelope = await host.call(workspace === undefined ? asked : { ...asked, workspace }, {
    caller,
    signal: ctx.mcpReq.signal,
    ...(empty === undefined ? {} : { empty }),
  })
  if (envelope.ok) return { is: "value", value: envelope.value }
  const { code, message, hint } = envelope.error
  throw new ProtocolError(
    envelope.error.class === "invalid" ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError,
    `${code}: ${message}`,
    { code, hint, call: envelope.call, receipt: envelope.receipt },
  )
}
