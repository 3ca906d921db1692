/**
 * Policies and config → what `decide` decides by. Pure.
 *
 * Guarantees: grants and rules that hold for every call come from folders that the operator vouches for alone; a rule
 * from elsewhere holds where a contract names it, which only makes it stricter. A vouched policy that could not be read is
 * never as if it were not there. Of what cannot be evaluated,
 * `unevaluated` tells, with what it means for calls.
 */
import { joinPath } from "../../manifest/values/diagnostics.ts"
import type {
  Diagnostic,
  GovernancePolicy,
  GovernanceRule,
  GrantsPolicy,
  PolicyContract,
} from "../../manifest/types.ts"
import type { DataClass } from "../config/call-settings.ts"
import type { OperatorConfig } from "../config/types.ts"
import { canTell } from "./conditions.ts"
import { isKnownPrincipal, type Unheld, unheldOf } from "./grants.ts"

export interface AccessPolicy {
  /** files of policies that could not be taken; where there are any, nobody may use anything */
  readonly lost?: readonly string[]
  readonly grants: readonly GrantsPolicy[]
  /** hold wherever they match */
  readonly rules: readonly GovernanceRule[]
  /** hold where a contract names them */
  readonly named: readonly GovernanceRule[]
  readonly onMutate: OperatorConfig["approvals"]["onMutate"]
  /** the operator's roots of workspaces; absent: any folder */
  readonly workspaces?: readonly string[]
  /** absent: what class of data a tool works on is not looked at */
  readonly dataClasses?: readonly DataClass[]
}

interface KnownPolicies {
  readonly policies: readonly PolicyContract[]
  /** those of folders that the operator vouches for */
  readonly vouchedPolicies: readonly PolicyContract[]
  readonly lostPolicies: readonly string[]
}

export const accessPolicyOf = (
  { policies, vouchedPolicies, lostPolicies }: KnownPolicies,
  { approvals, workspaces, dataClasses }: Pick<OperatorConfig, "approvals" | "workspaces" | "dataClasses">,
): AccessPolicy => {
  const rules = (of: readonly PolicyContract[]): readonly GovernanceRule[] =>
    of.filter((policy): policy is GovernancePolicy => policy.dialect === "governance").map(({ rule }) => rule)
  return {
    lost: lostPolicies,
    grants: vouchedPolicies.filter((policy): policy is GrantsPolicy => policy.dialect === "grants"),
    rules: rules(vouchedPolicies),
    named: rules(policies),
    onMutate: approvals.onMutate,
    ...(workspaces === undefined ? {} : { workspaces }),
    ...(dataClasses === undefined ? {} : { dataClasses }),
  }
}

const reach = ({ appliesTo }: Unheld): string =>
  appliesTo.length === 0 ? "every call is refused" : `calls of ${appliesTo.join(", ")} are refused`

/** Parts of a vouched grants policy that this host cannot evaluate, and what it does about them. */
export const unevaluated = (policy: GrantsPolicy): readonly Diagnostic[] => {
  const { file } = policy.source
  const warn = (path: string, message: string, fix: string): Diagnostic => ({
    severity: "warning",
    rule: "policy-not-enforced",
    file,
    path,
    message,
    fix,
  })
  return [
    ...unheldOf(policy).map((one) =>
      warn(
        one.kind === "defaults" ? "defaults" : `${one.what}s`,
        `this host cannot hold calls to the ${one.what} \`${one.kind}\`; ${reach(one)}`,
        "take it out, or name the actions that it is for in `applies_to`",
      ),
    ),
    ...policy.grants.grants.flatMap(({ principal, conditions }, index) => {
      const at = joinPath("grants", index)
      if (!isKnownPrincipal(principal))
        return [
          warn(
            `${at}.principal`,
            "this host does not know such principals; the grant is skipped",
            "write `user://NAME`, `operator://*`, `role://owner` or `*`",
          ),
        ]
      const untold = conditions.filter((condition) => !canTell(condition))
      if (untold.length === 0) return []
      const kinds = untold.map(({ kind }) => `\`${kind}\``).join(", ")
      return [
        warn(
          `${at}.conditions`,
          `this host cannot tell whether ${kinds} holds; the grant is skipped`,
          "take the conditions out, or grant it otherwise",
        ),
      ]
    }),
  ]
}
