/**
 * One question to a driver's service: does it answer as its health check says it should?
 *
 * Guarantees: goes the way of a sandbox's connections, to declared hosts alone; carries no secret; TLS is verified; reads
 * the head of the answer and nothing more; follows no redirect. Ends by the signal.
 */
import { request as plainRequest } from "node:http"
import { request as tlsRequest } from "node:https"
import { isIP } from "node:net"
import { connect as tlsConnect } from "node:tls"
import type { Duplex } from "node:stream"
import type { HttpProbe } from "../../manifest/types.ts"
import { portOf } from "../../manifest/values/address.ts"
import type { Dialled, HostedDial } from "../../egress-proxy/serve/hosted.ts"

/** What leads to a driver's declared hosts, and nowhere else. */
export interface Outlet {
  dial(to: HostedDial): Promise<Dialled>
}

type Asked = { readonly ok: true; readonly status: number } | { readonly ok: false; readonly reason: string }

const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, "")

const secure = (connection: Duplex, url: URL): Duplex => {
  const host = hostOf(url)
  return tlsConnect({ socket: connection, host, ...(isIP(host) === 0 ? { servername: host } : {}) })
}

const headOf = (url: URL, method: HttpProbe["method"], connection: Duplex, signal: AbortSignal): Promise<Asked> =>
  new Promise((resolve) => {
    const isSecure = url.protocol === "https:"
    const asked = (isSecure ? tlsRequest : plainRequest)(url, {
      method,
      signal,
      headers: { accept: "*/*", connection: "close", "user-agent": "caisson-health" },
      // Where an agent is named, be it `false`, this is not asked, and the request would dial by itself.
      createConnection: () => (isSecure ? secure(connection, url) : connection),
    })
    const end = (answer: Asked): void => {
      resolve(answer)
      asked.destroy()
      connection.destroy()
    }
    asked.once("response", ({ statusCode = 0 }) => end({ ok: true, status: statusCode }))
    asked.on("error", (error: NodeJS.ErrnoException) =>
      end({ ok: false, reason: signal.aborted ? "it did not answer in time" : (error.code ?? "the connection broke") }),
    )
    asked.end()
  })

export const ask = async (
  outlet: Outlet,
  { url: address, method }: Pick<HttpProbe, "url" | "method">,
  signal: AbortSignal,
): Promise<Asked> => {
  const url = new URL(address)
  const sends = { method, path: url.pathname + url.search, headers: [] }
  const dialled = await outlet.dial({ host: hostOf(url), port: portOf(url), sends, signal })
  if (dialled.ok) return headOf(url, method, dialled.connection, signal)
  return { ok: false, reason: signal.aborted ? "it did not answer in time" : dialled.verdict.reason }
}
