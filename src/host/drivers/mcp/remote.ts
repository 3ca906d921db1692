/**
 * A call of a server that runs elsewhere, over streamable HTTP or the older `sse`.
 *
 * Guarantees: all of it goes through the call's outlet; a session that the server opened is closed again when the call has
 * its answer. Before the server has said what it is nothing was asked of it, so that a connection that broke is made again,
 * as often as the driver's `max_retries` says. What holds for a server that is started here holds here: it is asked what it is before the tool is called.
 */
import { setTimeout as pause } from "node:timers/promises"
import type { JsonObject, McpSpec } from "../../../manifest/types.ts"
import type { Failure, Success } from "../../failure.ts"
import { hostLimits } from "../../limits.ts"
import type { Binding, Desk } from "../kind.ts"
import { type Closable, loadSdk } from "./client.ts"
import { type OutletFetch, outletFetch } from "./outlet-fetch.ts"
import { callOver } from "./talk.ts"

interface Way {
  readonly transport: Closable
  /** tell the server that its session is over, where there is one */
  leave(): Promise<void>
}

const wayTo = async (url: URL, { transport }: McpSpec, { fetch }: OutletFetch): Promise<Way> => {
  const { SSEClientTransport, StreamableHTTPClientTransport } = await loadSdk()
  if (transport === "sse") return { transport: new SSEClientTransport(url, { fetch }), leave: async () => undefined }
  const streamed = new StreamableHTTPClientTransport(url, { fetch })
  return { transport: streamed, leave: () => streamed.terminateSession() }
}

const quietly = async (work: Promise<void>, ms: number): Promise<void> => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  work.then(resolve, () => resolve())
  await promise
  clearTimeout(timer)
}

const callOnce = async (
  desk: Desk,
  url: string,
  spec: McpSpec,
  binding: Binding,
  values: JsonObject,
): Promise<Success | Failure> => {
  const address = new URL(url)
  const outlet = outletFetch(desk, address)
  const { transport, leave } = await wayTo(address, spec, outlet)
  const end = { trouble: outlet.failure, leave: () => quietly(leave(), hostLimits.lastWordMs.value) }
  return callOver(transport, desk, spec, binding, values, end)
}

const isBroken = (outcome: Success | Failure): boolean =>
  !outcome.ok && outcome.code === "upstream_error" && outcome.details["during"] === "connect"

export const callRemote = async (
  desk: Desk,
  url: string,
  spec: McpSpec,
  binding: Binding,
  values: JsonObject,
): Promise<Success | Failure> => {
  const most = spec.connection.maxRetries ?? 0
  for (let tried = 0; ; tried += 1) {
    const outcome = await callOnce(desk, url, spec, binding, values)
    if (!isBroken(outcome) || tried >= most || desk.signal.aborted) return outcome
    await pause(hostLimits.mcpRetryMs.value * 2 ** tried, undefined, { signal: desk.signal }).catch(() => undefined)
  }
}
