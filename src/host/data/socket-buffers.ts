/**
 * How much the kernel may hold for one connection of a proxy whose other end takes nothing.
 *
 * Guarantees: of what is sent, little lies in the kernel that it cannot send yet, however fast the connection was; of what
 * a client sends, no more than a fixed window is taken in. Without, a stalled tunnel holds some 6 MiB of what all TCP
 * of the machine may have, and a sandbox can have a thousand.
 * Does not: bound what an upstream sends ahead, which the kernel fits to the speed of the way there.
 */
import { SOL_SOCKET, setsockopt } from "../../linux/sockets.ts"
import { hostLimits } from "../limits.ts"

const IPPROTO_TCP = 6
const TCP_NOTSENT_LOWAT = 25
const SO_RCVBUF = 8

export const boundBuffers = (descriptor: number, of: "listener" | "upstream"): void => {
  setsockopt(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, hostLimits.unsentBytes.value)
  if (of === "listener") setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, hostLimits.clientBytes.value)
}
