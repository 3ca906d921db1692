/** The call's own listeners, made inside its container's network namespace and served from outside it. */
import { createSocket, type Socket as UdpSocket } from "node:dgram"
import { once } from "node:events"
import { createServer, type Server } from "node:net"
import type { Channel, NetworkChannelSpec } from "../../backend.ts"
import type { NetworkNamespace } from "../../network/netns.ts"
import { turnAwayUnserved } from "../../network/unserved.ts"

export interface OpenChannel {
  readonly channel: Channel | "none"
  close(): void
}

const closeQuietly = (handle: Server | UdpSocket): void => {
  try {
    handle.close()
  } catch {
    // Whoever served it closed it.
  }
}

export const openChannel = async (
  network: NetworkNamespace,
  spec: NetworkChannelSpec | "none",
): Promise<OpenChannel> => {
  if (spec === "none") return { channel: "none", close: () => undefined }
  const handles: (Server | UdpSocket)[] = []
  const tcp = async (address: string, port: number): Promise<Server> => {
    const server = createServer()
    turnAwayUnserved(server)
    handles.push(server)
    const listens = once(server, "listening")
    server.listen({ fd: network.listenTcp(address, port) })
    await listens
    return server
  }
  const close = (): void => handles.forEach(closeQuietly)
  try {
    const proxy = await tcp("127.0.0.1", spec.proxyPort)
    const transparent = new Map<number, Server>()
    for (const port of spec.transparentPorts) transparent.set(port, await tcp("0.0.0.0", port))
    if (!spec.dns) return { channel: { proxy, transparent }, close }
    const dnsUdp = createSocket("udp4")
    turnAwayUnserved(dnsUdp)
    handles.push(dnsUdp)
    const listens = once(dnsUdp, "listening")
    dnsUdp.bind({ fd: network.bindUdp("127.0.0.1", 53) })
    await listens
    const dnsTcp = await tcp("127.0.0.1", 53)
    return { channel: { proxy, transparent, dnsUdp, dnsTcp }, close }
  } catch (error) {
    close()
    throw error
  }
}
