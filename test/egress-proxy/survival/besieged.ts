/** A proxy process with real upstreams around it, attacked over the wire: does it live, and does it still serve? */
import { type ChildProcess, fork } from "node:child_process"
import { createSocket } from "node:dgram"
import { once } from "node:events"
import { type AddressInfo, connect, createServer as createTcpServer, type Server, type Socket } from "node:net"
import type { Duplex } from "node:stream"
import { fileURLToPath } from "node:url"
import { connect as tlsConnect, createServer as createTlsServer } from "node:tls"
import { abort } from "../../../src/egress-proxy/connection/endpoint.ts"
import { createCallAuthority } from "../../../src/egress-proxy/tls/authority.ts"
import type { Ports } from "./proxy-process.ts"

export const ways = ["plain", "connect", "socks", "transparent", "tls", "dns-tcp"] as const
export type Way = (typeof ways)[number]

export interface Besieged extends AsyncDisposable {
  readonly ports: Ports
  /** what the upstreams answer to anything but a request for `/well`, and whether they then end or break off */
  answer: { readonly bytes: Buffer; readonly then: "end" | "reset" | "stay" }
  /** Bytes to the proxy, in these pieces, by this way; resolves when the connection is over or nothing more comes. */
  send(way: Way, pieces: readonly Buffer[], patienceMs?: number): Promise<string>
  datagram(bytes: Buffer): Promise<void>
  datagramFromPortZero(bytes: Buffer): void
  /** Throws unless the process lives and a plain and an intercepted request are answered. */
  serves(): Promise<void>
}

const good = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nwell"
/** What comes with the first of these events; an error is not one. */
const first = (socket: Duplex, ...events: readonly string[]): Promise<unknown> =>
  new Promise((resolve) => {
    for (const event of events) socket.once(event, resolve)
  })
const portOf = async (server: Server): Promise<number> => {
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return (server.address() as AddressInfo).port
}

export async function besieged(): Promise<Besieged> {
  const authority = createCallAuthority()
  const open = new Set<Duplex>()
  let answer: Besieged["answer"] = { bytes: Buffer.from(good), then: "end" }
  const serve = (socket: Socket): void => {
    open.add(socket)
    socket.on("error", () => {}).on("close", () => open.delete(socket))
    let seen = ""
    socket.on("data", (chunk) => {
      if (seen.length > 4_096) return
      seen += chunk.toString("latin1")
      const well = seen.includes("/well")
      if (well && !seen.includes("\r\n\r\n")) return
      socket.write(well ? good : answer.bytes)
      if (well || answer.then === "end") socket.end()
      else if (answer.then === "reset") setImmediate(() => abort(socket))
    })
    socket.on("end", () => socket.end())
  }
  const { cert, key } = authority.leafFor("api.good.test")
  const plain = createTcpServer({ allowHalfOpen: true }, serve)
  const tls = createTlsServer({ cert, key }, serve)
  tls.on("tlsClientError", () => {})
  const child: ChildProcess = fork(fileURLToPath(new URL("./proxy-process.ts", import.meta.url)), [], { execArgv: [] })
  child.send({ plain: await portOf(plain), tls: await portOf(tls), ca: authority.caPem })
  const [ports] = (await once(child, "message")) as [Ports]
  let ended: string | undefined
  child.once("exit", (code, signal) => (ended = `the proxy process ended: ${code ?? signal}`))

  const tunnel = (target: string): string => `CONNECT ${target} HTTP/1.1\r\n\r\n`
  const enter = async (way: Way): Promise<Duplex | undefined> => {
    const port = { "dns-tcp": ports.dnsTcp, transparent: ports.transparent }[way as string] ?? ports.proxy
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true }).setNoDelay(true)
    socket.on("error", () => {})
    if (way !== "connect" && way !== "tls") return socket
    socket.write(tunnel(way === "tls" ? "api.good.test:443" : "db.good.test:5432"))
    if (!String(await first(socket, "data", "close")).includes(" 200 ")) return undefined
    if (way === "connect") return socket
    const secure = tlsConnect({ socket, servername: "api.good.test", ca: ports.ca, ALPNProtocols: ["http/1.1"] })
    secure.on("error", () => {})
    await first(secure, "secureConnect", "close")
    return secure.destroyed ? undefined : secure
  }
  const send: Besieged["send"] = async (way, pieces, patienceMs = 60) => {
    const socket = await enter(way)
    if (socket === undefined) return ""
    let text = ""
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")))
    const over = first(socket, "close")
    socket.on("end", () => socket.end())
    for (const piece of pieces) {
      socket.write(piece)
      await new Promise((resolve) => setImmediate(resolve))
    }
    let timer: NodeJS.Timeout | undefined
    await Promise.race([over, new Promise((resolve) => (timer = setTimeout(resolve, patienceMs)))])
    clearTimeout(timer)
    socket.destroy()
    return text
  }
  const request = (way: "plain" | "tls"): Buffer =>
    way === "tls"
      ? Buffer.from("GET /well HTTP/1.1\r\nHost: api.good.test\r\nConnection: close\r\n\r\n")
      : Buffer.from("GET http://plain.good.test/well HTTP/1.1\r\nHost: plain.good.test\r\nConnection: close\r\n\r\n")
  return {
    ports,
    get answer() {
      return answer
    },
    set answer(next) {
      answer = next
    },
    send,
    async datagram(bytes) {
      const socket = createSocket("udp4")
      await new Promise((resolve) => socket.send(bytes, ports.dnsUdp, "127.0.0.1", resolve))
      socket.close()
    },
    datagramFromPortZero: (bytes) => void (child.connected && child.send(bytes.toString("latin1"))),
    async serves() {
      for (const way of ["plain", "tls"] as const) {
        const got = ended ?? (await send(way, [request(way)], 20_000))
        if (ended !== undefined) throw new Error(ended)
        if (!/^HTTP\/1\.1 200 [^]*well$/.test(got)) throw new Error(`${way} is not served: ${JSON.stringify(got)}`)
      }
    },
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      plain.close()
      tls.close()
      if (ended !== undefined) return
      child.kill("SIGKILL")
      await once(child, "exit")
    },
  }
}
