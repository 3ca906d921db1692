/** What the packet taps saw → denials, counted. Connections that reached a listener are the proxy's to judge. Pure. */
import type { Denial } from "../backend.ts"
import type { Attempt } from "./netns.ts"

const loopback = (address: string): boolean => address.startsWith("127.")

export const deniedAttempts = (attempts: readonly Attempt[], listening: ReadonlySet<number>, dnsServed: boolean): Denial[] => {
  const counts = new Map<string, Denial>()
  for (const attempt of attempts) {
    if (attempt.protocol === "tcp" && listening.has(attempt.port)) continue
    if (attempt.port === 53 && loopback(attempt.address) && dnsServed) continue
    // A program talking to itself over loopback is nobody's egress.
    if (attempt.name === undefined && loopback(attempt.address)) continue
    const target = attempt.name ?? `${attempt.protocol === "udp" ? "udp://" : ""}${attempt.address}:${attempt.port}`
    const reason = attempt.name === undefined ? "address_not_allowed" : "host_not_allowed"
    const key = `${reason} ${target}`
    counts.set(key, { layer: "egress", reason, target, count: (counts.get(key)?.count ?? 0) + 1 })
  }
  return [...counts.values()]
}
