/**
 * Step 2: may this call be made, and who has to say yes?
 *
 * Guarantees: the strictest of contract, action, named policy and host holds (C-6: auto < on-mutate < always; a driver
 * has no say). Effects on the workspace are approved as effects: the call runs, and where asking is due its effects are
 * shown and not committed. What cannot be undone by throwing a layer away is asked about before anything runs, also
 * for a plan.
 * Does not: rate or budget; the embedded host serves one person.
 */
import type { GovernanceRule, JsonObject, PolicyContract, ToolContract } from "../../manifest/types.ts"
import type { OperatorConfig } from "../config/types.ts"
import type { Failure } from "../invoke/failure.ts"
import type { Registry } from "../registry/types.ts"
import type { HostCore } from "./core.ts"
import type { Admitted, Approval, Authorized, Step } from "./steps.ts"

const ranks = ["auto", "on-mutate", "always"] as const
type Rank = 0 | 1 | 2

const classRank = (approval: ToolContract["approval"]): Rank =>
  approval.class === "policy" ? 1 : (ranks.indexOf(approval.class) as Rank)

const policyFailure = (ref: string, message: string): Failure => ({
  ok: false,
  code: "policy_violation",
  message,
  details: { policy: ref },
})

/** An AIP-7 policy by its reference; the last segment is its slug (C-44). */
const findRule = (ref: string, policies: readonly PolicyContract[]): GovernanceRule | undefined => {
  const slug = ref.split("/").at(-1)
  const found = policies.find(({ dialect, id }) => dialect === "governance" && (id === ref || id === slug))
  return found?.dialect === "governance" ? found.rule : undefined
}

/** What a named policy adds: a rank, or an end. Unknown words fail closed. */
const policyRank = (ref: string, registry: Registry, tool: ToolContract): Rank | Failure => {
  const rule = findRule(ref, registry.policies)
  if (rule === undefined)
    return policyFailure(ref, `the tool's approval names the policy ${ref}, which is not registered`)
  const { decision, match } = rule
  if (tool.riskLevel < match.riskLevelMin) return 1
  if (decision === "deny") return policyFailure(ref, `the policy ${ref} denies this tool`)
  return decision === "allow" ? 1 : 2
}

/** Mutations that stay when a layer is thrown away. */
export const mutatesOutside = (tool: ToolContract): readonly string[] =>
  tool.mutates.filter((scope) => scope.class !== "workspace").map((scope) => scope.text)

/** A person is asked about effects unless the operator relaxed that in so many words; no risk level does (C-59). */
const onEffects = (config: OperatorConfig, rank: Rank): Approval["onEffects"] =>
  rank === 0 || config.approvals.onMutate === "auto" ? "commit" : "ask"

/** Why no call of this tool is let through, whoever makes it and approves it. */
export const forbidden = ({ registry }: HostCore, tool: ToolContract): Failure | undefined => {
  const [unenforced] = registry.unenforced
  if (unenforced !== undefined)
    return {
      ...policyFailure(
        unenforced.id,
        `the operator's policy ${unenforced.id} (AIP-38) grants by rules that this host does not enforce; no call is let past it`,
      ),
      hint: `take ${unenforced.source.file} out of the folders that caisson.yaml names, or write its rules as \`policy_tags\` and \`workspaces\` there`,
    }
  const action = tool.implements === undefined ? undefined : registry.action(tool.implements)
  for (const approval of [tool.approval, action?.approval]) {
    if (approval?.class !== "policy") continue
    const added = policyRank(approval.ref, registry, tool)
    if (typeof added !== "number") return added
  }
  return undefined
}

const ask = (message: string, details: JsonObject): Failure => ({
  ok: false,
  code: "approval_required",
  message,
  details,
})

/** `beforehand`: a person was asked about the call itself and said yes; effects are a question of their own. */
export const authorize = (core: HostCore, admitted: Admitted, beforehand = false): Step<Authorized> => {
  const { tool, request, plan } = admitted
  const refused = forbidden(core, tool)
  if (refused !== undefined) return refused
  const granted = request.approve === true
  const mayRun = granted || beforehand
  let rank: Rank = classRank(tool.approval)
  const action = tool.implements === undefined ? undefined : core.registry.action(tool.implements)
  if (action !== undefined) rank = Math.max(rank, classRank(action.approval)) as Rank
  for (const approval of [tool.approval, action?.approval]) {
    if (approval?.class !== "policy") continue
    const added = policyRank(approval.ref, core.registry, tool)
    if (typeof added !== "number") return added
    rank = Math.max(rank, added) as Rank
  }
  const outside = mutatesOutside(tool)
  const approval: Approval = {
    class: ranks[rank],
    granted,
    onEffects: granted ? "commit" : onEffects(core.config, rank),
    ...(beforehand ? { answers: { call: true } } : {}),
    ...(tool.approval.class === "policy" ? { policy: tool.approval.ref } : {}),
  }
  if (!mayRun && rank === 2 && (!plan || outside.length > 0))
    return ask("every call of this tool needs a person's approval", {
      approval: approval.class,
      mutates: tool.mutates.map((scope) => scope.text),
    })
  if (!mayRun && rank === 1 && outside.length > 0)
    return ask(`this tool changes things outside the workspace, which cannot be undone: ${outside.join(", ")}`, {
      approval: approval.class,
      mutates: outside,
    })
  return { ok: true, value: { ...admitted, approval } }
}
