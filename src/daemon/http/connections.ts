/**
 * How many connections a listener has.
 *
 * Guarantees: bounded; at the limit a further connection takes the place of the one that has waited longest without having
 * shown a good token, so that strangers who say nothing keep nobody out. Where all have shown one, the further one is closed.
 */
import type { Server } from "node:http"
import type { Socket } from "node:net"

/** The same for a connection and for what TLS makes of it. */
const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`

export class Connections {
  readonly #most: number
  /** the oldest first */
  readonly #strangers = new Map<string, Socket>()
  #count = 0
  constructor(most: number) {
    this.#most = most
  }
  get count(): number {
    return this.#count
  }
  of(server: Server): void {
    server.prependListener("connection", (socket: Socket) => this.#admit(socket))
  }
  #admit(socket: Socket): void {
    if (this.#count >= this.#most) {
      const [oldest] = this.#strangers.values()
      if (oldest === undefined) return void socket.destroy()
      oldest.destroy()
    }
    const name = nameOf(socket)
    this.#count += 1
    this.#strangers.set(name, socket)
    socket.once("close", () => {
      this.#count -= 1
      if (this.#strangers.get(name) === socket) this.#strangers.delete(name)
    })
  }
  /** Who is at its other end has shown a good token. */
  isKnown(socket: Socket): void {
    this.#strangers.delete(nameOf(socket))
  }
}
