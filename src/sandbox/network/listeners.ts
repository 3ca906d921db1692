/**
 * Listeners inside a parked process's network namespace, handed to the host as handles.
 *
 * Guarantees: the launcher keeps none of them; what a call does not want is closed by the host before the call's
 * program starts. The usual ones are handed over while a parked process is parked, because each handle costs a round trip.
 */
import { createSocket, type Socket as UdpSocket } from "node:dgram"
import { createServer, type Server } from "node:net"
import type { NetworkChannelSpec } from "../backend.ts"
import type { NetworkNamespace } from "./netns.ts"

export type ListenerRole = `proxy-${number}` | "dns-udp" | "dns-tcp" | `port-${number}`
type HandOver = (role: ListenerRole, handle: Server | UdpSocket) => Promise<void>

/** What most networked calls want. */
export const usualRoles: readonly ListenerRole[] = ["proxy-3128", "port-80", "port-443", "dns-udp", "dns-tcp"]

export const rolesOf = (network: NetworkChannelSpec | "none"): ListenerRole[] =>
  network === "none"
    ? []
    : [
        `proxy-${network.proxyPort}`,
        ...network.transparentPorts.map((port) => `port-${port}` as const),
        ...(network.dns ? (["dns-udp", "dns-tcp"] as const) : []),
      ]

const opened = <T extends Server | UdpSocket>(handle: T, open: (done: () => void) => void): Promise<T> =>
  new Promise((resolve, reject) => {
    handle.once("error", reject)
    open(() => resolve(handle))
  })

const listener = (network: NetworkNamespace, address: string, port: number): Promise<Server> => {
  const server = createServer({ pauseOnConnect: true })
  return opened(server, (done) => server.listen({ fd: network.listenTcp(address, port) }, done))
}

const make = (network: NetworkNamespace, role: ListenerRole): Promise<Server | UdpSocket> => {
  if (role === "dns-udp") {
    const udp = createSocket("udp4")
    return opened(udp, (done) => udp.bind({ fd: network.bindUdp("127.0.0.1", 53) }, done))
  }
  if (role === "dns-tcp") return listener(network, "127.0.0.1", 53)
  const port = Number(role.slice(role.indexOf("-") + 1))
  return listener(network, role.startsWith("proxy-") ? "127.0.0.1" : "0.0.0.0", port)
}

export const offerListeners = async (
  network: NetworkNamespace,
  roles: readonly ListenerRole[],
  handOver: HandOver,
): Promise<void> => {
  for (const role of roles) {
    const handle = await make(network, role)
    try {
      await handOver(role, handle)
    } finally {
      handle.close()
    }
  }
}
