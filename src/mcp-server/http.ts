/**
 * The MCP server over streamable HTTP, both eras, for whoever the daemon has authenticated.
 *
 * Guarantees: an exchange is one caller's; nothing is kept between exchanges but open subscriptions, which are bounded. Who
 * calls comes from the daemon beside the request, never out of it.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { toNodeHandler } from "@modelcontextprotocol/node"
import { createMcpHandler } from "@modelcontextprotocol/server"
import type { Caller } from "../host/access/caller.ts"
import { createStates } from "./asking.ts"
import { mcpLimits } from "./limits.ts"
import { createMcpServer, type McpOptions } from "./server.ts"

export type McpHost = McpOptions["host"]
/** What a client chose by the address that it came to. */
export type McpChoice = Pick<McpOptions, "workspace" | "tags" | "finds">

export interface McpOverHttp extends AsyncDisposable {
  serve(
    request: IncomingMessage,
    response: ServerResponse,
    caller: Caller,
    choice: McpChoice,
    body: unknown,
  ): Promise<void>
  /** The catalogue is another one by now. */
  changed(): void
}

/** A request always has both. */
type Asked = IncomingMessage & { method: string; url: string }

interface Whose {
  readonly caller: Caller
  readonly choice: McpChoice
}

export const createMcpOverHttp = (parts: {
  readonly host: McpHost
  readonly version: string
  readonly empty: string
  readonly onFault: (error: unknown) => void
}): McpOverHttp => {
  const { host, version, empty, onFault } = parts
  const states = createStates()
  const handler = createMcpHandler(
    ({ authInfo }) => {
      const whose = authInfo?.extra?.["whose"] as Whose | undefined
      if (whose === undefined) throw new Error("an exchange without a caller")
      const caller: Caller = { ...whose.caller, how: "mcp" }
      return createMcpServer({ host, version, states, empty, caller, ...whose.choice })
    },
    { maxRequestBodySize: mcpLimits.requestBytes.value, onerror: onFault },
  )
  const serve = toNodeHandler(handler, { maxRequestBodySize: mcpLimits.requestBytes.value, onerror: onFault })
  return {
    serve: (request, response, caller, choice, body) => {
      const whose: Whose = { caller, choice }
      const auth = { token: "", clientId: caller.actor, scopes: [], extra: { whose } }
      return serve(Object.assign(request as Asked, { auth }), response, body)
    },
    changed: () => handler.notify.toolsChanged(),
    [Symbol.asyncDispose]: () => handler.close(),
  }
}
