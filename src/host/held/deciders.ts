/**
 * Whom a held call is shown to, and whose answer counts.
 *
 * Guarantees: pure but for the clock that grants run out by. Nobody of another tenant sees one, whatever their names and
 * roles. Who may not see a held call gets the answer for one that is not there. A yes counts from who made the call where
 * that may approve, from an approver otherwise, and where a rule names its signers only from one of them; where it wants
 * several, of so many people together, none of whom made it. Who made it is who was authenticated: nobody approves their
 * own call by another user's name. What a rule denies by now, or a grant no longer covers, is not committed, whoever says yes. A tool that is not
 * registered here any more can only be decided where no rule spoke of it and there are no grants to hold it against.
 */
import { mayApprove, mayUse, mayVote } from "../access/decide.ts"
import type { Deed } from "../access/grants.ts"
import { type Caller, isAllowedFolder, isOperator, mayActForUser, tenantOf } from "../access/caller.ts"
import { accessPolicyOf } from "../access/policy.ts"
import type { HostCore } from "../call/core.ts"
import { boundDeed } from "../call/admission/find-tool.ts"
import type { Failure } from "../failure.ts"
import type { HeldCall } from "../store/store.ts"
import { factsOf, type HeldFacts, toolName, unknownFacts } from "./facts.ts"

export const maySee = (caller: Caller, held: HeldCall): boolean => {
  if (held.tenant !== tenantOf(caller)) return false
  const facts = factsOf(held)
  return (
    isOperator(caller) ||
    (facts !== unknownFacts &&
      mayActForUser(caller) &&
      (facts.user === caller.user || caller.roles.includes("approver")) &&
      isAllowedFolder(facts.folder.path, caller.workspaces))
  )
}

const unauthorised = (message: string, hint: string): Failure => ({
  ok: false,
  code: "unauthorised",
  message,
  hint,
  details: {},
})

/** May this caller answer at all, for a call that somebody made for a user? Undefined: it may. */
export const mayAnswer = (
  caller: Caller,
  { actor, user }: { readonly actor: string; readonly user: string },
): Failure | undefined => {
  const isMaker = actor === caller.actor
  const isOwn = isMaker || user === caller.actor
  return !(isMaker || caller.roles.includes("approver")) || (isOwn && !caller.mayApprove)
    ? unauthorised("this caller may not decide on this call", "ask a person who may approve")
    : undefined
}
export const noSigner = unauthorised(
  "a rule says whose approval this call needs, and this caller is none of them",
  "ask one of its signers",
)

/** What was done, where the rules want more than this person's yes to it; undefined: it is enough. */
export const wantsOthers = (core: HostCore, caller: Caller, facts: HeldFacts): Deed | undefined => {
  const deed = boundDeed(core.registry, toolName(facts), facts.tool)
  if (deed === undefined) return undefined
  const policy = accessPolicyOf(core.registry, core.config)
  return mayApprove(policy, { ...caller, mayApprove: true }, deed) ? undefined : deed
}

/** Why this caller's answer does not count; undefined where it does. */
export const mayDecide = (core: HostCore, caller: Caller, facts: HeldFacts, approves: boolean): Failure | undefined => {
  const barred = mayAnswer(caller, facts)
  if (barred !== undefined || !approves) return barred
  const policy = accessPolicyOf(core.registry, core.config)
  const deed = boundDeed(core.registry, toolName(facts), facts.tool)
  if (deed === undefined)
    return facts.ruled || policy.grants.length > 0 || (policy.lost ?? []).length > 0
      ? unauthorised(
          `a policy says who may use ${toolName(facts)} and whose approval it needs, and that tool is not registered here`,
          "name its manifests with --manifests",
        )
      : undefined
  const permission = mayUse(policy, facts, deed, Date.now())
  if (!permission.ok) return permission.failure
  return mayVote(policy, { ...caller, mayApprove: true }, deed, facts.actor) ? undefined : noSigner
}
