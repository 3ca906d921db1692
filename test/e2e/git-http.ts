/** Git's own smart HTTP server, `git http-backend`, behind node:http. */
import { execFileSync, spawn } from "node:child_process"
import type { IncomingMessage, ServerResponse } from "node:http"
import { join } from "node:path"

export const gitHttp = (root: string): ((request: IncomingMessage, response: ServerResponse) => void) => {
  const program = join(execFileSync("git", ["--exec-path"], { encoding: "utf8" }).trim(), "git-http-backend")
  return (request, response) => {
    const url = new URL(request.url ?? "/", "http://x")
    const env = {
      PATH: process.env["PATH"] ?? "",
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: request.method ?? "GET",
      CONTENT_TYPE: request.headers["content-type"] ?? "",
      ...(request.headers["content-encoding"] === undefined
        ? {}
        : { HTTP_CONTENT_ENCODING: request.headers["content-encoding"] }),
      ...(request.headers["git-protocol"] === undefined
        ? {}
        : { GIT_PROTOCOL: String(request.headers["git-protocol"]) }),
    }
    const child = spawn(program, [], { env, stdio: ["pipe", "pipe", "ignore"] })
    request.pipe(child.stdin)
    child.stdin.on("error", () => undefined)
    const parts: Buffer[] = []
    child.stdout.on("data", (part: Buffer) => parts.push(part))
    child.on("close", () => {
      const all = Buffer.concat(parts)
      const at = all.indexOf("\r\n\r\n")
      const lines = all.toString("latin1", 0, at).split("\r\n")
      const headers = lines.map(
        (line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()] as const,
      )
      const status = headers.find(([name]) => name === "Status")?.[1] ?? "200"
      response.writeHead(Number.parseInt(status, 10), Object.fromEntries(headers.filter(([name]) => name !== "Status")))
      response.end(all.subarray(at + 4))
    })
  }
}
