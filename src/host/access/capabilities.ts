/**
 * What a call requires beside its action (AIP-7's gate of capabilities): hosts to reach and secrets to be given, each an
 * action of the standard library with a subject, held against the operator's grants. Pure.
 *
 * Guarantees: whatever a contract claims, hosts and secrets are those that contract and driver name together; one that
 * reaches only partly into what a grant covers is not covered. Where no policy speaks of such an action, who may use a
 * tool may use what it requires; where one does, everybody needs a grant of it. What of a policy cannot be held refuses it.
 * Does not: look at tools that a contract requires; each such call is decided as a call of its own.
 */
import { coversName, type EgressEntry, parseEgressEntry } from "../../manifest/values/egress-entry.ts"
import type { GrantsPolicy, ToolContract } from "../../manifest/types.ts"
import { subjectOf, type WhoActs } from "./caller.ts"
import { type AccessRecord, isPrincipal, standing, unheldOf } from "./grants.ts"

export interface Capability {
  readonly action: "sandbox:network-egress" | "secrets:reveal"
  /** an egress entry, or the slug of a secret; `*`: hosts that are not named */
  readonly of: string
}

/** As their actions in the standard library (AIP-39). */
const RISKS: Readonly<Record<Capability["action"], number>> = { "sandbox:network-egress": 2, "secrets:reveal": 1 }
const CLASSES: Readonly<Record<Capability["action"], string>> = {
  "sandbox:network-egress": "network",
  "secrets:reveal": "secret",
}
export const riskOf = ({ action }: Capability): number => RISKS[action]

export const reaching = (hosts: readonly string[]): readonly Capability[] =>
  hosts.map((of) => ({ action: "sandbox:network-egress", of }))
export const revealing = (slugs: readonly string[]): readonly Capability[] =>
  [...new Set(slugs)].map((of) => ({ action: "secrets:reveal", of }))

/** What the contract says itself. */
export const requiredBy = ({ requires: { network = [], secrets } }: Pick<ToolContract, "requires">) => [
  ...reaching(network),
  ...revealing(secrets.flatMap((name) => [name, name.replaceAll(".", "-")])),
]

/** Its subject as policies may write it: alone, or as in `mutates`. */
export const subjectsOf = ({ action, of }: Capability): readonly string[] => [of, `${CLASSES[action]}:${of}`]

const isSame = (a: EgressEntry, b: EgressEntry): boolean => a.wildcard === b.wildcard && a.host === b.host
const covers = (wide: EgressEntry, narrow: EgressEntry): boolean =>
  isSame(wide, narrow) || (wide.wildcard && coversName(wide, narrow.host))

/** Is there a host that both mean? Ports are not looked at; what is no host, and stands for many, may be any. */
export const mayMeet = (subject: string, { action, of }: Capability): boolean => {
  if (action !== "sandbox:network-egress") return false
  const [said, own] = [parseEgressEntry(subject.toLowerCase().replace(/^network:/, "")), parseEgressEntry(of)]
  if (!own.ok) return false
  if (!said.ok) return subject.includes("*") && own.entry.wildcard
  return covers(said.entry, own.entry) || covers(own.entry, said.entry)
}

/** Does a grant's scope hold all of it? */
const isWithin = (scope: string | undefined, capability: Capability): boolean => {
  const { action, of } = capability
  const kind = CLASSES[action]
  if (scope === undefined || scope === "*" || scope === `${kind}:*` || subjectsOf(capability).includes(scope))
    return true
  if (action !== "sandbox:network-egress") return false
  const [wide, narrow] = [parseEgressEntry(scope.replace(/^network:/, "")), parseEgressEntry(of)]
  return (
    wide.ok &&
    narrow.ok &&
    covers(wide.entry, narrow.entry) &&
    narrow.entry.ports.every((port) => wide.entry.ports.includes(port))
  )
}

/** `sandbox:*` speaks of it by its kind; `*` alone is over everything, and says nothing of it by itself. */
const speaksOf = (pattern: string, { action }: Capability): boolean =>
  pattern.replace(/@\d+$/, "") === action ||
  (pattern.length > 1 && pattern.endsWith("*") && action.startsWith(pattern.slice(0, -1)))

const refusalOf = (
  policies: readonly GrantsPolicy[],
  who: WhoActs,
  capability: Capability,
  now: number,
): AccessRecord | undefined => {
  const base = {
    decision: "deny",
    principal: `user://${subjectOf(who)}`,
    action: capability.action,
    needs: capability.of,
    chain: policies.map(({ id }) => id),
  } as const
  for (const policy of policies) {
    const bar = unheldOf(policy).find(({ appliesTo }) => appliesTo.some((pattern) => speaksOf(pattern, capability)))
    if (bar !== undefined)
      return {
        ...base,
        reason: bar.what === "limit" ? "limit-exceeded" : "requirement-failed",
        policy: policy.id,
        unheld: bar.kind,
      }
  }
  const closed = policies.find(({ grants }) => grants.default === "deny")
  const speaking = policies.filter(({ grants }) =>
    grants.grants.some(({ actions }) => actions.some(({ action }) => speaksOf(action, capability))),
  )
  // Hosts that are not named are those of the driver, which is asked about each of them.
  if (closed === undefined || speaking.length === 0 || capability.of === "*") return undefined
  let near: AccessRecord | undefined
  for (const { id, grants } of policies)
    for (const [index, grant] of grants.grants.entries()) {
      const isOver = grant.actions.some(
        ({ action, scope }) => (action === "*" || speaksOf(action, capability)) && isWithin(scope, capability),
      )
      if (!isOver || !isPrincipal(grant.principal, who)) continue
      const held = standing(grant, who, now)
      if (held === "holds") return undefined
      near ??= { ...base, reason: held, policy: id, grant: grant.id ?? `grants[${index}]` }
    }
  return near ?? { ...base, reason: "no-grant", policy: speaking[0]?.id ?? closed.id }
}

/** The first of them that the grants do not let this caller have. */
export const ungranted = (
  policies: readonly GrantsPolicy[],
  who: WhoActs,
  needed: readonly Capability[],
  now: number,
): AccessRecord | undefined => {
  for (const capability of needed) {
    const refused = refusalOf(policies, who, capability, now)
    if (refused !== undefined) return refused
  }
  return undefined
}
