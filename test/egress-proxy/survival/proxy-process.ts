/** A whole proxy in a process of its own: its listener, a sandbox's channel with resolver, and a bound secret. */
import { createSocket } from "node:dgram"
import { once } from "node:events"
import { type AddressInfo, createServer, type Server, type Socket } from "node:net"
import { createEgressProxy } from "../../../src/egress-proxy/index.ts"

export interface Upstreams {
  readonly plain: number
  readonly tls: number
  readonly ca: string
}
export interface Ports {
  readonly proxy: number
  readonly transparent: number
  readonly dnsUdp: number
  readonly dnsTcp: number
  readonly ca: string
}

export const placeholder = "$$SECRET[GITHUB_TOKEN]$$"

const listening = async (server: Server): Promise<number> => {
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return (server.address() as AddressInfo).port
}

async function run({ plain, tls, ca }: Upstreams): Promise<Ports> {
  const proxy = await createEgressProxy({
    egress: ["api.good.test:443", "plain.good.test:80", "tcp://db.good.test:5432"],
    services: {
      "api.good.test": { address: "127.0.0.1", port: tls },
      "plain.good.test": { address: "127.0.0.1", port: plain },
      "db.good.test": { address: "127.0.0.1", port: plain },
    },
    substitutions: [{ placeholder, value: "ghp_real-value-0123", hosts: ["api.good.test"] }],
    upstreamCa: [ca],
    listen: "127.0.0.1:0",
    limits: { lingerMs: 20 },
  })
  const [inner, outer, database, dnsTcp] = [createServer(), createServer(), createServer(), createServer()]
  const dnsUdp = createSocket("udp4")
  dnsUdp.bind(0, "127.0.0.1")
  await once(dnsUdp, "listening")
  proxy.serve({ proxy: inner, transparent: new Map([[5432, database]]), dnsUdp, dnsTcp })
  // The kernel gives an accepted socket the address that was dialled; here it is the first that the resolver hands out.
  outer.on("connection", (socket: Socket) => {
    Object.defineProperties(socket, { localAddress: { value: "198.18.0.2" }, localPort: { value: 5432 } })
    database.emit("connection", socket)
  })
  process.on("message", (message) => {
    if (message === "counters") process.send?.(proxy.counters())
    // As the kernel hands out what a raw socket sent.
    else dnsUdp.emit("message", Buffer.from(String(message), "latin1"), { address: "127.0.0.1", port: 0 })
  })
  return {
    proxy: proxy.port ?? 0,
    transparent: await listening(outer),
    dnsUdp: dnsUdp.address().port,
    dnsTcp: await listening(dnsTcp),
    ca: proxy.caPem ?? "",
  }
}

if (process.send !== undefined)
  process.once("message", (upstreams) => void run(upstreams as Upstreams).then((ports) => process.send?.(ports)))
