/**
 * The processes of the fairness measurement: the origin, the host with two proxies on one event loop, an attacker.
 *
 * An attacker sends as fast as it is taken, over several connections, and begins anew where one is closed.
 */
import { createHash } from "node:crypto"
import { createSocket } from "node:dgram"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import { createServer as createTls } from "node:https"
import { type AddressInfo, connect, createServer as createTcp, type Server } from "node:net"
import { monitorEventLoopDelay } from "node:perf_hooks"
import type { Duplex } from "node:stream"
import { connect as connectTls } from "node:tls"
import { gzipSync } from "node:zlib"
import { createEgressProxy } from "../../src/egress-proxy/index.ts"
import { createCallAuthority } from "../../src/egress-proxy/tls/authority.ts"

/** What a process says of itself since it was last asked. */
export interface Account {
  readonly rss: number
  /** 99th percentile of how late its event loop was, in milliseconds */
  readonly lateP99: number
  /** shares of the time: on a core, and ready to run while others had the cores */
  readonly ran: number
  readonly waited: number
}
const late = monitorEventLoopDelay({ resolution: 1 })
late.enable()
let last = { at: performance.now(), ran: 0, waited: 0 }
function account(): Account {
  const [ran = 0, waited = 0] = scheduled()
  const now = { at: performance.now(), ran, waited }
  const ms = now.at - last.at
  const share = (more: number, less: number): number => (more - less) / 1e6 / ms
  const said = {
    rss: process.memoryUsage().rss,
    lateP99: late.percentile(99) / 1e6,
    ran: share(now.ran, last.ran),
    waited: share(now.waited, last.waited),
  }
  late.reset()
  last = now
  return said
}
/** Nanoseconds on a core and waiting for one, as Linux counts them for the thread that runs JavaScript. */
function scheduled(): number[] {
  try {
    return readFileSync("/proc/self/schedstat", "utf8").split(" ").map(Number)
  } catch {
    return []
  }
}

interface Origin {
  readonly plain: number
  readonly tls: number
  readonly ca: string
}
interface Host {
  readonly calm: number
  readonly hostile: number
  readonly dnsUdp: number
  readonly dnsTcp: number
  readonly dialled: number
  readonly ca: string
}

const listening = async (server: Server): Promise<number> => {
  server.listen(0, "127.0.0.1", 1024)
  await once(server, "listening")
  return (server.address() as AddressInfo).port
}

async function origin(): Promise<Origin> {
  const authority = createCallAuthority()
  const { cert, key } = authority.leafFor("api.bench")
  const plain = createServer((request, response) => {
    request.resume().on("end", () => response.end("ok"))
  })
  const tls = createTls({ cert, key }, (request, response) => {
    request.resume().on("end", () => response.end("ok"))
  })
  tls.on("upgrade", (request, socket) => {
    const accept = createHash("sha1")
      .update(`${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest("base64")
    socket.on("error", () => {}).resume()
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    )
  })
  return { plain: await listening(plain), tls: await listening(tls), ca: authority.caPem }
}

async function host({ plain, tls, ca }: Origin): Promise<Host> {
  const services = {
    "plain.bench": { address: "127.0.0.1", port: plain },
    "api.bench": { address: "127.0.0.1", port: tls },
  }
  const calm = await createEgressProxy({ egress: ["plain.bench:80"], services, listen: "127.0.0.1:0" })
  const hostile = await createEgressProxy({
    egress: ["plain.bench:80", "api.bench:443"],
    services,
    listen: "127.0.0.1:0",
    upstreamCa: [ca],
    substitutions: ["A", "B", "C"].map((name) => ({
      placeholder: `$$SECRET[TOKEN_${name}]$$`,
      value: `value-${name}`,
      hosts: ["api.bench"],
    })),
  })
  const [unused, dnsTcp, dialled, dnsUdp] = [createTcp(), createTcp(), createTcp(), createSocket("udp4")]
  const dialledPort = await listening(dialled)
  dnsUdp.bind(0, "127.0.0.1")
  await once(dnsUdp, "listening")
  hostile.serve({ proxy: unused, transparent: new Map([[dialledPort, dialled]]), dnsUdp, dnsTcp })
  return {
    calm: calm.port ?? 0,
    hostile: hostile.port ?? 0,
    dnsUdp: dnsUdp.address().port,
    dnsTcp: await listening(dnsTcp),
    dialled: dialledPort,
    ca: hostile.caPem ?? "",
  }
}

/** Pours these bytes for ever, after a beginning, into a connection that `open` makes; again when it is closed. */
function flood(open: () => Promise<Duplex>, beginning: string, bytes: Buffer): void {
  const again = (): void => void setTimeout(() => flood(open, beginning, bytes), 1)
  open().then((socket) => {
    const pour = (): void => {
      while (!socket.destroyed && socket.write(bytes));
    }
    socket.on("error", () => {}).on("close", again)
    socket.on("drain", pour).resume()
    socket.write(beginning)
    pour()
  }, again)
}

const query = Buffer.from([1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 4, ...Buffer.from("evil"), 0, 0, 1, 0, 1])
const websocket = `GET / HTTP/1.1\r\nHost: api.bench\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n`
const post = (host: string, target: string, rest: string): string =>
  `POST ${target} HTTP/1.1\r\nHost: ${host}\r\n${rest}\r\n\r\n`

function attack(kind: string, at: Host): void {
  const raw =
    (port = at.hostile) =>
    async (): Promise<Duplex> => {
      const socket = connect(port, "127.0.0.1")
      await once(socket, "connect")
      return socket
    }
  const secure = async (): Promise<Duplex> => {
    const socket = await raw()()
    socket.on("error", () => {})
    socket.write("CONNECT api.bench:443 HTTP/1.1\r\n\r\n")
    await once(socket, "data")
    const tls = connectTls({ socket: socket as never, servername: "api.bench", ca: at.ca })
    tls.on("error", () => {})
    await once(tls, "secureConnect")
    return tls
  }
  const each = (count: number, begin: () => void): void => {
    for (let one = 0; one < count; one += 1) begin()
  }
  const small = Buffer.from("1\r\na\r\n".repeat(10_000))
  const percent = Buffer.alloc(65_536, "%")
  const head = `GET / HTTP/1.1\r\nHost: api.bench\r\nX: ${"%".repeat(60_000)}\r\n\r\n`
  const kinds: Readonly<Record<string, () => void>> = {
    "pipelined denied requests": () => {
      const denied = Buffer.from("GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n".repeat(1_000))
      each(8, () => flood(raw(), "", denied))
    },
    "denied tunnels, each on its own": () => {
      each(64, () => flood(raw(), "CONNECT evil.test:443 HTTP/1.1\r\n\r\n", Buffer.from("x")))
    },
    "WebSocket pings": () => {
      const pings = Buffer.concat(Array.from({ length: 10_000 }, () => Buffer.from([0x89, 0x80, 1, 2, 3, 4])))
      each(8, () => flood(secure, websocket, pings))
    },
    "headers full of percent signs": () => each(8, () => flood(secure, "", Buffer.from(head))),
    "bodies full of percent signs": () => {
      each(4, () => flood(secure, post("api.bench", "/", "Content-Length: 99999999999"), percent))
      each(4, () => flood(raw(), post("plain.bench", "http://plain.bench/", "Content-Length: 99999999999"), percent))
    },
    "chunks of one byte": () => {
      each(4, () => flood(secure, post("api.bench", "/", "Transfer-Encoding: chunked"), small))
      each(4, () => flood(raw(), post("plain.bench", "http://plain.bench/", "Transfer-Encoding: chunked"), small))
    },
    "refused dials": () => each(64, () => flood(raw(at.dialled), "", Buffer.from("x"))),
    "compressed bodies that swell": () => {
      const swelling = gzipSync(Buffer.alloc(16 << 20, "%"))
      const rest = `Content-Encoding: gzip\r\nContent-Length: ${swelling.length}`
      const whole = (host: string, target: string): Buffer =>
        Buffer.concat([Buffer.from(post(host, target, rest)), swelling])
      each(16, () => flood(secure, "", whole("api.bench", "/")))
      each(16, () => flood(raw(), "", whole("plain.bench", "http://plain.bench/")))
    },
    "DNS over UDP": () => {
      const socket = createSocket("udp4").on("message", () => {})
      const send = (): void => {
        for (let count = 0; count < 200; count += 1) socket.send(query, at.dnsUdp, "127.0.0.1")
        setImmediate(send)
      }
      send()
    },
    "DNS over TCP": () => {
      const framed = Buffer.concat([Buffer.from([0, query.length]), query])
      const many = Buffer.concat(Array.from({ length: 2_000 }, () => framed))
      each(8, () => flood(raw(at.dnsTcp), "", many))
    },
  }
  kinds[kind]?.()
}

process.once("message", (message: { role: string; kind: string; at: never }) => {
  const { role, kind, at } = message
  if (role === "attack") attack(kind, at)
  else void (role === "origin" ? origin() : host(at)).then((said) => process.send?.(said))
  process.on("message", () => process.send?.(account()))
})
process.once("disconnect", () => process.exit())
