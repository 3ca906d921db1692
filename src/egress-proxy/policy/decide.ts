/**
 * `decide(policy, request) → verdict`: the name verdict, pure and in a few microseconds.
 *
 * Guarantees: no I/O, no clock, no state; the same inputs give the same verdict; adding an entry never turns an
 * allow into a deny. CONNECT, absolute-form, SOCKS5, transparent TCP and DNS all come through here and nowhere else.
 * Does not: look at resolved addresses (`resolve.ts`), budgets (`budgets.ts`) or what flows afterwards.
 */
import type { IpAddress } from "./address.ts"
import type { Authority, HostName } from "./authority.ts"
import { addressVerdict, type CompiledPolicy, type Grant } from "./compile.ts"
import type { ReasonCode } from "./reasons.ts"

/** Where an allowed request goes: a name still to be resolved, or addresses that need no resolver. */
export type Route =
  | { readonly kind: "resolve"; readonly name: HostName; readonly port: number }
  | { readonly kind: "literal"; readonly ip: IpAddress; readonly port: number }
  | { readonly kind: "service"; readonly ip: IpAddress; readonly port: number }

export type NameVerdict =
  | { readonly allow: true; readonly grant: Grant; readonly route: Route }
  | { readonly allow: false; readonly code: ReasonCode }

const refuse = (code: ReasonCode): NameVerdict => ({ allow: false, code })

const metadataNames: ReadonlySet<string> = new Set([
  "metadata",
  "metadata.google.internal",
  "metadata.goog",
  "instance-data",
  "instance-data.ec2.internal",
])
const reservedSuffixes: ReadonlySet<string> = new Set(["localhost", "local", "internal", "localdomain"])

export function decide(policy: CompiledPolicy, target: Authority): NameVerdict {
  const { host, port } = target
  if (host.kind === "ip") return decideLiteral(policy, host.ip, port)
  const service = policy.services.get(host.name)
  if (metadataNames.has(host.name) && !policy.off.has("name.metadata")) return refuse("metadata")
  if (service === undefined && isReservedName(policy, host.name) && !policy.off.has("name.reserved"))
    return refuse("reserved_name")
  const found = findGrant(policy, host.name, port)
  if (found === "unknown-host")
    return policy.off.has("entry.host") ? unruled(host.name, port) : refuse("host_not_allowed")
  if (found === "other-port")
    return policy.off.has("entry.port") ? unruled(host.name, port) : refuse("port_not_allowed")
  if (service === undefined) return { allow: true, grant: found, route: { kind: "resolve", name: host.name, port } }
  // The operator chose the address, so its class does not matter; a loop back into the proxy still does.
  if (policy.whose(service.ip, service.port) === "listener" && !policy.off.has("address.self")) return refuse("self")
  return { allow: true, grant: found, route: { kind: "service", ...service } }
}

const unruled = (name: HostName, port: number): NameVerdict => ({
  allow: true,
  grant: { rule: "-", protocol: "web" },
  route: { kind: "resolve", name, port },
})

function decideLiteral(policy: CompiledPolicy, ip: IpAddress, port: number): NameVerdict {
  const forbidden = addressVerdict(policy, ip, port)
  if (forbidden !== undefined) return refuse(forbidden)
  const ports = policy.exact.get(ip.text)
  if (ports === undefined) return refuse("host_not_allowed")
  const grant = ports.get(port)
  return grant === undefined ? refuse("port_not_allowed") : { allow: true, grant, route: { kind: "literal", ip, port } }
}

export function isReservedName(policy: CompiledPolicy, name: string): boolean {
  return reservedSuffixes.has(name.slice(name.lastIndexOf(".") + 1)) || policy.ownNames.has(name)
}

function findGrant(policy: CompiledPolicy, name: string, port: number): Grant | "unknown-host" | "other-port" {
  const own = policy.exact.get(name)
  let best = own?.get(port)
  let known = own !== undefined
  // A wildcard covers one or more labels in front of its suffix, never the suffix itself.
  for (let dot = name.indexOf("."); dot >= 0 && best?.protocol !== "tcp"; dot = name.indexOf(".", dot + 1)) {
    const ports = policy.wildcard.get(name.slice(dot + 1))
    if (ports === undefined) continue
    known = true
    const grant = ports.get(port)
    if (grant !== undefined && (best === undefined || grant.protocol === "tcp")) best = grant
  }
  return best ?? (known ? "other-port" : "unknown-host")
}

/** Ports that a name is declared with: what the DNS responder asks before it hands out an address. */
export function declaredPorts(policy: CompiledPolicy, name: string): readonly number[] {
  const ports = new Set(policy.exact.get(name)?.keys() ?? [])
  for (let dot = name.indexOf("."); dot >= 0; dot = name.indexOf(".", dot + 1)) {
    for (const port of policy.wildcard.get(name.slice(dot + 1))?.keys() ?? []) ports.add(port)
  }
  return [...ports]
}
