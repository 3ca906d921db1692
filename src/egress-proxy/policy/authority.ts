/**
 * Bytes → `Authority`: a host and a port with one canonical spelling.
 *
 * Guarantees: an `Authority` exists only if its bytes were plain ASCII in our grammar: letters, digits, hyphen,
 * underscore and dots for names, a strict dotted quad, or a bracketed IPv6 address without zone; lower case, no
 * trailing dot. What `getaddrinfo` or a URL parser would read as a number is refused unless it is a dotted quad.
 * Assumes: text holds one character per byte (latin1). Pure.
 */
import { type IpAddress, parseIp } from "./address.ts"
import type { ReasonCode } from "./reasons.ts"
import { everyRule, firstBrokenUnless, type Rule, type RulesOff } from "./rules.ts"

declare const brand: unique symbol
export type HostName = string & { readonly [brand]: "HostName" }
export type Host = { readonly kind: "name"; readonly name: HostName } | { readonly kind: "ip"; readonly ip: IpAddress }
export interface Authority {
  readonly [brand]: "Authority"
  readonly host: Host
  readonly port: number
  /** canonical `name`, `1.2.3.4` or `2001:db8::1`, as it appears in verdicts */
  readonly hostText: string
  /** canonical `host:port`, IPv6 in brackets */
  readonly text: string
}

export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly code: ReasonCode }
const refuse = (code: ReasonCode) => ({ ok: false, code }) as const

const hostBytes = /^[A-Za-z0-9._-]*$/
const escaped = /%([0-9A-Fa-f]{2})/g

/** Rules on the bytes of a host, before anything is normalised. */
export const hostRules: readonly Rule<string>[] = [
  { name: "host.ascii", code: "non_ascii", broken: (text) => /[\u0080-\uffff]/.test(text) },
  { name: "host.userinfo", code: "userinfo", broken: (text) => text.includes("@") },
  { name: "host.percent", code: "non_canonical_host", broken: isEscapedHost },
  { name: "host.bytes", code: "bad_byte", broken: (text) => !hostBytes.test(text) },
]

/** Rules on a lower-case name without its trailing dot. */
export const nameRules: readonly Rule<string>[] = [
  { name: "name.length", code: "name_too_long", broken: (name) => name.length > 253 },
  { name: "name.labels", code: "name_too_long", broken: (name) => name.split(".").some((label) => label.length > 63) },
  {
    name: "name.shape",
    code: "bad_label",
    broken: (name) => name.split(".").some((label) => !/^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?$/.test(label)),
  },
  { name: "name.numeric", code: "numeric_host", broken: (name) => /(^|\.)([0-9]+|0x[0-9a-f]*)$/.test(name) },
]

/** Labels that start with a letter and are short; in all no longer than a name may be. Breaks none of the rules. */
const plainName = /^(?=.{1,253}$)[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?(?:\.[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?)*$/

function isEscapedHost(text: string): boolean {
  if (!text.includes("%")) return false
  return hostBytes.test(text.replace(escaped, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))))
}

export function parseHost(text: string, off: RulesOff = everyRule): Parsed<Host> {
  if (text === "") return refuse("bad_authority")
  if (text.startsWith("[")) {
    const ip = text.endsWith("]") ? parseIp(text.slice(1, -1)) : undefined
    return ip?.family === 6 ? { ok: true, value: { kind: "ip", ip } } : refuse("bad_literal")
  }
  const bytes = firstBrokenUnless(hostBytes, hostRules, text, off)
  if (bytes !== undefined) return refuse(bytes)
  // `0` is how many programs spell the unspecified address; it is never allowed, so it is named as what it is.
  const ip = text.charCodeAt(0) > 57 ? undefined : parseIp(text === "0" ? "0.0.0.0" : text)
  if (ip?.family === 4) return { ok: true, value: { kind: "ip", ip } }
  const lower = text.toLowerCase()
  const name = lower.endsWith(".") ? lower.slice(0, -1) : lower
  const shape = firstBrokenUnless(plainName, nameRules, name, off)
  if (shape !== undefined) return refuse(shape)
  return { ok: true, value: { kind: "name", name: name as HostName } }
}

/** Raw name bytes, as SOCKS5 and DNS carry them: never a literal in brackets, never with a port. */
export function parseName(bytes: Uint8Array, off: RulesOff = everyRule): Parsed<Host> {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1")
  return text.startsWith("[") ? refuse("bad_byte") : parseHost(text, off)
}

function parsePort(text: string): Parsed<number> {
  if (!/^[1-9][0-9]{0,4}$/.test(text) || Number(text) > 65535) return refuse("bad_port")
  return { ok: true, value: Number(text) }
}

export function authorityOf(host: Host, port: number): Authority {
  const hostText = host.kind === "name" ? host.name : host.ip.text
  const text = host.kind === "ip" && host.ip.family === 6 ? `[${hostText}]:${port}` : `${hostText}:${port}`
  return Object.freeze({ host, port, hostText, text }) as unknown as Authority
}

/** `host:port`, or `host` where a default port is given. */
export function parseAuthority(text: string, defaultPort?: number, off: RulesOff = everyRule): Parsed<Authority> {
  if (text.length > 1024) return refuse("name_too_long")
  if (text.includes("@") && !off.has("host.userinfo")) return refuse("userinfo")
  const bracket = text.startsWith("[") ? text.indexOf("]") : -1
  if (text.startsWith("[") && bracket < 0) return refuse("bad_literal")
  const colon = text.indexOf(":", bracket + 1)
  const hostText = colon < 0 ? text : text.slice(0, colon)
  if (colon < 0 && defaultPort === undefined) {
    // A byte that no host has is the better answer than a missing port.
    const host = parseHost(hostText, off)
    return refuse(host.ok ? "port_required" : host.code)
  }
  const host = parseHost(hostText, off)
  if (!host.ok) return host
  const port = colon < 0 ? { ok: true as const, value: defaultPort ?? 0 } : parsePort(text.slice(colon + 1))
  return port.ok ? { ok: true, value: authorityOf(host.value, port.value) } : port
}
