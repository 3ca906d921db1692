/** What the packet taps saw → denials, counted. Connections that reached a listener are the proxy's to judge. Pure. */
import type { Denial, NetworkChannelSpec } from "../backend.ts"
import type { Attempt, Attempts } from "./taps.ts"

const loopback = (address: string): boolean => address.startsWith("127.") || address === "[::1]"

/** Did it reach a listener? The proxy and the name server answer on loopback only, transparent ports everywhere in IPv4. */
const served = ({ protocol, address, port }: Attempt, network: NetworkChannelSpec | "none"): boolean => {
  if (network === "none" || address.startsWith("[")) return false
  if (loopback(address)) return (network.dns && port === 53) || (protocol === "tcp" && port === network.proxyPort)
  return protocol === "tcp" && network.transparentPorts.includes(port)
}

/** Attempts that left no name are denials all the same: a flood must not talk itself out of the record. */
const unnamedDials = (count: number): Denial => ({
  layer: "egress",
  reason: "attempts_unnamed",
  target: "more targets than the record holds",
  count,
})

export const deniedAttempts = (attempts: Attempts, network: NetworkChannelSpec | "none"): Denial[] => {
  const counts = new Map<string, Denial>()
  for (const { attempt, count } of attempts.named) {
    if (served(attempt, network)) continue
    // A program talking to itself over loopback is nobody's egress.
    if (attempt.name === undefined && loopback(attempt.address)) continue
    const target = attempt.name ?? `${attempt.protocol === "udp" ? "udp://" : ""}${attempt.address}:${attempt.port}`
    const reason = attempt.name === undefined ? "address_not_allowed" : "host_not_allowed"
    const key = `${reason} ${target}`
    counts.set(key, { layer: "egress", reason, target, count: (counts.get(key)?.count ?? 0) + count })
  }
  return [...counts.values(), ...(attempts.unnamed > 0 ? [unnamedDials(attempts.unnamed)] : [])]
}
