/**
 * Whether a connection ended by its peer's word, or was cut.
 *
 * Assumes: whoever ends TLS tells of connections that were cut beneath it; Node delivers both as an end.
 */
import type { Duplex } from "node:stream"

const cut = new WeakSet<Duplex>()

/** The connection beneath this one ended before it said that it was the end. */
export const tellCut = (socket: Duplex): void => void cut.add(socket)

/** Did this connection, TCP or TLS, end without its peer's word that it was the end? Over TCP a FIN is that word. */
export const isBrokenOff = (socket: Duplex): boolean => cut.has(socket) || socket.errored !== null
