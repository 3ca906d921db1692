/**
 * The MCP server over streamable HTTP, both eras, for whoever the daemon has authenticated.
 *
 * Guarantees: an exchange is one caller's. Of the new era nothing is kept between exchanges but calls that wait for an answer
 * or are tasks, and open subscriptions; of the old one, sessions; all bounded, each its caller's own. Who calls comes from the
 * daemon beside the request, never out of it.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { toNodeHandler } from "@modelcontextprotocol/node"
import { createMcpHandler, type McpServerFactory, PROTOCOL_VERSION_META_KEY } from "@modelcontextprotocol/server"
import type { Caller } from "../host/access/caller.ts"
import { Logins } from "./calls/login.ts"
import { Runs } from "./calls/runs.ts"
import { createStates, isOf, type Subject, whoseOf } from "./calls/states.ts"
import { mcpLimits } from "./limits.ts"
import { isDeeperThan, isLasting } from "./message.ts"
import { createMcpServer, type McpOptions } from "./server.ts"
import { Sessions } from "./sessions.ts"
import { Subscribers } from "./subscribers.ts"

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
  /** Effects of this user's are held under the id, or were decided about. */
  held(of: Subject, id: string): void
}

/** A request always has both. */
type Asked = IncomingMessage & { method: string; url: string }

interface Whose {
  readonly caller: Caller
  readonly choice: McpChoice
}

const fieldOf = (value: unknown, key: string): unknown =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>)[key] : undefined

/** It says that it is of the new era. */
const isModern = (body: unknown): boolean =>
  fieldOf(fieldOf(fieldOf(body, "params"), "_meta"), PROTOCOL_VERSION_META_KEY) !== undefined

/** Whoever is not there to hear it misses it. */
const tell = (told: Promise<void>): void => void told.catch(() => undefined)

const tooMany = (response: ServerResponse, status: number, message: string): void => {
  response.writeHead(status, { "content-type": "application/json" })
  response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32600, message } }))
}

export const createMcpOverHttp = (parts: {
  readonly host: McpHost
  readonly version: string
  readonly empty: string
  readonly onFault: (error: unknown) => void
}): McpOverHttp => {
  const { host, version, empty, onFault } = parts
  const states = createStates()
  const runs = new Runs()
  const logins = new Logins()
  const serverFor = ({ caller, choice }: Whose, more: Pick<McpOptions, "watched"> = {}) =>
    createMcpServer({
      host,
      version,
      states,
      runs,
      logins,
      empty,
      caller: { ...caller, how: "mcp" },
      ...choice,
      ...more,
    })
  const factory: McpServerFactory = ({ authInfo }) => {
    const whose = authInfo?.extra?.["whose"] as Whose | undefined
    if (whose === undefined) throw new Error("an exchange without a caller")
    return serverFor(whose)
  }
  // What a client did wrong it is told; it is no fault of the daemon's.
  const options = { maxRequestBodySize: mcpLimits.requestBytes.value }
  const handler = createMcpHandler(factory, options)
  const serve = toNodeHandler(handler, { ...options, onerror: onFault })
  const sessions = new Sessions(() => undefined)
  const subscribers = new Subscribers(factory, () => undefined)
  const listen = async (whose: string, request: Asked, response: ServerResponse, body: unknown): Promise<void> => {
    const own = subscribers.handlerOf(whose)
    if (own === undefined) return tooMany(response, 503, "there are too many subscriptions")
    await toNodeHandler(own, { ...options, onerror: onFault })(request, response, body)
  }
  return {
    serve: async (request, response, caller, choice, body) => {
      const of: Whose = { caller, choice }
      const auth = { token: "", clientId: caller.actor, scopes: [], extra: { whose: of } }
      const asked = Object.assign(request as Asked, { auth })
      const whose = whoseOf(caller)
      if (Array.isArray(body) && body.length > mcpLimits.batch.value)
        return tooMany(response, 400, `a batch has at most ${mcpLimits.batch.value} messages`)
      if (isDeeperThan(body, mcpLimits.depth.value))
        return tooMany(response, 400, `a message has at most ${mcpLimits.depth.value} levels`)
      if (isLasting(body) && JSON.stringify(body).length > mcpLimits.lastingChars.value)
        return tooMany(response, 413, `such a message has at most ${mcpLimits.lastingChars.value} characters`)
      if (!isModern(body)) {
        const key = JSON.stringify(of)
        const id = request.headers["mcp-session-id"]
        if (typeof id === "string") return sessions.go(id, key, asked, response, body)
        if (fieldOf(body, "method") === "initialize")
          return sessions.begin({ whose, key, make: (watched) => serverFor(of, { watched }) }, asked, response, body)
      } else if (fieldOf(body, "method") === "subscriptions/listen") return listen(whose, asked, response, body)
      await serve(asked, response, body)
    },
    changed: () => {
      subscribers.listsChanged()
      for (const { server } of sessions.servers) {
        tell(server.sendToolListChanged())
        tell(server.sendPromptListChanged())
        tell(server.sendResourceListChanged())
      }
    },
    held: (of, id) => {
      const uri = `caisson://approvals/${id}`
      subscribers.updated((whose) => isOf(whose, of), uri)
      for (const { server, whose, watched } of sessions.servers) {
        if (!isOf(whose, of)) continue
        tell(server.sendResourceListChanged())
        if (watched.has(uri)) tell(server.sendResourceUpdated({ uri }))
      }
    },
    [Symbol.asyncDispose]: async () => {
      runs[Symbol.dispose]()
      logins[Symbol.dispose]()
      await Promise.all([handler.close(), sessions[Symbol.asyncDispose](), subscribers[Symbol.asyncDispose]()])
    },
  }
}
