/**
 * AIP-38: who may do what. Grants of the operator's own folders, evaluated.
 *
 * Guarantees: pure. Grants add up over all policies; without one, a single policy that defaults to deny denies. What
 * this host cannot evaluate never grants: a principal or a condition that it does not know, a lifetime that has run out
 * or has no beginning. A requirement or a limit that it cannot hold refuses the actions that it speaks of, and those alone.
 * Wildcards are over actions; a tool that implements none is granted by its own id (obligation 130).
 */
import { covers, parseGlob } from "../../manifest/values/globs.ts"
import type {
  ActionContract,
  Grant,
  GrantsPolicy,
  MutateScope,
  PolicyLimit,
  Principal,
  ToolContract,
} from "../../manifest/types.ts"
import { conditionHolds } from "./conditions.ts"
import { isOperator, subjectOf, type WhoActs } from "./caller.ts"

/** A limit or requirement of a policy, which this host cannot hold anybody to. */
export interface Unheld {
  readonly what: "limit" | "requirement"
  readonly kind: string
  /** empty: every action */
  readonly appliesTo: readonly string[]
}

/** Whose account a limit is: absent, one for all of a tenant. */
const LIMIT_SCOPES = ["user", "workspace", "tool"] as const
/** Calls are counted in a time that the limit names, sandboxes while they are there; bytes over all calls of a day are not. */
const canHold = ({ kind, per, scope }: PolicyLimit): boolean =>
  (scope === undefined || LIMIT_SCOPES.some((known) => known === scope)) &&
  (kind === "max-concurrent-sandboxes" || (kind === "rate-tool-calls" && per !== undefined))

/** What of a policy this host cannot hold calls to. */
export const unheldOf = ({ grants: { requirements, limits, defaults } }: GrantsPolicy): readonly Unheld[] => [
  ...requirements.map(({ kind, appliesTo }) => ({ what: "requirement" as const, kind, appliesTo })),
  ...limits
    .flatMap((limit) => (canHold(limit) ? [] : [limit]))
    .map(({ kind, appliesTo }) => ({ what: "limit" as const, kind, appliesTo })),
  ...(Object.keys(defaults).length === 0 ? [] : [{ what: "requirement" as const, kind: "defaults", appliesTo: [] }]),
]

/** What a call does, in the words of policies. */
export interface Deed {
  readonly tool: ToolContract
  readonly action?: ActionContract
  /** rules, by their slugs, whose budget this call was debited to; absent: none */
  readonly within?: ReadonlySet<string>
}

type GrantReason =
  | "no-policy"
  | "matched-grant"
  | "default-allow"
  | "no-grant"
  | "condition-failed"
  | "explicit-revoke"
  | "ttl-expired"
  | "requirement-failed"
  | "limit-exceeded"
  | "policy-unreadable"

/** AIP-38's decision record. */
export interface AccessRecord {
  readonly decision: "allow" | "deny"
  readonly reason: GrantReason
  readonly principal: string
  readonly action: string
  readonly grant?: string
  /** the policies that were composed */
  readonly chain: readonly string[]
  /** the one that decided */
  readonly policy?: string
  /** the host or the secret that it is about, where the action is what a call requires beside its own */
  readonly needs?: string
  /** the limit or requirement that decided */
  readonly unheld?: string
}

const majorOf = (version: string): string => version.split(".")[0] ?? version

const toolNames = ({ tool }: Deed): readonly string[] => [tool.id, `${tool.id}@${tool.major}`]
const actionNames = ({ action }: Deed): readonly string[] =>
  action === undefined ? [] : [action.id, `${action.id}@${majorOf(action.version)}`]

/** `notes:*` and `*` are over actions; anything else is a name. */
const names = (pattern: string, deed: Deed): boolean => {
  if (!pattern.includes("*")) return [...actionNames(deed), ...toolNames(deed)].includes(pattern)
  const { action } = deed
  if (action === undefined || pattern.indexOf("*") !== pattern.length - 1) return false
  return action.id.startsWith(pattern.slice(0, -1))
}

const speaksOf = (appliesTo: readonly string[], deed: Deed): boolean =>
  appliesTo.length === 0 || appliesTo.some((pattern) => pattern === "*" || names(pattern, deed))

export interface HeldLimit extends PolicyLimit {
  readonly policy: string
  /** its place in the policy */
  readonly index: number
}
/** Limits that this call is held to, in the order of the policies. */
export const limitsOf = (policies: readonly GrantsPolicy[], deed: Deed): readonly HeldLimit[] =>
  policies.flatMap(({ id, grants: { limits } }) =>
    limits.flatMap((limit, index) =>
      canHold(limit) && speaksOf(limit.appliesTo, deed) ? [{ ...limit, policy: id, index }] : [],
    ),
  )

const inWorkspace = (wide: string, narrow: string): boolean => {
  const [one, other] = [parseGlob(wide), parseGlob(narrow)]
  return one.ok && other.ok && covers(one.glob, other.glob)
}
const holds = (scope: string, { class: kind, scope: narrow, text }: MutateScope): boolean => {
  if (scope === text) return true
  const colon = scope.indexOf(":")
  if (colon === -1 || scope.slice(0, colon) !== kind) return false
  const wide = scope.slice(colon + 1)
  return kind === "workspace" ? inWorkspace(wide, narrow) : wide === "*" || wide === narrow
}
/** A scope is written as in `mutates`, and holds for tools that declare nothing beyond it. */
const inScope = (scope: string | undefined, { tool }: Deed): boolean =>
  scope === undefined || scope === "*" || tool.mutates.every((declared) => holds(scope, declared))

/** Roles are the actor's own: they are not lent to the user that it acts for. */
export const isPrincipal = (principal: Principal, who: WhoActs): boolean => {
  const { user, actor } = who
  if (principal.kind === "anyone") return true
  if (principal.kind !== "scheme") return false
  const { scheme, name } = principal
  if (scheme === "user") return name === "current" || name === subjectOf(who)
  if (user !== actor || !isOperator(who)) return false
  return scheme === "operator" ? name === "*" || name === user : scheme === "role" && name === "owner"
}

/** Organisations, guilds, bots, groups and references are nobody that this host knows. */
export const isKnownPrincipal = (principal: Principal): boolean => {
  if (principal.kind !== "scheme") return principal.kind === "anyone"
  const { scheme, name } = principal
  return scheme === "user" || scheme === "operator" || (scheme === "role" && name === "owner")
}

type Held = "holds" | Extract<GrantReason, "condition-failed" | "explicit-revoke" | "ttl-expired">
export const standing = ({ revoked, endsAt, conditions }: Grant, who: WhoActs, now: number): Held => {
  if (revoked) return "explicit-revoke"
  if (endsAt !== undefined && now >= endsAt) return "ttl-expired"
  return conditions.every((condition) => conditionHolds(condition, who, now)) ? "holds" : "condition-failed"
}

export const evaluateGrants = (
  policies: readonly GrantsPolicy[],
  caller: WhoActs,
  deed: Deed,
  now: number,
): AccessRecord => {
  const base = {
    principal: `user://${subjectOf(caller)}`,
    action: deed.action?.id ?? deed.tool.id,
    chain: policies.map(({ id }) => id),
  }
  if (policies.length === 0) return { ...base, decision: "allow", reason: "no-policy" }
  for (const policy of policies) {
    const bar = unheldOf(policy).find(({ appliesTo }) => speaksOf(appliesTo, deed))
    if (bar !== undefined) {
      const reason = bar.what === "limit" ? "limit-exceeded" : "requirement-failed"
      return { ...base, decision: "deny", reason, policy: policy.id, unheld: bar.kind }
    }
  }
  let near: AccessRecord | undefined
  for (const { id, grants } of policies)
    for (const [index, grant] of grants.grants.entries()) {
      if (!isPrincipal(grant.principal, caller)) continue
      if (!grant.actions.some(({ action, scope }) => names(action, deed) && inScope(scope, deed))) continue
      const held = standing(grant, caller, now)
      const found = { ...base, grant: grant.id ?? `grants[${index}]`, policy: id }
      if (held === "holds") return { ...found, decision: "allow", reason: "matched-grant" }
      near ??= { ...found, decision: "deny", reason: held }
    }
  const closed = policies.find(({ grants }) => grants.default === "deny")
  if (closed === undefined) return { ...base, decision: "allow", reason: "default-allow" }
  return near ?? { ...base, decision: "deny", reason: "no-grant", policy: closed.id }
}
