/** A client, an intercepting listener and a real TLS upstream, all on loopback; closed after each test. */
import { once } from "node:events"
import { createServer as createHttpsServer, request as httpsRequest, type Server as HttpsServer } from "node:https"
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http"
import { type AddressInfo, connect as tcpConnect, createServer as createTcpServer, type Server } from "node:net"
import type { Duplex } from "node:stream"
import { connect as tlsConnect, type TLSSocket } from "node:tls"
import { afterEach } from "vitest"
import { type ReasonCode, reasons } from "../../../src/egress-proxy/policy/reasons.ts"
import { prepareSubstitutions } from "../../../src/egress-proxy/secrets/substitute.ts"
import { createCallAuthority } from "../../../src/egress-proxy/tls/authority.ts"
import { createClientHelloReader } from "../../../src/egress-proxy/tls/client-hello.ts"
import {
  type InterceptEnd,
  type Interception,
  type InterceptOptions,
  interceptTls,
} from "../../../src/egress-proxy/tls/intercept.ts"

export const name = "api.good.test"
export const token = "$$SECRET[GITHUB_TOKEN]$$"
export const value = "ghp_real-value-0123"
export const testCa = createCallAuthority()
const verifyCa = [testCa.caPem]
export const callCa = createCallAuthority({ names: [name] })

export function secrets(hosts: readonly string[] = [name]) {
  const prepared = prepareSubstitutions([{ placeholder: token, value, hosts }])
  if (!prepared.ok) throw new Error(prepared.reason)
  return prepared.substitutions
}

export const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

export async function listening<S extends Server>(server: S): Promise<number> {
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  closing.push(() => new Promise((resolve) => server.close(resolve)))
  return (server.address() as AddressInfo).port
}

export interface Seen {
  readonly method: string
  readonly url: string
  readonly raw: readonly string[]
  readonly body: string
}

/** a real upstream with a certificate of the test authority */
export async function upstreamServer(listener: RequestListener | undefined, certName = name, authority = testCa) {
  const seen: Seen[] = []
  const { cert, key } = authority.leafFor(certName)
  const server: HttpsServer = createHttpsServer({ cert, key }, (request, response) => void serve(request, response))
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer)
    } catch {
      seen.push({ method: request.method ?? "", url: request.url ?? "", raw: request.rawHeaders, body: "CUT" })
      return
    }
    seen.push({
      method: request.method ?? "",
      url: request.url ?? "",
      raw: request.rawHeaders,
      body: Buffer.concat(chunks).toString(),
    })
    if (listener === undefined) response.end("hello")
    else listener(request, response as Parameters<RequestListener>[1])
  }
  const sockets = new Set<Duplex>()
  let dialled = 0
  server.on("connection", (socket) => {
    dialled += 1
    sockets.add(socket)
    socket.on("close", () => sockets.delete(socket))
  })
  const port = await listening(server)
  closing.push(() => server.closeAllConnections())
  return { server, port, seen, sockets, dialled: () => dialled }
}

interface World {
  readonly upstreamPort?: number
  readonly options?: Partial<InterceptOptions>
}

/** an intercepting listener in front of the upstream: reads the hello, puts it back, intercepts */
export async function world({ upstreamPort, options }: World) {
  const codes: ReasonCode[] = []
  const reports: string[] = []
  const ends: InterceptEnd[] = []
  const interceptions: Interception[] = []
  const server = createTcpServer((client) => {
    const reader = createClientHelloReader({ maxBytes: 16_384 })
    client.on("error", () => undefined)
    const onData = (chunk: Buffer): void => {
      const step = reader.push(chunk)
      if (step.state === "more") return
      client.off("data", onData)
      if (step.state !== "hello") return void client.destroy()
      client.pause()
      client.unshift(step.raw)
      const interception = interceptTls({
        client,
        name,
        port: 443,
        authority: callCa,
        upstream: async () => {
          const socket = tcpConnect(upstreamPort ?? 1, "127.0.0.1")
          await once(socket, "connect")
          return socket
        },
        verifyCa,
        substitutions: secrets(),
        readOnlyHttp: "report",
        record: ({ code, protocol }) => {
          codes.push(code)
          const cls = reasons[code].class
          return { recorded: true, verdict: { decision: cls, reason: code, protocol, host: name, port: 443 } }
        },
        onReadOnlyReport: ({ method }) => reports.push(method),
        ...options,
      })
      interceptions.push(interception)
      void interception.done.then((end) => ends.push(end))
    }
    client.on("data", onData)
  })
  const port = await listening(server)
  closing.push(async () => {
    for (const interception of interceptions) await interception[Symbol.asyncDispose]()
  })
  const open = async (more: object = {}): Promise<TLSSocket> => {
    const socket = tlsConnect({
      host: "127.0.0.1",
      port,
      servername: name,
      ca: callCa.caPem,
      ALPNProtocols: ["http/1.1"],
      ...more,
    })
    closing.push(() => socket.destroy())
    await once(socket, "secureConnect")
    return socket
  }
  const raw = async (text: string | Buffer): Promise<string> => {
    const socket = await open()
    socket.on("error", () => undefined)
    socket.write(text)
    const chunks: Buffer[] = []
    socket.on("data", (chunk: Buffer) => chunks.push(chunk))
    await once(socket, "close")
    return Buffer.concat(chunks).toString()
  }
  const send = (request: {
    method?: string
    path?: string
    headers?: Record<string, string>
    body?: string | Buffer | readonly Buffer[]
  }) =>
    new Promise<{ status: number; headers: IncomingMessage["headers"]; raw: readonly string[]; body: string }>(
      (resolve, reject) => {
        const outgoing = httpsRequest(
          {
            host: "127.0.0.1",
            port,
            servername: name,
            ca: callCa.caPem,
            agent: false,
            method: request.method ?? "GET",
            path: request.path ?? "/",
            headers: { Host: name, ...request.headers },
          },
          (response) => {
            const chunks: Buffer[] = []
            response.on("data", (chunk: Buffer) => chunks.push(chunk))
            response.on("error", reject)
            response.on("end", () =>
              resolve({
                status: response.statusCode ?? 0,
                headers: response.headers,
                raw: response.rawHeaders,
                body: Buffer.concat(chunks).toString(),
              }),
            )
          },
        )
        outgoing.on("error", reject)
        if (Array.isArray(request.body)) for (const chunk of request.body) outgoing.write(chunk)
        else if (request.body !== undefined) outgoing.write(request.body)
        outgoing.end()
      },
    )
  return { port, codes, reports, ends, interceptions, open, raw, send }
}

export const header = (raw: readonly string[], key: string): string[] =>
  raw.flatMap((text, at) => (at % 2 === 0 && text.toLowerCase() === key ? [raw[at + 1] as string] : []))
