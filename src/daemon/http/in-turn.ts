/**
 * Requests of one connection, one after the other.
 *
 * Guarantees: a request that was sent before the one ahead of it is answered waits for that answer; with too many of them the
 * connection ends. So one connection has one request under way, whatever it sends at once.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { daemonLimits } from "../limits.ts"

export const inTurn = (route: (request: IncomingMessage, response: ServerResponse) => void): RequestListener => {
  const lines = new WeakMap<Socket, (() => void)[]>()
  return (request, response) => {
    const { socket } = request
    const line = lines.get(socket) ?? []
    lines.set(socket, line)
    const serve = (): void => {
      response.once("close", () => {
        line.shift()
        if (!socket.destroyed) line[0]?.()
      })
      route(request, response)
    }
    line.push(serve)
    if (line.length > daemonLimits.pipelined.value) socket.destroy()
    else if (line.length === 1) serve()
  }
}
