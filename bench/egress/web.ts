/** Answers every request with a kilobyte, over plain HTTP and TLS, in a process of its own: `web.ts KEY CERTIFICATE`; tells both ports over IPC. */
import { readFileSync } from "node:fs"
import { createServer as createPlain, type RequestListener, type Server } from "node:http"
import { createServer as createSecure } from "node:https"
import type { AddressInfo } from "node:net"

const [key = "", certificate = ""] = process.argv.slice(2)
const body = "x".repeat(1024)
const answer: RequestListener = (_, response) => void response.end(body)
const listening = async (server: Pick<Server, "listen" | "address">): Promise<number> => {
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
  return (server.address() as AddressInfo).port
}
const http = await listening(createPlain({ keepAliveTimeout: 60_000 }, answer))
const https = await listening(createSecure({ key: readFileSync(key), cert: readFileSync(certificate) }, answer))
process.send?.({ http, https })
process.once("disconnect", () => process.exit())
