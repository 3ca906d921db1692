/** Loopback upstreams, a proxy in front of them, and raw clients, all disposed with the test. */
import { once } from "node:events"
import { connect, createServer, type Server, type Socket } from "node:net"
import { createProxyWith, type EgressProxy, type EgressProxyOptions } from "../../src/egress-proxy/proxy.ts"
import type { Verdict } from "../../src/egress-proxy/types.ts"
import { publicAddress } from "../corpus/egress-cases.ts"

export interface Upstream extends AsyncDisposable {
  readonly port: number
  readonly sockets: ReadonlySet<Socket>
}

export async function startUpstream(onConnection: (socket: Socket) => void): Promise<Upstream> {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on("error", () => {})
    socket.on("close", () => sockets.delete(socket))
    onConnection(socket)
  })
  const port = await listening(server)
  return {
    port,
    sockets,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export async function listening(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("no TCP address")
  return address.port
}

export const echo = (socket: Socket): void => {
  socket.on("data", (chunk) => socket.write(chunk))
  socket.on("end", () => socket.end())
}

/** Answers every request head on a connection with these bytes. */
export const respond = (answer: string) => (socket: Socket) => {
  let seen = ""
  socket.on("data", (chunk) => {
    seen += chunk.toString("latin1")
    if (!seen.includes("\r\n\r\n")) return
    seen = ""
    socket.write(answer, "latin1")
  })
}

export interface Rig extends AsyncDisposable {
  readonly proxy: EgressProxy
  readonly verdicts: Verdict[]
  readonly resolved: string[]
  client(): Client
}

export async function rig(upstream: Upstream, options: Partial<EgressProxyOptions> = {}): Promise<Rig> {
  const verdicts: Verdict[] = []
  const resolved: string[] = []
  const proxy = await createProxyWith(
    {
      egress: ["api.good.test:443", "*.cdn.good.test:443", "plain.good.test:80", "tcp://db.good.test:5432"],
      listen: "127.0.0.1:0",
      onVerdict: (verdict) => verdicts.push(verdict),
      resolve: (name) => {
        resolved.push(name)
        return [publicAddress]
      },
      dial: () => connect(upstream.port, "127.0.0.1"),
      ...options,
      limits: { lingerMs: 50, ...options.limits },
    },
    {},
  )
  const clients: Client[] = []
  return {
    proxy,
    verdicts,
    resolved,
    client() {
      const client = rawClient(proxy.port ?? 0)
      clients.push(client)
      return client
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.socket.destroy()
      await proxy.close()
    },
  }
}

export interface Client {
  readonly socket: Socket
  readonly text: () => string
  send(text: string): void
  /** Resolves once everything received so far matches; rejects when the connection closes first. */
  sees(pattern: RegExp): Promise<string>
  /** Resolves when the connection is closed, with whether it was reset. */
  readonly closed: Promise<{ readonly reset: boolean; readonly text: string }>
}

export function rawClient(port: number): Client {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true })
  let text = ""
  let reset = false
  let look = (): void => {}
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1")
    look()
  })
  socket.on("error", () => {
    reset = true
  })
  socket.on("end", () => socket.end())
  const closed = new Promise<{ reset: boolean; text: string }>((resolve) =>
    socket.on("close", () => resolve({ reset, text })),
  )
  return {
    socket,
    closed,
    text: () => text,
    send: (bytes) => void socket.write(bytes, "latin1"),
    sees: (pattern) =>
      new Promise((resolve, reject) => {
        look = () => {
          if (pattern.test(text)) resolve(text)
        }
        look()
        void closed.then(() => reject(new Error(`closed before ${pattern}: ${JSON.stringify(text)}`)))
      }),
  }
}

/** Waits for a condition that something else brings about, however busy the machine is. */
export async function until(holds: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + 40_000
  while (!holds()) {
    if (Date.now() > deadline) throw new Error(`still not: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

export const tunnel = (target: string): string => `CONNECT ${target} HTTP/1.1\r\n\r\n`
export const established = /^HTTP\/1\.1 200 [^\n]*\n\r\n/
