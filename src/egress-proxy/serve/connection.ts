/**
 * One client connection to the proxy: the first byte tells SOCKS from HTTP.
 *
 * Guarantees: 5 (and 4, which is refused in its own words) is SOCKS; everything else is HTTP and must satisfy its
 * grammar. The connection is closed when its server is done with it.
 */
import type { Authority } from "../policy/authority.ts"
import type { ByteSource } from "../connection/byte-source.ts"
import { denialResponse } from "../policy/denial.ts"
import type { Gate } from "../dial/gate.ts"
import type { Verdict } from "../types.ts"
import { serveHttp } from "./http-session.ts"
import { linger } from "./linger.ts"
import { serveSocks } from "./socks.ts"
import { openTunnel, serveTunnel, type TunnelOptions } from "./tunnel.ts"

const established = Buffer.from("HTTP/1.1 200 Connection Established\r\n\r\n")

/** @param fail is told of what nobody foresaw; the connection is then closed */
export function serveConnection(gate: Gate, source: ByteSource, fail: (error: unknown) => void): void {
  source.next(gate.limits.silentMs, (first) => {
    if (typeof first === "string") return source.destroy()
    try {
      const known = gate.tunnels.find(first)
      // One that will be refused waits for its turn like everything else.
      if (known !== undefined && gate.decide(known).allow) return openTunnel(connectTunnel(gate, source, known), fail)
      source.unread(first)
      serve(gate, source, first).catch(fail)
    } catch (error) {
      fail(error)
    }
  })
}

async function serve(gate: Gate, source: ByteSource, first: Buffer): Promise<void> {
  if (first[0] === 5 || first[0] === 4) return serveSocks(gate, source)
  return serveHttp({ gate, source, onConnect: (target) => serveTunnel(connectTunnel(gate, source, target)) })
}

const connectTunnel = (gate: Gate, source: ByteSource, target: Authority): TunnelOptions => ({
  gate,
  source,
  protocol: "connect",
  target,
  onOpen: tellOpen,
  onRefused: tellRefused,
})
const tellOpen = ({ source }: TunnelOptions): void => source.write(established)
const tellRefused = ({ gate, source }: TunnelOptions, verdict: Verdict): Promise<void> =>
  linger(source, denialResponse(verdict, { keepAlive: false, headOnly: false }), gate)
