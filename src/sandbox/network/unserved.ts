/**
 * A sandbox's listeners while nobody serves them: before its call has a proxy, and after.
 *
 * Guarantees: whoever connects then is turned away at once, and nothing that they do to the connection, nor an error of the
 * listener itself, ends this process. Once somebody hears of connections this does nothing.
 */
import type { Socket as UdpSocket } from "node:dgram"
import { Server } from "node:net"

const nothing = (): void => undefined

export const turnAwayUnserved = (listener: Server | UdpSocket): void => {
  listener.on("error", nothing)
  if (!(listener instanceof Server)) return
  listener.on("connection", (socket) => {
    if (listener.listenerCount("connection") > 1) return
    socket.on("error", nothing)
    socket.destroy()
  })
}
