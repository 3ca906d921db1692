/**
 * AIP-7: what a class of actions needs before it runs. Rules of the operator's own folders, and those that a contract
 * names itself. A rule speaks of a call by its tool, its action, or what it requires beside them.
 *
 * Guarantees: pure. The strictest rule holds: deny, then approval, then allow (C-45). A budget that this call was not
 * debited to reads as used up: a person is asked. Where a rule names its signers, nobody else's yes counts, and where it
 * wants more than one of them, no single yes does.
 */
import type { GovernanceRule, Signer } from "../../manifest/types.ts"
import { type Capability, mayMeet, requiredBy, riskOf, subjectsOf } from "./capabilities.ts"
import { type Caller, isOperator, subjectOf } from "./caller.ts"
import type { Deed } from "./grants.ts"

/** `*` stands for anything: a rule that reaches too far is only stricter. */
const fits = (pattern: string, text: string): boolean => {
  const [first = "", ...rest] = pattern.split("*")
  if (rest.length === 0) return pattern === text
  if (!text.startsWith(first)) return false
  const last = rest.at(-1) ?? ""
  let at = first.length
  for (const part of rest.slice(0, -1)) {
    const found = text.indexOf(part, at)
    if (found === -1) return false
    at = found + part.length
  }
  return text.length - last.length >= at && text.endsWith(last)
}

/** Does a rule speak of such a capability, by its action as policies write it? */
export const ruleReaches = ({ match: { action, subject } }: GovernanceRule, capability: Capability): boolean =>
  [capability.action, capability.action.replaceAll(":", ".")].some((name) => fits(action, name)) &&
  (subject === undefined || subjectsOf(capability).some((name) => fits(subject, name)) || mayMeet(subject, capability))

/** Does a rule that nobody named speak of this call? */
export const ruleMatches = (rule: GovernanceRule, { tool, action }: Deed): boolean => {
  if (requiredBy(tool).some((capability) => ruleReaches(rule, capability))) return true
  const actions = [tool.id, ...(action === undefined ? [] : [action.id, action.id.replaceAll(":", ".")])]
  if (!actions.some((name) => fits(rule.match.action, name))) return false
  const { subject } = rule.match
  if (subject === undefined) return true
  const subjects = [tool.id, `${tool.id}@${tool.major}`, ...tool.mutates.flatMap(({ text, scope }) => [text, scope])]
  return subjects.some((name) => fits(subject, name))
}

/** Is it about risks as large as this call's, or as those of what it requires? */
export const isForRisk = (
  rule: GovernanceRule,
  { tool }: Deed,
  needed: readonly Capability[] = requiredBy(tool),
): boolean =>
  Math.max(tool.riskLevel, ...needed.filter((one) => ruleReaches(rule, one)).map(riskOf)) >= rule.match.riskLevelMin

type RuleVerdict = "deny" | "ask" | "allow"
/** A rule for larger risks than the call's says nothing. Words that are not known ask. */
export const ruleVerdict = (rule: GovernanceRule, deed: Deed, needed?: readonly Capability[]): RuleVerdict => {
  if (!isForRisk(rule, deed, needed)) return "allow"
  const { within } = deed
  if (rule.decision === "deny") return "deny"
  const hasRoom = rule.budget === undefined || within?.has(rule.slug) === true
  return rule.decision === "allow" && hasRoom && rule.autonomy > 1 ? "allow" : "ask"
}

/** Who signs is who was authenticated, whomever they act for. */
const isSigner = (signer: Signer, caller: Caller): boolean => {
  if (signer.by === "user") return signer.user === subjectOf({ ...caller, user: caller.actor })
  const role = signer.role === "owner" ? "operator" : signer.role
  return role === "operator" ? isOperator(caller) : caller.roles.some((own) => own === role)
}

/** Does this person's yes count for a call that the rule holds, beside those of others that it may want? */
export const counts = ({ signers }: GovernanceRule, caller: Caller): boolean =>
  signers.length === 0 || signers.some((signer) => isSigner(signer, caller))

/** Would this caller's yes release it alone? */
export const mayRelease = (rule: GovernanceRule, caller: Caller): boolean => rule.quorum <= 1 && counts(rule, caller)
