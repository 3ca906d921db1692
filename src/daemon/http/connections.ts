/**
 * How many connections a listener has.
 *
 * Guarantees: bounded; at the limit a further connection takes the place of the one that has waited longest without having
 * shown a good token, so that strangers who say nothing keep nobody out. Of one user only so many count as known: with the
 * others of theirs it is as with strangers', so that one user's keep nobody out either. Where all are known, the further one
 * is closed.
 */
import type { Server } from "node:http"
import type { Socket } from "node:net"

/** The same for a connection and for what TLS makes of it. */
const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`

export class Connections {
  readonly #most: number
  readonly #ofOne: () => number
  /** the oldest first */
  readonly #strangers = new Map<string, Socket>()
  /** whose each is that has shown a good token, the first that it showed */
  readonly #known = new Map<string, string>()
  readonly #ofUser = new Map<string, number>()
  #count = 0
  /** `ofOne` is asked for each time: it may be changed while the daemon runs. */
  constructor(most: number, ofOne: () => number) {
    this.#most = most
    this.#ofOne = ofOne
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
      else this.#forget(name)
    })
  }
  #change(whose: string, change: 1 | -1): void {
    const count = (this.#ofUser.get(whose) ?? 0) + change
    if (count > 0) this.#ofUser.set(whose, count)
    else this.#ofUser.delete(whose)
  }
  #forget(name: string): void {
    const whose = this.#known.get(name)
    this.#known.delete(name)
    if (whose !== undefined) this.#change(whose, -1)
  }
  /** Who is at its other end has shown a good token of this user's. False: they have as many as one may. */
  isKnown(socket: Socket, { tenant, user }: { readonly tenant: string; readonly user: string }): boolean {
    const name = nameOf(socket)
    if (this.#known.has(name)) return true
    const whose = JSON.stringify([tenant, user])
    if ((this.#ofUser.get(whose) ?? 0) >= this.#ofOne()) return false
    // It may have been closed meanwhile, and nobody would take it away again.
    if (!this.#strangers.delete(name)) return true
    this.#known.set(name, whose)
    this.#change(whose, 1)
    return true
  }
}
