/**
 * Checks as data: each rule has a stable name and the reason it raises.
 *
 * Guarantees: a rule that is not in `off` is applied. `off` is empty in every proxy that the public API makes; only
 * the mutation check builds policies with rules switched off, to prove that each one is held by a case.
 */
import type { ReasonCode } from "./reasons.ts"

export type RulesOff = ReadonlySet<string>
export const everyRule: RulesOff = new Set()

export interface Rule<T> {
  readonly name: string
  readonly code: ReasonCode
  readonly broken: (value: T) => boolean
}

export function firstBroken<T>(rules: readonly Rule<T>[], value: T, off: RulesOff): ReasonCode | undefined {
  for (const rule of rules) if (rule.broken(value) && !off.has(rule.name)) return rule.code
  return undefined
}

/** The same, where a value that has `plainShape` cannot break any of the rules: most are known good by one look. */
export function firstBrokenUnless(
  plainShape: RegExp,
  rules: readonly Rule<string>[],
  value: string,
  off: RulesOff,
): ReasonCode | undefined {
  return plainShape.test(value) ? undefined : firstBroken(rules, value, off)
}

/** Rules that stand in the code by themselves, where they need more than one value to judge. */
export const standaloneRules = [
  "entry.host",
  "entry.port",
  "name.metadata",
  "name.reserved",
  "address.self",
  "address.unspecified",
  "address.loopback",
  "address.link_local",
  "address.metadata",
  "address.private",
  "address.shared",
  "address.protocol_assignment",
  "address.documentation",
  "address.benchmark",
  "address.multicast",
  "address.reserved",
  "address.embedded_v4",
  "answer.mixed",
  "connect.body",
  "method.unpassed",
  "method.read-only",
  "method.override",
  "method.empty-body",
  "target.scheme",
  "target.fragment",
  "target.tls-port",
  "host-header.once",
  "host-header.required",
  "host-header.agrees",
  "host-header.port",
  "headers.nominated",
  "headers.protected",
  "headers.proxy",
  "headers.own",
  "headers.hop-by-hop",
  "response.framing",
  "websocket.accept",
  "tunnel.tls-only",
  "tls.sni_mismatch",
  "tls.sni_missing",
] as const
