/**
 * A server that answers as the public text of the key-value API, version 2, says: data, metadata, LIST, check-and-set,
 * soft deletion, tokens, AppRole, namespaces, sealing. No such server can be had from the registries that tests reach.
 */
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { createServer as createTlsServer } from "node:https"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"

interface Version {
  readonly data: unknown
  deleted: boolean
}

export class KvServer implements AsyncDisposable {
  readonly secrets = new Map<string, Version[]>()
  readonly tokens = new Set<string>()
  readonly requests: { readonly method: string; readonly path: string; readonly namespace?: string }[] = []
  readonly roles = new Map<string, string>()
  /** answers everything with this where it is set */
  status: number | undefined
  casRequired = false
  /** between a look at the metadata and the writing that follows */
  beforeWrite: (() => void) | undefined
  readonly #server
  readonly #scheme: "http" | "https"
  constructor(tls?: { readonly key: string; readonly cert: string }) {
    const answer = (incoming: IncomingMessage, outgoing: ServerResponse): void => void this.#answer(incoming, outgoing)
    this.#server = tls === undefined ? createServer(answer) : createTlsServer(tls, answer)
    this.#scheme = tls === undefined ? "http" : "https"
  }
  async start(): Promise<this> {
    this.#server.listen(0, "127.0.0.1")
    await once(this.#server, "listening")
    return this
  }
  get address(): string {
    return `${this.#scheme}://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`
  }
  put(path: string, value: unknown): void {
    const versions = this.secrets.get(path) ?? []
    this.secrets.set(path, [...versions, { data: value, deleted: false }])
  }
  async #answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const url = new URL(incoming.url ?? "/", "http://vault")
    const namespace = incoming.headers["x-vault-namespace"]
    const method = url.searchParams.get("list") === "true" ? "LIST" : (incoming.method ?? "GET")
    const body = await text(incoming)
    this.requests.push({
      method,
      path: decodeURIComponent(url.pathname),
      ...(typeof namespace === "string" ? { namespace } : {}),
    })
    const say = (status: number, content?: unknown): void => {
      outgoing.writeHead(status, { "content-type": "application/json" })
      outgoing.end(content === undefined ? "" : JSON.stringify({ request_id: randomUUID(), ...(content as object) }))
    }
    const no = (status: number, message: string): void => say(status, { errors: [message] })
    if (this.status !== undefined) {
      outgoing.setHeader("location", "http://elsewhere.test/v1/")
      return no(this.status, "Vault is sealed")
    }
    if (incoming.headers["x-vault-request"] !== "true") return no(400, "missing X-Vault-Request")
    const path = url.pathname.split("/").slice(2).map(decodeURIComponent)
    if (path.join("/") === "auth/approle/login") {
      const { role_id: role, secret_id: secret } = JSON.parse(body) as Record<string, string>
      if (this.roles.get(role ?? "") !== secret) return no(400, "invalid role or secret ID")
      const token = `s.${randomUUID()}`
      this.tokens.add(token)
      return say(200, { auth: { client_token: token, lease_duration: 1200, renewable: true } })
    }
    if (!this.tokens.has(String(incoming.headers["x-vault-token"]))) return no(403, "permission denied")
    const [mount, part, ...rest] = path
    if (mount !== "secret" || (part !== "data" && part !== "metadata")) return no(404, "no handler for route")
    const name = rest.filter((segment) => segment !== "").join("/")
    if (method === "LIST") {
      const keys = new Set<string>()
      for (const key of this.secrets.keys())
        if (key.startsWith(`${name}/`)) {
          const [first = "", ...more] = key.slice(name.length + 1).split("/")
          keys.add(more.length > 0 ? `${first}/` : first)
        }
      return keys.size === 0 ? say(404, { errors: [] }) : say(200, { data: { keys: [...keys].sort() } })
    }
    const versions = this.secrets.get(name) ?? []
    const last = versions.at(-1)
    if (part === "metadata" && method === "GET") {
      if (last === undefined) return say(404, { errors: [] })
      return say(200, { data: { current_version: versions.length, cas_required: this.casRequired, versions: {} } })
    }
    if (part === "metadata" && method === "DELETE") {
      this.secrets.delete(name)
      return say(204)
    }
    if (part === "data" && method === "GET") {
      if (last === undefined) return say(404, { errors: [] })
      const metadata = {
        version: versions.length,
        destroyed: false,
        deletion_time: last.deleted ? "2026-01-01T00:00:00Z" : "",
      }
      if (last.deleted) return say(404, { data: { data: null, metadata } })
      return say(200, { data: { data: last.data, metadata } })
    }
    if (part === "data" && method === "POST") {
      this.beforeWrite?.()
      this.beforeWrite = undefined
      const { data, options } = JSON.parse(body) as { data: unknown; options?: { cas?: number } }
      const current = (this.secrets.get(name) ?? []).length
      if (options?.cas === undefined && this.casRequired)
        return no(400, "check-and-set parameter required for this call")
      if (options?.cas !== undefined && options.cas !== current)
        return no(400, "check-and-set parameter did not match the current version")
      this.put(name, data)
      return say(200, { data: { version: current + 1, created_time: "2026-01-01T00:00:00Z", destroyed: false } })
    }
    return no(405, "unsupported operation")
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, "close")
  }
}
