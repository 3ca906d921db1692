/**
 * What a user hands to `createEgressProxy` → a policy and an address to listen on, or a message.
 *
 * Guarantees: every mistake is a `PolicyError` that names the field and, where there is one, the corrected spelling;
 * nothing is guessed.
 */
import { isIPv6 } from "node:net"
import { parseEgressEntry } from "../../manifest/values/egress-entry.ts"
import { parseAuthority } from "./authority.ts"
import { defaultBudgets } from "./budgets.ts"
import { PolicyError } from "./compile.ts"
import type { EgressBudgets, EgressCapture, EgressPolicy, EgressSubstitution } from "../types.ts"

export interface PolicyInput {
  /** entries as in a manifest's `network.egress` */
  readonly egress: readonly string[]
  /** name → `127.0.0.1:5432`; the name must be declared in `egress` too */
  readonly services?: Readonly<Record<string, string | { readonly address: string; readonly port: number }>>
  /** CIDR grants to private ranges */
  readonly private?: readonly string[]
  readonly budgets?: Partial<EgressBudgets>
  readonly readOnlyHttp?: EgressPolicy["readOnlyHttp"]
  readonly substitutions?: readonly EgressSubstitution[]
  /** token endpoints whose answers are captured; `tokens` of the proxy says where they are kept */
  readonly capture?: EgressCapture
}

export function policyFrom(input: PolicyInput): EgressPolicy {
  if (!Array.isArray(input.egress))
    throw new PolicyError("egress must be a list of entries; an empty one lets nothing out")
  const entries = input.egress.map((text) => {
    const parsed = parseEgressEntry(text)
    if (parsed.ok) return parsed.entry
    throw new PolicyError(
      `egress: "${text}": ${parsed.message}${parsed.fix === undefined ? "" : `; write "${parsed.fix}"`}`,
    )
  })
  const services = Object.entries(input.services ?? {}).map(
    ([name, target]) => [name, typeof target === "string" ? serviceTarget(name, target) : target] as const,
  )
  return {
    entries,
    services: Object.fromEntries(services),
    private: input.private ?? [],
    budgets: budgetsFrom(input.budgets ?? {}),
    readOnlyHttp: input.readOnlyHttp ?? "report",
    substitutions: input.substitutions ?? [],
    ...(input.capture === undefined ? {} : { capture: input.capture }),
  }
}

function serviceTarget(name: string, text: string): { readonly address: string; readonly port: number } {
  const parsed = parseAuthority(text)
  if (!parsed.ok || parsed.value.host.kind !== "ip") {
    throw new PolicyError(
      `egress.services: "${name}" must map to an IP address and a port, e.g. 127.0.0.1:5432, not "${text}"`,
    )
  }
  return { address: parsed.value.host.ip.text, port: parsed.value.port }
}

function budgetsFrom(input: Partial<EgressBudgets>): EgressBudgets {
  const budgets = { ...defaultBudgets }
  for (const [name, value] of Object.entries(input)) {
    if (value === undefined) continue
    if (!Object.hasOwn(budgets, name))
      throw new PolicyError(`budgets: "${name}" is not a budget; there are ${Object.keys(budgets).join(", ")}`)
    if (typeof value !== "number" || Number.isNaN(value) || value < 0)
      throw new PolicyError(`budgets.${name} must be a number of at least 0`)
    budgets[name as keyof EgressBudgets] = value
  }
  return budgets
}

export type Listen = string | number | { readonly host?: string; readonly port: number } | { readonly path: string }
type ListenAddress = { readonly host: string; readonly port: number } | { readonly path: string }

/** `127.0.0.1:0`, `[::1]:8080`, `localhost:0`, `:8080`, 8080, `unix:/path`, {host, port}, {path}. */
export function listenAddress(listen: Listen): ListenAddress {
  if (typeof listen === "number") return { host: "127.0.0.1", port: checkedPort(listen) }
  if (typeof listen === "object")
    return "path" in listen ? listen : { host: listen.host ?? "127.0.0.1", port: checkedPort(listen.port) }
  if (listen.startsWith("unix:")) {
    if (listen.length > 5) return { path: listen.slice(5) }
    throw new PolicyError('listen: "unix:" needs a path')
  }
  const match = /^(?:(\[[0-9a-fA-F:.]+\]|[^:[\]]*):)?([0-9]+)$/.exec(listen)
  if (match === null)
    throw new PolicyError(`listen: "${listen}" is none of "127.0.0.1:3128", "[::1]:3128", "unix:/path"`)
  return { host: (match[1] ?? "").replace(/^\[|\]$/g, "") || "127.0.0.1", port: checkedPort(Number(match[2])) }
}

function checkedPort(port: number): number {
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port
  throw new PolicyError(`listen: ${port} is not a port`)
}

export const addressText = (address: string, port: number): string =>
  isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`
