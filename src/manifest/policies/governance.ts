/**
 * A rule of AIP-7 (`agentgovernance/v1`, doctype policy) → GovernanceRule: what a class of actions needs before it runs.
 *
 * Guarantees: every default is filled in; a rule that contradicts itself is refused, one that can never be met or allows
 * without a bound is reported. Does not: evaluate anything.
 */
import type { Context } from "../values/context.ts"
import { joinPath, shown } from "../values/diagnostics.ts"
import { defined, object, objects, optionalNumber, optionalObject, optionalText, text } from "../values/fields.ts"
import type { JsonObject } from "../base-types.ts"

export type GovernanceDecision = "allow" | "deny" | "require-approval" | "escalate"
export type Signer = { readonly by: "role"; readonly role: string } | { readonly by: "user"; readonly user: string }

export interface GovernanceBudget {
  readonly maxPerHour?: number
  readonly maxPerDay?: number
  readonly maxAmountCents?: number
  readonly currency: string
}

export interface GovernanceRule {
  readonly slug: string
  readonly version: string
  readonly match: {
    /** an action; `*` stands for one segment, or for all that follows at the end */
    readonly action: string
    /** absent: every subject */
    readonly subject?: string
    readonly riskLevelMin: 0 | 1 | 2 | 3
  }
  readonly decision: GovernanceDecision
  /** whose approval counts; never empty where approval is required */
  readonly signers: readonly Signer[]
  /** how many of them have to approve */
  readonly quorum: number
  /** up to which level of autonomy the rule stays as permissive as it says */
  readonly autonomy: 0 | 1 | 2 | 3 | 4
  readonly budget?: GovernanceBudget
}

const readSigner = (entry: JsonObject): Signer => {
  const role = optionalText(entry, "role")
  return role === undefined ? { by: "user", user: text(entry, "userId") } : { by: "role", role }
}

const readBudget = (block: JsonObject): GovernanceBudget =>
  defined({
    maxPerHour: optionalNumber(block, "max_per_hour"),
    maxPerDay: optionalNumber(block, "max_per_day"),
    maxAmountCents: optionalNumber(block, "max_amount_cents"),
    currency: optionalText(block, "currency") ?? "USD",
  })

function checkSigners({ signers, quorum, decision }: GovernanceRule, context: Context): void {
  signers.forEach((signer, i) => {
    const same = signers.findIndex((other) => JSON.stringify(other) === JSON.stringify(signer))
    if (same < i)
      context.report.warn(
        "signer-twice",
        joinPath("signers", i),
        `\`${shown(signer.by === "role" ? signer.role : signer.user, 40)}\` is named twice and counts once`,
        "remove one of them",
      )
  })
  // A role may be held by any number of people; named persons are as many as they are.
  const persons = new Set(signers.flatMap((signer) => (signer.by === "user" ? [signer.user] : [])))
  if (decision === "require-approval" && signers.every((signer) => signer.by === "user") && persons.size < quorum)
    context.report.warn(
      "quorum-unreachable",
      "quorum",
      `${quorum} approvals are asked of ${persons.size} signer${persons.size === 1 ? "" : "s"}; it can never be met`,
      `write \`quorum: ${persons.size}\`, or name more signers`,
    )
}

function checkAllow({ decision, autonomy, match, budget }: GovernanceRule, context: Context): void {
  if (decision !== "allow") return
  if (autonomy === 0)
    context.report.error(
      "policy-allow-autonomy-0",
      "autonomy",
      "`decision: allow` with `autonomy: 0` contradicts itself",
      "write `decision: require-approval`, or raise `autonomy`",
    )
  if (match.action.includes("*") && budget === undefined)
    context.report.warn(
      "policy-wildcard-allow",
      "budget",
      "a wildcard is allowed without a budget",
      "add `budget: { max_per_hour }`, or name the actions",
    )
}

export function readGovernanceRule(front: JsonObject, context: Context): GovernanceRule {
  const match = object(front, "match")
  const budget = optionalObject(front, "budget")
  const rule: GovernanceRule = defined({
    slug: text(front, "slug"),
    version: text(front, "version"),
    match: defined({
      action: text(match, "action"),
      subject: optionalText(match, "subject"),
      riskLevelMin: (optionalNumber(match, "risk_level_min") ?? 0) as GovernanceRule["match"]["riskLevelMin"],
    }),
    decision: text(front, "decision") as GovernanceDecision,
    signers: objects(front, "signers").map(readSigner),
    quorum: optionalNumber(front, "quorum") ?? 1,
    autonomy: (optionalNumber(front, "autonomy") ?? 2) as GovernanceRule["autonomy"],
    budget: budget === undefined ? undefined : readBudget(budget),
  })
  checkAllow(rule, context)
  checkSigners(rule, context)
  return rule
}
