/**
 * Sessions of the old era (2025-11-25 and before) over HTTP: one MCP server for each client that began with `initialize`.
 *
 * Guarantees: a session is one caller's, under one choice of tools; its id in anybody else's hands is as good as none (404),
 * and so is one that ended. They are bounded: of one caller, and all together, where one caller's never push out another's
 * that is in use. One without a request or an open stream ends by itself; an end cancels what it has under way.
 */
import { randomBytes } from "node:crypto"
import type { IncomingMessage, ServerResponse } from "node:http"
import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node"
import type { Server } from "@modelcontextprotocol/server"
import { mcpLimits } from "./limits.ts"

interface Session {
  readonly whose: string
  /** the caller and the choice, whole: nothing of them changes within a session */
  readonly key: string
  readonly transport: NodeStreamableHTTPServerTransport
  readonly server: Server
  readonly watched: ReadonlySet<string>
  /** requests and streams that are open */
  open: number
  used: number
}
interface NewSession {
  readonly whose: string
  readonly key: string
  readonly make: (watched: Set<string>) => Server
}

const refuse = (response: ServerResponse, status: number, code: number, message: string): void => {
  response.writeHead(status, { "content-type": "application/json", ...(status === 503 ? { "retry-after": "30" } : {}) })
  response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code, message } }))
}

export class Sessions implements AsyncDisposable {
  readonly #all = new Map<string, Session>()
  readonly #tidy = setInterval(() => this.#endIdle(), 60_000).unref()
  readonly #onFault: (error: unknown) => void
  constructor(onFault: (error: unknown) => void) {
    this.#onFault = onFault
  }
  get count(): number {
    return this.#all.size
  }
  get servers(): readonly Pick<Session, "whose" | "server" | "watched">[] {
    return [...this.#all.values()]
  }

  #end(id: string): void {
    const found = this.#all.get(id)
    this.#all.delete(id)
    void found?.server.close().catch(this.#onFault)
  }
  #endIdle(): void {
    const since = performance.now() - mcpLimits.sessionIdleMs.value
    for (const [id, { open, used }] of this.#all) if (open === 0 && used < since) this.#end(id)
  }
  /** The one that was not used for longest; those with something open come last. */
  #longest(fits: (session: Session) => boolean): string | undefined {
    const rest = [...this.#all].filter(([, session]) => fits(session))
    rest.sort(([, one], [, other]) => Math.min(one.open, 1) - Math.min(other.open, 1) || one.used - other.used)
    return rest[0]?.[0]
  }
  #makeRoom(whose: string): boolean {
    const own = [...this.#all.values()].filter((session) => session.whose === whose).length
    if (own >= mcpLimits.sessionsOfOne.value) {
      const oldest = this.#longest((session) => session.whose === whose)
      if (oldest !== undefined) this.#end(oldest)
    }
    if (this.#all.size < mcpLimits.sessions.value) return true
    const since = performance.now() - mcpLimits.sessionFreshMs.value
    const idle = this.#longest(({ open, used }) => open === 0 && used < since)
    if (idle === undefined) return false
    this.#end(idle)
    return true
  }

  async #serve(session: Session, request: IncomingMessage, response: ServerResponse, body: unknown): Promise<void> {
    session.open += 1
    response.once("close", () => {
      session.open -= 1
      session.used = performance.now()
    })
    await session.transport.handleRequest(request, response, body)
  }
  async begin(
    { whose, key, make }: NewSession,
    request: IncomingMessage,
    response: ServerResponse,
    body: unknown,
  ): Promise<void> {
    if (!this.#makeRoom(whose)) return refuse(response, 503, -32000, "there are too many sessions: try again later")
    const watched = new Set<string>()
    const server = make(watched)
    let own: string | undefined
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomBytes(24).toString("base64url"),
      onsessioninitialized: (id) => {
        own = id
        this.#all.set(id, session)
      },
      onsessionclosed: (id) => this.#end(id),
    })
    const session: Session = { whose, key, transport, server, watched, open: 0, used: performance.now() }
    server.onerror = this.#onFault
    await server.connect(transport)
    await this.#serve(session, request, response, body)
    // What was no good beginning leaves nothing.
    if (own === undefined) await server.close()
  }
  /** Of another caller's id as of one that is none. */
  async go(id: string, key: string, request: IncomingMessage, response: ServerResponse, body: unknown): Promise<void> {
    const session = this.#all.get(id)
    if (session === undefined || session.key !== key) return refuse(response, 404, -32001, "there is no such session")
    session.used = performance.now()
    await this.#serve(session, request, response, body)
  }
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#tidy)
    const servers = [...this.#all.values()].map(({ server }) => server.close().catch(this.#onFault))
    this.#all.clear()
    await Promise.all(servers)
  }
}
