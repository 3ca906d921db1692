/**
 * One client connection to the proxy: the first byte tells SOCKS from HTTP.
 *
 * Guarantees: 5 (and 4, which is refused in its own words) is SOCKS; everything else is HTTP and must satisfy its
 * grammar. The connection is closed when its server is done with it.
 */
import type { Authority } from "./authority.ts"
import type { ByteSource } from "./byte-source.ts"
import { denialResponse } from "./denial.ts"
import type { Gate } from "./gate.ts"
import { serveHttp } from "./http/session.ts"
import { linger } from "./linger.ts"
import { serveSocks } from "./socks.ts"
import { serveTunnel } from "./tunnel.ts"

const established = Buffer.from("HTTP/1.1 200 Connection Established\r\n\r\n")

export async function serveConnection(gate: Gate, source: ByteSource): Promise<void> {
  const first = await source.read(gate.limits.silentMs)
  if (typeof first === "string") {
    source.socket.destroy()
    return
  }
  source.unread(first)
  if (first[0] === 5 || first[0] === 4) return serveSocks(gate, source)
  const onConnect = (target: Authority) =>
    serveTunnel({
      gate,
      source,
      protocol: "connect",
      target,
      onOpen: () => source.socket.write(established),
      onRefused: (verdict) =>
        linger(source, denialResponse(verdict, { keepAlive: false, headOnly: false }), gate.limits),
    })
  return serveHttp({ gate, source, onConnect })
}
