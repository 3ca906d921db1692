/**
 * A connection from outside to a listener that the program itself opened on its loopback: the one way in.
 *
 * Guarantees: made inside the sandbox's namespace, to 127.0.0.1 or ::1 and nowhere else, without waiting; never to a
 * listener of the host's own, through which the one who connects would have the sandbox's network. Nothing of it stays
 * where nobody listens.
 * Assumes: the calling thread is inside the namespace.
 */
import { closeSync } from "node:fs"
import type { NetworkChannelSpec } from "../backend.ts"
import { AF_INET, AF_INET6, connect, SOCK_CLOEXEC, SOCK_NONBLOCK, socket } from "../../linux/sockets.ts"
import { SyscallError } from "../../linux/libc.ts"

const SOCK_STREAM = 1
const LOWEST = 1_024
const HIGHEST = 65_535

/** Ports that a program could have opened itself: none of the host's, none that only root opens. */
export const mayBeReached = (port: number, network: NetworkChannelSpec | "none"): boolean =>
  Number.isInteger(port) &&
  port >= LOWEST &&
  port <= HIGHEST &&
  (network === "none" || (port !== network.proxyPort && !network.transparentPorts.includes(port)))

const addressOf = (family: number, port: number): Buffer => {
  const bytes = Buffer.alloc(family === AF_INET ? 16 : 28)
  bytes.writeUInt16LE(family, 0)
  bytes.writeUInt16BE(port, 2)
  if (family === AF_INET) Buffer.from([127, 0, 0, 1]).copy(bytes, 4)
  else bytes.writeUInt8(1, 8 + 15)
  return bytes
}

/** On loopback both ends are this kernel's: a dial is answered by the time that it is asked for a second time. */
const isConnected = (fd: number, address: Buffer): boolean => {
  for (let asked = 0; asked < 2; asked++) {
    try {
      connect(fd, address)
      return true
    } catch (error) {
      if (!(error instanceof SyscallError)) throw error
      if (error.code === "EISCONN") return true
      if (error.code !== "EINPROGRESS") return false
    }
  }
  return false
}

/** A descriptor, the caller's own; undefined: nobody listens there, or takes no more. */
export const connectInside = (port: number): number | undefined => {
  for (const family of [AF_INET, AF_INET6]) {
    let fd: number
    try {
      fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
    } catch (error) {
      // A machine without IPv6.
      if (error instanceof SyscallError) continue
      throw error
    }
    if (isConnected(fd, addressOf(family, port))) return fd
    closeSync(fd)
  }
  return undefined
}
