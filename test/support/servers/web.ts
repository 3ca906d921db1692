/**
 * One web server, over HTTP and over HTTPS with a test authority's certificates: a page, an echo of what a request
 * brought, an npm registry with one package, a git repository behind git's own http-backend, and a WebSocket echo.
 */
import { execFileSync, spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { createServer as createHttp, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { createServer as createHttps } from "node:https"
import type { AddressInfo, Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Duplex } from "node:stream"
import { createSecureContext } from "node:tls"
import { createCallAuthority } from "../../../src/egress-proxy/tls/authority.ts"

export interface Seen {
  readonly method: string
  readonly host: string
  readonly url: string
  readonly authorization: string | undefined
  readonly body: string
}
export interface WebServer extends AsyncDisposable {
  readonly httpPort: number
  readonly httpsPort: number
  /** PEM of the authority that signed the certificates, one per server name */
  readonly caPem: string
  readonly seen: readonly Seen[]
}

export async function startWeb(): Promise<WebServer> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-web-")))
  const authority = createCallAuthority()
  const seen: Seen[] = []
  makeRepository(folder)
  const serve = (request: IncomingMessage, response: ServerResponse): void =>
    void answer(request, response, folder, seen)
  const http = createHttp(serve)
  const https = createHttps(
    {
      ...authority.leafFor("web.test"),
      SNICallback: (name, done) => done(null, createSecureContext(authority.leafFor(name))),
    },
    serve,
  )
  const sockets = new Set<Socket>()
  const opened = async (server: Server): Promise<number> => {
    server.on("connection", (socket: Socket) => {
      sockets.add(socket)
      socket.on("close", () => sockets.delete(socket))
      socket.on("error", () => {})
    })
    server.on("upgrade", (request: IncomingMessage, socket: Duplex) => echoFrames(request, socket))
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    return (server.address() as AddressInfo).port
  }
  const [httpPort, httpsPort] = [await opened(http), await opened(https)]
  return {
    httpPort,
    httpsPort,
    caPem: authority.caPem,
    seen,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await Promise.all([http, https].map((server) => new Promise((resolve) => server.close(resolve))))
      authority.dispose()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function makeRepository(folder: string): void {
  const work = join(folder, "work")
  const git = (...args: readonly string[]) =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@t.test", "-c", "init.defaultBranch=main", ...args], {
      stdio: "pipe",
      env: { PATH: "/usr/bin:/bin", HOME: folder, GIT_CONFIG_NOSYSTEM: "1" },
    })
  git("init", "-q", work)
  writeFileSync(join(work, "hello.txt"), "from git\n")
  git("-C", work, "add", ".")
  git("-C", work, "commit", "-q", "-m", "first")
  git("clone", "-q", "--bare", work, join(folder, "repo.git"))
}

async function answer(request: IncomingMessage, response: ServerResponse, folder: string, seen: Seen[]): Promise<void> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer)
  } catch {
    return
  }
  const body = Buffer.concat(chunks)
  const { method = "", url = "", headers } = request
  seen.push({
    method,
    url,
    host: headers.host ?? "",
    authorization: headers.authorization,
    body: body.toString("latin1"),
  })
  if (url.startsWith("/repo.git/")) return gitBackend(request, response, folder, body)
  if (url.startsWith("/-/ping") || url.startsWith("/tiny")) {
    response.setHeader("content-type", "application/json")
    return void response.end(url.startsWith("/tiny") ? JSON.stringify(tinyPackage) : "{}")
  }
  response.setHeader("content-type", "text/html")
  response.end(`<html><body><p id="said">served ${url}</p></body></html>\n`)
}

const tinyPackage = {
  name: "tiny",
  "dist-tags": { latest: "1.2.3" },
  versions: {
    "1.2.3": { name: "tiny", version: "1.2.3", dist: { tarball: "https://npm.test/tiny.tgz", shasum: "0".repeat(40) } },
  },
}

/** CGI, as git's http-backend speaks it. */
function gitBackend(request: IncomingMessage, response: ServerResponse, folder: string, body: Buffer): void {
  const [path = "", query = ""] = (request.url ?? "").split("?")
  const { headers } = request
  const env = {
    PATH: "/usr/bin:/bin",
    HOME: folder,
    GIT_PROJECT_ROOT: folder,
    GIT_HTTP_EXPORT_ALL: "1",
    GIT_CONFIG_COUNT: "1",
    GIT_CONFIG_KEY_0: "safe.directory",
    GIT_CONFIG_VALUE_0: "*",
    GIT_PROTOCOL: `${headers["git-protocol"] ?? ""}`,
    PATH_INFO: path,
    QUERY_STRING: query,
    REQUEST_METHOD: request.method ?? "",
    CONTENT_TYPE: headers["content-type"] ?? "",
    CONTENT_LENGTH: `${body.length}`,
    HTTP_CONTENT_ENCODING: headers["content-encoding"] ?? "",
  }
  const child = spawn("/usr/lib/git-core/git-http-backend", [], { env, stdio: ["pipe", "pipe", "ignore"] })
  const out: Buffer[] = []
  child.stdout.on("data", (chunk: Buffer) => out.push(chunk))
  child.stdin.on("error", () => {})
  child.stdin.end(body)
  child.once("close", () => {
    const all = Buffer.concat(out)
    const end = all.indexOf("\r\n\r\n")
    for (const line of all.toString("latin1", 0, Math.max(end, 0)).split("\r\n")) {
      const [name = "", value = ""] = line.split(/:\s*/, 2)
      if (name.toLowerCase() === "status") response.statusCode = Number.parseInt(value, 10)
      else if (name !== "") response.setHeader(name, value)
    }
    response.end(all.subarray(end + 4))
  })
}

/** Text frames of fewer than 126 bytes come back as they were. */
function echoFrames(request: IncomingMessage, socket: Duplex): void {
  const accept = createHash("sha1")
    .update(`${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest("base64")
  socket.on("error", () => {})
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  )
  let held = Buffer.alloc(0)
  socket.on("data", (chunk: Buffer) => {
    held = Buffer.concat([held, chunk])
    const length = (held[1] ?? 0) & 127
    if (held.length < 6 + length) return
    const mask = held.subarray(2, 6)
    const text = held.subarray(6, 6 + length).map((byte, at) => byte ^ (mask[at % 4] ?? 0))
    socket.write(Buffer.concat([Buffer.from([0x81, length]), text]))
    held = held.subarray(6 + length)
  })
}
