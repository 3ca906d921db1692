/**
 * Where a provider sends a person's browser back to: a port of this machine, open for one login alone.
 *
 * Guarantees: bound to 127.0.0.1. What is taken is a plain navigation to the one path, under the one host name that was
 * handed out, with a `state` that fits this login, once; everything else is refused, and told. The page that answers holds
 * nothing of the request. Requests are bounded in number and size; all of it is gone when the login ends.
 * Does not: know what else is in the address; whoever began the login checks that.
 */
import { once } from "node:events"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import type { LoginKey } from "../../store/store.ts"
import { callbackServer, closeServer, isNavigation, page, pageHeaders, type RefusedCallback } from "./page.ts"
import { CallbackTokens } from "./tokens.ts"

export interface Callback extends AsyncDisposable {
  readonly redirectUri: string
  readonly state: string
  /** the address that came back; undefined where the signal came first */
  wait(signal: AbortSignal): Promise<URL | undefined>
}

export interface CallbackOptions {
  readonly key: LoginKey
  /** absent: any port */
  readonly port?: number
  readonly forMs: number
  /** told of what was refused, and why */
  readonly refused: (why: RefusedCallback) => void
}

const PATH = "/callback"

export const openLoopbackCallback = async (options: CallbackOptions): Promise<Callback> => {
  const { key, port = 0, forMs, refused } = options
  const tokens = new CallbackTokens()
  const state = tokens.issue(key, forMs)
  const came = Promise.withResolvers<URL>()
  const server = callbackServer(refused)
  let hostName = ""
  const faultOf = (request: IncomingMessage): RefusedCallback | URL => {
    if (request.headers.host !== hostName) return "wrong-host"
    const url = URL.parse(request.url ?? "", `http://${hostName}`)
    if (url === null || url.host !== hostName || url.pathname !== PATH) return "wrong-path"
    if (request.method !== "GET") return "wrong-method"
    if (!isNavigation(request)) return "wrong-origin"
    const states = url.searchParams.getAll("state")
    return (states.length === 1 ? tokens.redeem(states[0] ?? "", key) : "malformed") ?? url
  }
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    request.resume()
    const found = faultOf(request)
    if (found instanceof URL) {
      response.writeHead(200, pageHeaders).end(page("This login went back to Caisson. You can close this page."))
      came.resolve(found)
      return
    }
    refused(found)
    response
      .writeHead(found === "wrong-path" ? 404 : 400, pageHeaders)
      .end(page("This is no answer that a login waits for."))
  })
  server.listen(port, "127.0.0.1")
  await once(server, "listening")
  hostName = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    redirectUri: `http://${hostName}${PATH}`,
    state,
    wait: async (signal) => {
      const ended = Promise.withResolvers<undefined>()
      const stop = (): void => ended.resolve(undefined)
      if (signal.aborted) stop()
      signal.addEventListener("abort", stop, { once: true })
      try {
        return await Promise.race([came.promise, ended.promise])
      } finally {
        signal.removeEventListener("abort", stop)
      }
    },
    [Symbol.asyncDispose]: () => closeServer(server),
  }
}
