/**
 * POLICY.md → PolicyContract. Two dialects share the name, told apart by `schema` (C-44): `policy/v1` (AIP-38, grants)
 * and `agentgovernance/v1` (AIP-7, rules).
 *
 * Guarantees: contradictions that would quietly allow are refused or reported; unknown kinds are reported with the
 * reading that denies. Does not: evaluate policies.
 */
import { basename, dirname } from "node:path"
import { sourceOf } from "../values/context.ts"
import type { Context } from "../values/context.ts"
import { shown } from "../values/diagnostics.ts"
import { optionalText, without } from "../values/fields.ts"
import { deepFreeze } from "../values/freeze.ts"
import { readGovernanceRule } from "../policies/governance.ts"
import { readGrants } from "../policies/grants.ts"
import { checkShape } from "../schema/shape.ts"
import type { JsonObject, PolicyContract } from "../types.ts"

/** `$schema` in the place of `schema` (C-45), and grants without any (C-43). */
function settleSchema(front: JsonObject, context: Context): JsonObject {
  if (front["schema"] !== undefined || context.mode === "strict") return front
  const alias = front["$schema"]
  if (typeof alias === "string" && /(?:^|\/)(?:agentgovernance|policy)\/v1$/.test(alias)) {
    context.report.lenient("policy-schema-alias", "$schema", "`$schema` was taken as `schema`", "write `schema:`")
    return {
      ...without(front, ["$schema"]),
      schema: alias.includes("agentgovernance") ? "agentgovernance/v1" : "policy/v1",
    }
  }
  if (Array.isArray(front["grants"])) {
    context.report.lenient(
      "policy-schema-missing",
      "schema",
      "`schema` is missing; taken as `policy/v1` because there are grants",
      "write `schema: policy/v1`",
    )
    return { ...front, schema: "policy/v1" }
  }
  return front
}

export function readPolicy(written: JsonObject, context: Context): PolicyContract | undefined {
  const { report } = context
  const front = settleSchema(written, context)
  const schema = front["schema"]
  if (schema !== "policy/v1" && schema !== "agentgovernance/v1") {
    report.error(
      "policy-dialect",
      "schema",
      schema === undefined ? "`schema` is missing" : `the policy dialect \`${shown(schema, 40)}\` is not known`,
      "write `schema: policy/v1` (grants) or `schema: agentgovernance/v1` (rules)",
    )
    return undefined
  }
  const dialect = schema === "policy/v1" ? ("grants" as const) : ("governance" as const)
  if (!checkShape(`policy-${dialect}`, front, report)) return undefined
  const said = dialect === "grants" ? optionalText(front, "id") : optionalText(front, "slug")
  const id = said ?? basename(dirname(context.file))
  const part =
    dialect === "grants"
      ? { dialect, grants: readGrants(front, context) }
      : { dialect, rule: readGovernanceRule(front, context) }
  // The source is read last: it records the leniencies that reading applied.
  return report.failed ? undefined : deepFreeze({ kind: "policy", id, ...part, source: sourceOf(context, written) })
}

/** `policy:team/x.review` in a tool's approval leads to the AIP-7 policy with the slug of its last segment (C-44). */
export const policySlug = (ref: string): string => (ref.split(/[/.]/).at(-1) ?? ref).toLowerCase().replaceAll("_", "-")
