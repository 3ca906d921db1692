/**
 * Which addresses are this machine, and which listeners are the proxy's own.
 *
 * Guarantees: an address of any interface, bridges and container gateways included, is `machine`; the listeners of
 * every proxy in this process are `listener`. The list of interfaces is at most two seconds old.
 * Does not: answer for loopback as a whole; the address table does.
 */
import { networkInterfaces } from "node:os"
import { classify, type IpAddress, parseIp } from "./address.ts"
import type { WhoseAddress } from "./compile.ts"

const listeners = new Map<string, number>()
/** how many listeners a port has: most ports have none */
const ports = new Map<number, number>()
let interfaces: { readonly addresses: ReadonlySet<string>; readonly readAt: number } = {
  addresses: new Set(),
  readAt: Number.NEGATIVE_INFINITY,
}

function machineAddresses(): ReadonlySet<string> {
  const now = performance.now()
  if (now - interfaces.readAt < 2_000) return interfaces.addresses
  const addresses = new Set<string>()
  for (const list of Object.values(networkInterfaces())) {
    for (const { address } of list ?? []) addresses.add(parseIp(address.replace(/%.*$/, ""))?.text ?? address)
  }
  interfaces = { addresses, readAt: now }
  return addresses
}

/** Marks a TCP listener as the proxy's own until the returned function is called. */
export function registerListener(address: string, port: number): () => void {
  const ip = parseIp(address)
  const wide = ip === undefined || classify(ip) === "unspecified"
  const key = wide ? `*:${port}` : `${ip.text} ${port}`
  const forget = [counted(listeners, key), counted(ports, port)]
  return () => {
    for (const one of forget.splice(0)) one()
  }
}

/** One more of this key, until the returned function is called. */
function counted<Key>(counts: Map<Key, number>, key: Key): () => void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
  return () => {
    const left = (counts.get(key) ?? 1) - 1
    if (left === 0) counts.delete(key)
    else counts.set(key, left)
  }
}

export const whoseAddress: WhoseAddress = (ip: IpAddress, port: number) => {
  const listening = ports.has(port)
  if (listening && listeners.has(`${ip.text} ${port}`)) return "listener"
  const loopback = classify(ip) === "loopback"
  const mine = loopback || machineAddresses().has(ip.text)
  if (mine && listening && listeners.has(`*:${port}`)) return "listener"
  return mine && !loopback ? "machine" : undefined
}
