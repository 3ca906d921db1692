/**
 * A call of a server that runs elsewhere, over streamable HTTP or the older `sse`.
 *
 * Guarantees: all of it goes through the call's outlet; a session that the server opened is closed again when the call
 * has its answer. Before the server has said what it is nothing was asked of it, so that a connection that broke is made
 * again, as often as the driver's `max_retries` says. One that asked to be left alone for a while is, by later calls too.
 * A token goes to the server's own origin alone, in the header for it. What holds for a server that is started here holds
 * here: it is asked what it is before the tool is called.
 */
import { setTimeout as pause } from "node:timers/promises"
import type { JsonObject, McpSpec } from "../../../manifest/types.ts"
import type { Failure, Success } from "../../failure.ts"
import { hostLimits } from "../../limits.ts"
import type { Binding, Desk } from "../kind.ts"
import type { Challenge } from "../resource.ts"
import { outletFetch } from "./outlet-fetch.ts"
import { callOver } from "./talk.ts"
import { wayTo } from "./way.ts"

interface RemoteServer {
  readonly url: string
  readonly spec: McpSpec
  /** the secret that each request carries, by the driver's name for it */
  readonly bearer?: string | undefined
}

const uncarried = (name = ""): Failure => ({
  ok: false,
  code: "auth_required",
  message: `the value of \`secrets.${name}\` has a character that no header can carry`,
  hint: "set it again, without line ends",
  details: {},
})

const quietly = async (work: Promise<void>, ms: number): Promise<void> => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  work.then(resolve, () => resolve())
  await promise
  clearTimeout(timer)
}

/** A server that refused what was asked says what is wrong with the token. */
const withRefusal = (failure: Failure, { status, error, scopes = [] }: Challenge, signed: boolean): Failure => {
  const refused = { ...failure, details: { ...failure.details, status } }
  if (!signed) return { ...refused, code: "auth_required", message: `the server wants a login (${status})` }
  if (status === 401)
    return { ...refused, code: "auth_required", message: "the server does not take its token", expiry: "expired" }
  if (error !== "insufficient_scope") return refused
  return {
    ...refused,
    code: "auth_required",
    message: `the server wants a login for more (${scopes.join(" ") || "it does not say what"})`,
    details: { ...refused.details, scopes: [...scopes] },
    lacks: scopes,
  }
}

/** A server that asked to be left alone: whoever tries again, and later calls, hear of it. */
const leftAlone = async (
  desk: Desk,
  outcome: Success | Failure,
  ms: number | undefined,
): Promise<Success | Failure> => {
  if (ms === undefined) return outcome
  await desk.pace.leaveAlone(ms)
  if (outcome.ok) return outcome
  const hint = outcome.code === "rate_limited" ? { hint: `try again in ${Math.ceil(ms / 1000)} s` } : {}
  return { ...outcome, ...hint, details: { ...outcome.details, retry_after_ms: ms } }
}

const callOnce = async (
  desk: Desk,
  { url, bearer, spec }: RemoteServer,
  binding: Binding,
  values: JsonObject,
): Promise<Success | Failure> => {
  const early = await desk.pace.turn(undefined)
  if (early !== undefined) return { ...early, undone: true }
  const address = new URL(url)
  const token = bearer === undefined ? undefined : await desk.secret(bearer, address.hostname)
  if (token !== undefined && !/^[\u0021-\u007e]+$/.test(token)) return uncarried(bearer)
  const outlet = outletFetch(desk, address, token === undefined ? {} : { bearer: token })
  const { transport, leave } = await wayTo(address, spec, outlet)
  const end = { trouble: outlet.failure, leave: () => quietly(leave(), hostLimits.lastWordMs.value) }
  const outcome = await leftAlone(desk, await callOver(transport, desk, spec, binding, values, end), outlet.askedMs())
  const refused = outlet.refused()
  // One that took the call and refused a later request, for the rest of its answer or the session's end, may have done it.
  if (outcome.ok || outcome.undone !== true) return outcome
  if (refused !== undefined) return withRefusal(outcome, refused, token !== undefined)
  const { undone: _uncertain, ...rest } = outcome
  return outcome.details["status"] === 401 || outcome.details["status"] === 403 ? rest : outcome
}

const isBroken = (outcome: Success | Failure): boolean =>
  !outcome.ok && outcome.code === "upstream_error" && outcome.details["during"] === "connect"

export const callRemote = async (
  desk: Desk,
  server: RemoteServer,
  binding: Binding,
  values: JsonObject,
): Promise<Success | Failure> => {
  const most = server.spec.connection.maxRetries ?? 0
  for (let tried = 0; ; tried += 1) {
    const outcome = await callOnce(desk, server, binding, values)
    if (!isBroken(outcome) || tried >= most || desk.signal.aborted) return outcome
    await pause(hostLimits.mcpRetryMs.value * 2 ** tried, undefined, { signal: desk.signal }).catch(() => undefined)
  }
}
