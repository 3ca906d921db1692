/**
 * A plain `EgressPolicy` → the compiled form that `decide` reads.
 *
 * Guarantees: compiling checks everything the operator wrote (services, CIDR grants) and refuses with a message;
 * a compiled policy is immutable and answers a name with a few map lookups, however long the list.
 * Assumes: entries were made by the manifest's entry parser, so they are canonical.
 */
import { hostname } from "node:os"
import { type Cidr, classify, contains, type IpAddress, parseCidr, parseIp } from "./address.ts"
import { parseHost } from "./authority.ts"
import { everyRule, type RulesOff } from "./rules.ts"
import { tokenEndpoint } from "../../manifest/values/token-endpoint.ts"
import { prepareSubstitutions, type Substitutions } from "../secrets/substitute.ts"
import { boundHosts, type CapturedTokens } from "../tokens/captured.ts"
import type { EgressCapture, EgressPolicy } from "../types.ts"

export interface Grant {
  /** the entry's text, as it is shown in verdicts */
  readonly rule: string
  readonly protocol: "web" | "tcp"
}

/** Is this address, with this port, a listener of the proxy, or (loopback aside) an address of this machine? */
export type WhoseAddress = (ip: IpAddress, port: number) => "listener" | "machine" | undefined

export interface CompiledPolicy {
  readonly source: EgressPolicy
  /** host → port → grant; literals are listed by their canonical text */
  readonly exact: ReadonlyMap<string, ReadonlyMap<number, Grant>>
  /** `cdn.good.test` for `*.cdn.good.test` */
  readonly wildcard: ReadonlyMap<string, ReadonlyMap<number, Grant>>
  readonly services: ReadonlyMap<string, { readonly ip: IpAddress; readonly port: number }>
  readonly grants: readonly Cidr[]
  readonly substitutions: Substitutions
  /** names of this machine, reserved like `localhost` */
  readonly ownNames: ReadonlySet<string>
  readonly whose: WhoseAddress
  readonly off: RulesOff
}

export interface CompileContext {
  readonly whose?: WhoseAddress
  readonly ownNames?: readonly string[]
  readonly off?: RulesOff
  /** where what is captured is held; needed by a policy that captures */
  readonly captured?: CapturedTokens | undefined
}

export class PolicyError extends Error {
  override readonly name = "PolicyError"
}

export function compilePolicy(source: EgressPolicy, context: CompileContext = {}): CompiledPolicy {
  const exact = new Map<string, Map<number, Grant>>()
  const wildcard = new Map<string, Map<number, Grant>>()
  for (const entry of source.entries) {
    const table = entry.wildcard ? wildcard : exact
    const ports = table.get(entry.host) ?? new Map<number, Grant>()
    for (const port of entry.ports) {
      // Where two entries cover the same target, the wider one (`tcp://`) holds: adding an entry never denies.
      if (ports.get(port)?.protocol !== "tcp") ports.set(port, { rule: entry.text, protocol: entry.protocol })
    }
    table.set(entry.host, ports)
  }
  const own = (context.ownNames ?? [hostname()]).map((name) => name.toLowerCase())
  return Object.freeze({
    source,
    exact,
    wildcard,
    services: compileServices(source),
    grants: source.private.map(compileGrant),
    substitutions: compileSubstitutions(source, context.captured),
    ownNames: new Set(own),
    whose: context.whose ?? (() => undefined),
    off: context.off ?? everyRule,
  })
}

function compileServices(source: EgressPolicy): CompiledPolicy["services"] {
  const services = new Map<string, { ip: IpAddress; port: number }>()
  for (const [name, target] of Object.entries(source.services)) {
    const host = parseHost(name)
    if (!host.ok || host.value.kind !== "name" || host.value.name !== name) {
      throw new PolicyError(`egress.services: "${name}" is not a canonical host name`)
    }
    const ip = parseIp(target.address.replace(/^\[(.*)\]$/, "$1"))
    if (ip === undefined || !Number.isInteger(target.port) || target.port < 1 || target.port > 65535) {
      throw new PolicyError(`egress.services: "${name}" must map to an IP address and a port, e.g. 127.0.0.1:5432`)
    }
    services.set(name, { ip, port: target.port })
  }
  return services
}

function compileSubstitutions(source: EgressPolicy, captured: CapturedTokens | undefined): Substitutions {
  const prepared = prepareSubstitutions(source.substitutions)
  if (!prepared.ok) throw new PolicyError(`substitutions: ${prepared.reason}`)
  const { capture } = source
  if (capture === undefined) return prepared.substitutions
  if (captured === undefined) throw new PolicyError("capture: there is no place where tokens are kept")
  checkCapture(source, capture)
  return captured.beside(source.substitutions, capture)
}

/** What is relayed as it is would not be looked at, and tokens would come in by it. */
function checkCapture({ entries }: EgressPolicy, capture: EgressCapture): void {
  const places = capture.endpoints.map(({ host, port, path }) => `https://${host}:${port}${path}`)
  const unfit = places.find((place) => tokenEndpoint(place) === undefined)
  if (unfit !== undefined) throw new PolicyError(`capture: ${unfit} is no address of a token endpoint`)
  for (const host of boundHosts(capture)) {
    if (!/^[a-z0-9._-]+$/.test(host) || host.endsWith("."))
      throw new PolicyError(`capture: ${host} is no canonical name`)
    const open = entries.find(
      (entry) => entry.protocol === "tcp" && (entry.wildcard ? host.endsWith(`.${entry.host}`) : entry.host === host),
    )
    if (open !== undefined)
      throw new PolicyError(
        `capture: ${host} is declared as ${open.text}, which is passed on unseen; declare it as ${host}`,
      )
  }
}

/** Ranges that an operator may open by CIDR: private networks and carrier-grade NAT. */
const grantable: ReadonlySet<string> = new Set(["private", "shared"])

function compileGrant(text: string): Cidr {
  const cidr = parseCidr(text)
  if (cidr === undefined) throw new PolicyError(`egress.private: "${text}" is not a canonical CIDR such as 10.1.0.0/16`)
  if (!grantable.has(classify(cidr.network))) {
    throw new PolicyError(
      `egress.private: ${text} is ${classify(cidr.network)}; only private and shared ranges can be granted, other addresses are mapped with egress.services`,
    )
  }
  return cidr
}

/** The class that forbids an address under this policy, or nothing when it may be dialled. */
export function addressVerdict(policy: CompiledPolicy, ip: IpAddress, port: number) {
  if (policy.whose(ip, port) !== undefined && !policy.off.has("address.self")) return "self" as const
  const found = classify(ip)
  if (found === "public" || policy.off.has(`address.${found}`)) return undefined
  if (grantable.has(found) && policy.grants.some((grant) => contains(grant, ip))) return undefined
  return found
}
