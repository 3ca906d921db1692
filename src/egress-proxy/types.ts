/** The words that cross the proxy's border. Policy comes in as a plain value; verdicts go out as plain values. */
import type { Socket } from "node:net"
import type { EgressEntry } from "../manifest/values/egress-entry.ts"
import type { TokenCapture } from "../manifest/values/token-endpoint.ts"

/** `db.test: 127.0.0.1:5432`: a name this host maps on purpose, the one way to a loopback or private address. */
export type EgressServices = Readonly<Record<string, { readonly address: string; readonly port: number }>>

export interface EgressBudgets {
  readonly bytesOut: number
  readonly bytesIn: number
  readonly requests: number
  readonly connections: number
  readonly distinctNames: number
  readonly connectTimeoutMs: number
  readonly idleTimeoutMs: number
}

export interface EgressPolicy {
  readonly entries: readonly EgressEntry[]
  readonly services: EgressServices
  /** CIDR grants to private ranges, canonical text */
  readonly private: readonly string[]
  readonly budgets: EgressBudgets
  readonly readOnlyHttp: "enforce" | "report" | "off"
  /** secrets substituted at the proxy: values live in memory only */
  readonly substitutions: readonly EgressSubstitution[]
  /** tokens that providers give out are kept, and the sandbox gets placeholders */
  readonly capture?: EgressCapture
}

export type EgressCapture = TokenCapture

export interface EgressSubstitution {
  /** what the sandbox sees, e.g. `$$SECRET[GITHUB_TOKEN]$$` */
  readonly placeholder: string
  readonly value: string
  /** canonical host names this secret is bound to */
  readonly hosts: readonly string[]
  /** names of the headers that may carry it to those hosts; default `Authorization` alone */
  readonly headers?: readonly string[]
}

export type Protocol = "connect" | "http" | "websocket" | "socks5" | "tcp" | "dns"

export interface Verdict {
  readonly decision: "allow" | "deny" | "malformed" | "infrastructure"
  /** stable code from the proxy's reasons table */
  readonly reason: string
  readonly protocol: Protocol
  readonly host?: string
  /** the host as people read it, where it has `xn--` labels, and the scripts that its letters are from */
  readonly unicode?: string
  readonly scripts?: readonly string[]
  readonly port?: number
  /** the vetted address dialled */
  readonly address?: string
  /** the names that the host is an alias of (CNAME), in order, as far as the resolver tells */
  readonly aliases?: readonly string[]
  /** the entry that allowed it */
  readonly rule?: string
  readonly hint?: string
  /** on an allow: the code that a rule set to `report` would have refused it with */
  readonly report?: string
}

type ResolvedAddress = string | { readonly address: string }
/** Addresses alone, or with the names that the asked one is an alias of, in order. */
export type Resolved =
  | readonly ResolvedAddress[]
  | { readonly addresses: readonly ResolvedAddress[]; readonly aliases?: readonly string[] }
export type Resolve = (name: string) => Promise<Resolved> | Resolved
export type Dial = (address: string, port: number) => Socket | Promise<Socket>
