/**
 * A remote server as a resource that takes tokens: what it says to somebody without one.
 *
 * Guarantees: it is asked on the way of the driver's own requests, without a token, and no tool is called: only what it is,
 * and what it lists.
 */
import type { McpSpec } from "../../../manifest/types.ts"
import type { Answer } from "../kind.ts"
import type { Challenge, ProtectedResource } from "../resource.ts"
import { Connection, loadSdk } from "./client.ts"
import { outletFetch } from "./outlet-fetch.ts"
import { wayTo } from "./way.ts"

export const protectedResource = (url: string, spec: McpSpec): ProtectedResource => ({
  url,
  ask: async ({ signal, connect }): Promise<Answer<Challenge | undefined>> => {
    const address = new URL(url)
    const outlet = outletFetch({ signal, outlet: { connect }, note: () => undefined }, address)
    const { transport } = await wayTo(address, spec, outlet)
    await using connection = new Connection(
      await loadSdk(),
      transport,
      { signal, tell: () => undefined },
      {
        version: spec.protocolVersion,
        timeoutMs: spec.connection.timeoutMs,
        kept: false,
        trouble: outlet.failure,
      },
    )
    const failed = await connection.open()
    const listed = failed ?? (await connection.find(""))
    const refused = outlet.refused()
    if (refused !== undefined) return { ok: true, value: refused }
    const failure = outlet.failure()
    if (failure !== undefined) return failure
    return listed.ok || !signal.aborted ? { ok: true, value: undefined } : listed
  },
})
