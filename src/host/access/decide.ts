/**
 * May this caller make this call, and who has to say yes?
 *
 * Guarantees: pure, and in one order: who acts and for whom, the resource, the permission (grants, what of a policy cannot
 * be held, rules, the class of data), then approval; the first that refuses decides. Between `permit` and `decide` the host
 * looks at rates and budgets. The strictest of contract, action,
 * rule and host holds (C-6: auto < on-mutate < always; a driver has no say). Effects on the workspace are approved as
 * effects: the call runs, and where asking is due its effects are shown and not committed. What cannot be undone by
 * throwing a layer away is asked about before anything runs, also for a plan.
 * A caller who may not use a tool gets the answer that a tool which is not there gets.
 * Does not: look at the driver; its policy tags, region and egress are the route's and the seal's to decide.
 */
import { shown } from "../../manifest/values/diagnostics.ts"
import type { GovernanceRule, JsonObject, ToolContract } from "../../manifest/types.ts"
import type { Failure } from "../failure.ts"
import { type Caller, isAllowedFolder, isOperator, mayActForUser, tenantOf, type WhoActs } from "./caller.ts"
import { type AccessRecord, type Deed, evaluateGrants } from "./grants.ts"
import type { AccessPolicy } from "./policy.ts"
import { type Capability, requiredBy, ungranted } from "./capabilities.ts"
import { counts, isForRisk, mayRelease, ruleMatches, ruleReaches, ruleVerdict } from "./rules.ts"

export interface CallFacts extends Deed {
  /** the tool, as the caller named it */
  readonly asked: string
  /** real path of the workspace; absent: an empty folder of the host's own, in which nothing is changed */
  readonly workspace?: string
  /** the workspace, as the caller named it */
  readonly named: string
  readonly plan: boolean
  /** a yes came with the call */
  readonly approved: boolean
  /** a person was asked about the call itself and said yes; effects are a question of their own */
  readonly beforehand: boolean
  /** milliseconds since the epoch */
  readonly now: number
}

/** What the receipt says of a grant that answered. */
export interface UsedGrant {
  readonly id: string
  readonly by: string
  /** which use it was, of how many */
  readonly use: number
  readonly uses: number
  /** the request that it was given to, and to no other call */
  readonly request?: string
  /** those of others that a rule wanted beside it */
  readonly beside?: readonly Omit<UsedGrant, "beside">[]
}

export interface Approval {
  readonly class: "auto" | "on-mutate" | "always"
  /** the rules that spoke of it, with what each says; absent: none did */
  readonly rules?: readonly { readonly rule: string; readonly says: "ask" | "allow" }[]
  /** the `policy:` the contract names, where it does */
  readonly policy?: string
  /** would the caller's own yes count */
  readonly mayGrant: boolean
  /** a person approved what this call asked for, when making it or when asked */
  readonly granted: boolean
  /** what a person answered while the call was under way */
  readonly answers?: { readonly call?: boolean; readonly effects?: boolean }
  /** the yes that was given beforehand, where one answered what this call asked: it holds for all of the call */
  readonly grant?: UsedGrant
  /** the yes of people who were asked about this very call */
  readonly requested?: UsedGrant
  /** the driver that they were told of: no other serves it */
  readonly driver?: string
  /** what happens when the call turns out to have changed the workspace */
  readonly onEffects: "commit" | "ask"
}

type Permit = { readonly ok: true; readonly access: AccessRecord } | Failure
type Verdict = { readonly ok: true; readonly approval: Approval; readonly access: AccessRecord } | Failure

const refuse = (code: "unauthorised" | "policy_violation", message: string, details: JsonObject = {}): Failure => ({
  ok: false,
  code,
  message,
  details,
})

/** The one answer for a tool that is not there and for one that this caller may not use. */
export const noSuchTool = (ref: string): Failure => ({
  ok: false,
  code: "not_found",
  message: `there is no tool ${shown(ref)}`,
  details: { tool: shown(ref) },
})
/** The one answer for a folder that is not there and for one that this caller may not use. */
export const noSuchFolder = (named: string): Failure => ({
  ok: false,
  code: "not_found",
  message: `there is no folder ${shown(named)} to use as the workspace`,
  details: {},
  hint: "name a folder that exists",
})

/** Who acts, and for whom: refused without a look at what is asked. */
export const mayCall = (caller: Caller): Failure | undefined => {
  if (!caller.roles.includes("caller")) return refuse("unauthorised", "this caller may not make calls")
  if (!mayActForUser(caller)) return refuse("unauthorised", "this caller may not act for another user")
  return undefined
}

const why: Readonly<Record<AccessRecord["reason"], string>> = {
  "no-policy": "there is no policy",
  "matched-grant": "a grant covers it",
  "default-allow": "every policy allows by default",
  "no-grant": "no grant covers it",
  "condition-failed": "a condition of its grant does not hold",
  "explicit-revoke": "its grant was revoked",
  "ttl-expired": "its grant has run out",
  "requirement-failed": "a requirement cannot be met here",
  "limit-exceeded": "a limit cannot be held here",
  "policy-unreadable": "a policy cannot be read",
}

const namedRules = (policy: AccessPolicy, { tool, action }: Deed): readonly (GovernanceRule | string)[] =>
  [tool.approval, action?.approval].flatMap((approval) => {
    if (approval?.class !== "policy") return []
    const slug = approval.ref.split("/").at(-1)
    return [policy.named.find((rule) => rule.slug === approval.ref || rule.slug === slug) ?? approval.ref]
  })
const matchingRules = (policy: AccessPolicy, deed: Deed): readonly GovernanceRule[] =>
  policy.rules.filter((rule) => ruleMatches(rule, deed))

const deniedBy = ({ policy, principal, action, needs, reason, unheld }: AccessRecord): string =>
  `the policy ${policy ?? ""} does not let ${principal} use ${action}${needs === undefined ? "" : ` (${shown(needs, 64)})`}: ${why[reason]}${unheld === undefined ? "" : ` (${unheld})`}`

const grantRefusal = (record: AccessRecord, file: string | undefined): Failure => ({
  ...refuse("unauthorised", deniedBy(record), { reason: record.reason, policy: record.policy ?? "" }),
  hint:
    record.unheld === undefined
      ? `grant \`${record.action}\` to ${record.principal} in ${file ?? "a policy"}`
      : `take \`${record.unheld}\` out of ${file ?? "the policy"}, or narrow its \`applies_to\``,
})

const unreadable = (file: string): Failure => ({
  ...refuse(
    "policy_violation",
    `the policy ${file} could not be read, and what it forbids is not known; nothing was run`,
    {
      reason: "policy-unreadable",
    },
  ),
  hint: `mend it (\`caisson validate ${file}\` says what is wrong), or take it away`,
})

const ruleRefusal = (policy: AccessPolicy, deed: Deed): Failure | undefined => {
  for (const found of [...namedRules(policy, deed), ...matchingRules(policy, deed)]) {
    if (typeof found === "string")
      return refuse("policy_violation", `the tool's approval names the policy ${found}, which is not registered`, {
        policy: found,
      })
    if (ruleVerdict(found, deed) === "deny")
      return refuse("policy_violation", `the policy ${found.slug} denies this tool`, { policy: found.slug })
  }
  return undefined
}

/** Is the data that the tool says it works on this caller's to work on? A class that the operator does not name is nobody's. */
const dataRefusal = ({ dataClasses }: AccessPolicy, who: WhoActs, { tool }: Deed): Failure | undefined => {
  const named = tool.operation?.dataClassification
  if (dataClasses === undefined || named === undefined) return undefined
  const isAllowed = dataClasses.some(
    ({ class: of, tenants, users, roles }) =>
      of === named &&
      (tenants === undefined || tenants.includes(tenantOf(who))) &&
      (users === undefined || users.includes(who.user)) &&
      (roles === undefined || who.roles.some((role) => roles.includes(role))),
  )
  if (isAllowed) return undefined
  return {
    ...refuse("policy_violation", `this caller may not work on data of the class ${shown(named, 64)}`, {
      reason: "data_classification",
    }),
    hint: "name the caller in `data_classes` of caisson.yaml",
  }
}

export type Permission =
  | { readonly ok: true; readonly access: AccessRecord }
  | { readonly ok: false; readonly failure: Failure; readonly access: AccessRecord }

/** May this caller use this tool at all, whatever it is asked to do and whoever approves it? */
export const mayUse = (policy: AccessPolicy, caller: WhoActs, deed: Deed, now: number): Permission => {
  const granted = evaluateGrants(policy.grants, caller, deed, now)
  const access =
    granted.decision === "deny" ? granted : (ungranted(policy.grants, caller, requiredBy(deed.tool), now) ?? granted)
  const [lost] = policy.lost ?? []
  if (lost !== undefined) {
    const denied = { ...access, decision: "deny", reason: "policy-unreadable", policy: lost } as const
    return { ok: false, access: denied, failure: unreadable(lost) }
  }
  const failure =
    access.decision === "deny"
      ? grantRefusal(access, policy.grants.find(({ id }) => id === access.policy)?.source.file)
      : (ruleRefusal(policy, deed) ?? dataRefusal(policy, caller, deed))
  if (failure === undefined) return { ok: true, access }
  return { ok: false, access, failure }
}

export interface Barred {
  /** whose word it is */
  readonly policy: string
  readonly reason: string
  readonly fix: string
}
/**
 * Why a driver may not serve the call: what it requires is denied, or a rule wants a person's yes to what the contract did
 * not say, so that nobody was asked about it.
 */
export const driverRefusal = (
  policy: AccessPolicy,
  caller: WhoActs,
  deed: Deed,
  needed: readonly Capability[],
  now: number,
): Barred | undefined => {
  const access = ungranted(policy.grants, caller, needed, now)
  if (access !== undefined)
    return {
      policy: access.policy ?? "",
      reason: deniedBy(access),
      fix: `grant \`${access.action}\` in a policy, or narrow the driver`,
    }
  for (const rule of policy.rules)
    for (const capability of needed.filter((one) => ruleReaches(rule, one))) {
      const says = ruleVerdict(rule, deed, needed)
      const what = `${capability.action} (${shown(capability.of, 64)})`
      if (says === "deny")
        return {
          policy: rule.slug,
          reason: `the policy ${rule.slug} denies ${what}`,
          fix: "use another driver, or change the rule",
        }
      if (says === "ask" && !(ruleMatches(rule, deed) && isForRisk(rule, deed)))
        return {
          policy: rule.slug,
          reason: `the policy ${rule.slug} wants a person's approval of ${what}, which the contract does not name`,
          fix: "name it in `requires` of the contract, so that a person is asked",
        }
    }
  return undefined
}

/** What a refused caller hears: who may not use a tool is not told that it is there; why is kept for the receipt. */
export const refusalTo = (
  caller: Caller,
  { failure, access }: Extract<Permission, { ok: false }>,
  absent: Failure,
): Failure => ({
  ...(isOperator(caller) ? failure : absent),
  evidence: { access: { ...access, chain: [...access.chain] }, refused: failure.message },
})

const ranks = ["auto", "on-mutate", "always"] as const
type Rank = 0 | 1 | 2
const classRank = (approval: ToolContract["approval"]): Rank =>
  approval.class === "policy" ? 1 : (ranks.indexOf(approval.class) as Rank)

/** Mutations that stay when a layer is thrown away. */
export const mutatesOutside = (tool: ToolContract): readonly string[] =>
  tool.mutates.filter((scope) => scope.class !== "workspace").map((scope) => scope.text)

const rulesOf = (policy: AccessPolicy, deed: Deed): readonly GovernanceRule[] => [
  ...namedRules(policy, deed).filter((rule) => typeof rule !== "string"),
  ...matchingRules(policy, deed),
]

const ask = (message: string, details: JsonObject, mayGrant: boolean): Failure => ({
  ok: false,
  code: "approval_required",
  message,
  details: mayGrant ? details : { ...details, approver: "another person" },
  ...(mayGrant ? {} : { hint: "ask somebody whose approval counts for it; the caller's own does not" }),
})

/** Does a rule ask, whatever the contract says? Then whose yes counts is the rule's to say. */
export const isRuled = (policy: AccessPolicy, deed: Deed): boolean =>
  rulesOf(policy, deed).some((rule) => ruleVerdict(rule, deed) !== "allow")

/** Would a yes of this person release what the call asks approval for? */
export const mayApprove = (policy: AccessPolicy, person: Caller, deed: Deed): boolean =>
  person.mayApprove &&
  rulesOf(policy, deed).every((rule) => ruleVerdict(rule, deed) === "allow" || mayRelease(rule, person))

/** Does this person's yes count for it, beside those of others that a rule may want? `maker`: who asks for it. */
export const mayVote = (policy: AccessPolicy, person: Caller, deed: Deed, maker: string): boolean => {
  const asking = rulesOf(policy, deed).filter((rule) => ruleVerdict(rule, deed) !== "allow")
  return (
    person.mayApprove &&
    (asking.length === 0 || asking.some((rule) => counts(rule, person) && !(rule.quorum > 1 && person.actor === maker)))
  )
}

/** Rules that allow so many calls in a time, and speak of this one. */
export const budgetedRules = (policy: AccessPolicy, deed: Deed): readonly GovernanceRule[] =>
  rulesOf(policy, deed).filter(
    (rule) => rule.decision === "allow" && rule.budget !== undefined && isForRisk(rule, deed),
  )

/**
 * The fewest of these people, in their order, whose yeses release together what the call asks approval for; who asks is
 * none of those whom a rule wants several of. Undefined: all of them do not.
 */
export const releasedBy = <P extends { readonly person: Caller }>(
  policy: AccessPolicy,
  maker: Caller,
  people: readonly P[],
  deed: Deed,
): readonly P[] | undefined => {
  const asking = rulesOf(policy, deed).filter((rule) => ruleVerdict(rule, deed) !== "allow")
  const able = people.filter(({ person }) => person.mayApprove)
  if (asking.length === 0) return able.length === 0 ? undefined : able.slice(0, 1)
  const chosen: P[] = []
  const isShort = (rule: GovernanceRule): boolean => {
    const who = new Set(chosen.flatMap(({ person }) => (counts(rule, person) ? [person.actor] : [])))
    if (rule.quorum > 1) who.delete(maker.actor)
    return who.size < rule.quorum
  }
  for (const one of able) {
    const isNew = !chosen.some(({ person }) => person.actor === one.person.actor)
    if (isNew && asking.some((rule) => isShort(rule) && counts(rule, one.person))) chosen.push(one)
  }
  return asking.some(isShort) ? undefined : chosen
}

const approvalFor = (policy: AccessPolicy, caller: Caller, call: CallFacts): Approval | Failure => {
  const { tool, action, plan, approved, beforehand } = call
  const rank = Math.max(
    classRank(tool.approval),
    action === undefined ? 0 : classRank(action.approval),
    ...rulesOf(policy, call).map((rule) => (ruleVerdict(rule, call) === "allow" ? 0 : 2)),
  ) as Rank
  const mayGrant = mayApprove(policy, caller, call)
  const speaking = [...new Map(rulesOf(policy, call).map((rule) => [rule.slug, rule])).values()].filter((rule) =>
    isForRisk(rule, call),
  )
  const asking = speaking.find((rule) => ruleVerdict(rule, call) === "ask")
  const granted = approved && mayGrant
  const approval: Approval = {
    class: ranks[rank],
    mayGrant,
    granted,
    // A person is asked about effects unless the operator relaxed that in so many words; no risk level does (C-59).
    onEffects: granted || rank === 0 || policy.onMutate === "auto" ? "commit" : "ask",
    ...(beforehand ? { answers: { call: true } } : {}),
    ...(speaking.length === 0
      ? {}
      : {
          rules: speaking.map((rule) => ({
            rule: `${rule.slug}@${rule.version}`,
            says: ruleVerdict(rule, call) === "ask" ? ("ask" as const) : ("allow" as const),
          })),
        }),
    ...(tool.approval.class === "policy" ? { policy: tool.approval.ref } : {}),
  }
  if (granted || beforehand) return approval
  const outside = mutatesOutside(tool)
  if (rank === 2 && (!plan || outside.length > 0))
    return ask(
      asking === undefined
        ? "every call of this tool needs a person's approval"
        : `the policy ${asking.slug} wants a person's approval of every call of this tool`,
      {
        approval: approval.class,
        ...(asking === undefined ? {} : { policy: `${asking.slug}@${asking.version}` }),
        mutates: tool.mutates.map((scope) => scope.text),
      },
      mayGrant,
    )
  if (rank === 1 && outside.length > 0)
    return ask(
      `this tool changes things outside the workspace, which cannot be undone: ${outside.join(", ")}`,
      {
        approval: approval.class,
        mutates: outside,
      },
      mayGrant,
    )
  return approval
}

/** All that comes before approval. */
export const permit = (
  policy: AccessPolicy,
  caller: Caller,
  call: Omit<CallFacts, "approved" | "beforehand">,
): Permit => {
  const barred = mayCall(caller)
  if (barred !== undefined) return barred
  const { workspace } = call
  if (workspace !== undefined && !isAllowedFolder(workspace, caller.workspaces, policy.workspaces))
    return noSuchFolder(call.named)
  const permission = mayUse(policy, caller, call, call.now)
  return permission.ok ? permission : refusalTo(caller, permission, noSuchTool(call.asked))
}

export const decide = (policy: AccessPolicy, caller: Caller, call: CallFacts): Verdict => {
  const permitted = permit(policy, caller, call)
  if (!permitted.ok) return permitted
  const approval = approvalFor(policy, caller, call)
  return "ok" in approval ? approval : { ok: true, approval, access: permitted.access }
}
