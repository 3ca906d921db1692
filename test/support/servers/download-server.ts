/**
 * A web server of files for a test, over TLS, with an authority that this process is told to trust while it runs.
 *
 * Guarantees: serves ranges and tags as RFC 9110 says; every request is recorded; a file can be made to break off, stall,
 * or be answered in another way.
 */
import { createHash } from "node:crypto"
import { createServer } from "node:https"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { getCACertificates, setDefaultCACertificates } from "node:tls"
import { createCallAuthority } from "../../../src/egress-proxy/tls/authority.ts"

export interface ServedFile {
  readonly bytes: Uint8Array
  readonly etag?: string
  /** end the connection after so many bytes of each answer */
  readonly breakAfter?: number
  /** go silent after so many bytes of each answer */
  readonly stallAfter?: number
}

interface Recorded {
  readonly path: string
  readonly range: string | undefined
  readonly ifRange: string | undefined
}

export interface DownloadServer extends AsyncDisposable {
  readonly port: number
  /** an entry of `egress.services`: this server is `files.test` */
  readonly service: string
  readonly caPem: string
  readonly asked: readonly Recorded[]
  url(path: string): string
  serve(path: string, file: ServedFile | Uint8Array | string): string
  answer(path: string, how: (request: IncomingMessage, response: ServerResponse) => void): void
}

export const sha256 = (bytes: Uint8Array | string): string => createHash("sha256").update(bytes).digest("hex")

const send = (
  { bytes, etag, breakAfter, stallAfter }: ServedFile,
  request: IncomingMessage,
  response: ServerResponse,
) => {
  const tag = etag ?? `"${sha256(bytes).slice(0, 16)}"`
  const asked = /^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1]
  const from = asked !== undefined && request.headers["if-range"] === tag ? Number(asked) : 0
  if (from >= bytes.length && from > 0) {
    response.writeHead(416, { "content-range": `bytes */${bytes.length}` }).end()
    return
  }
  const rest = bytes.subarray(from)
  response.writeHead(from > 0 ? 206 : 200, {
    etag: tag,
    "content-length": rest.length,
    ...(from > 0 ? { "content-range": `bytes ${from}-${bytes.length - 1}/${bytes.length}` } : {}),
  })
  const upTo = Math.min(rest.length, breakAfter ?? stallAfter ?? rest.length)
  response.write(rest.subarray(0, upTo), () => {
    if (upTo === rest.length) response.end()
    else if (breakAfter !== undefined) request.socket.end()
  })
}

export const startDownloadServer = async (): Promise<DownloadServer> => {
  const authority = createCallAuthority({ names: ["files.test"] })
  const before = getCACertificates("default")
  setDefaultCACertificates([...before, authority.caPem])
  const files = new Map<string, ServedFile>()
  const odd = new Map<string, (request: IncomingMessage, response: ServerResponse) => void>()
  const asked: Recorded[] = []
  const server = createServer(authority.leafFor("files.test"), (request, response) => {
    const path = request.url ?? "/"
    const { range, "if-range": ifRange } = request.headers
    asked.push({ path, range, ifRange: ifRange as string | undefined })
    response.on("error", () => undefined)
    const how = odd.get(path)
    if (how !== undefined) return how(request, response)
    const file = files.get(path)
    if (file === undefined) return void response.writeHead(404).end()
    send(file, request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    service: `files.test: "127.0.0.1:${port}"`,
    caPem: authority.caPem,
    asked,
    url: (path) => `https://files.test${path}`,
    serve(path, file) {
      const served =
        typeof file === "string" ? { bytes: Buffer.from(file) } : file instanceof Uint8Array ? { bytes: file } : file
      files.set(path, served)
      odd.delete(path)
      return sha256(served.bytes)
    },
    answer: (path, how) => void odd.set(path, how),
    async [Symbol.asyncDispose]() {
      setDefaultCACertificates(before)
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}
