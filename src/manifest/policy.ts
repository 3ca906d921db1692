/**
 * POLICY.md → PolicyContract. Two dialects share the name, told apart by `schema` (C-44): `policy/v1` (AIP-38, grants)
 * and `agentgovernance/v1` (AIP-7, rules).
 *
 * Guarantees: contradictions that would quietly allow are refused or reported; unknown kinds are reported with the
 * reading that denies. Does not: evaluate policies.
 */
import { basename, dirname } from "node:path"
import { sourceOf } from "./context.ts"
import type { Context } from "./context.ts"
import { joinPath, shown } from "./diagnostics.ts"
import { object, objects, optionalText, text, without } from "./fields.ts"
import { deepFreeze } from "./freeze.ts"
import { checkShape } from "./shape.ts"
import type { JsonObject, PolicyContract } from "./types.ts"

const CONDITIONS = ["during-business-hours", "ip-range", "mfa-recent", "approval-from", "signed-by"]
const LIMITS = ["max-concurrent-sandboxes", "rate-tool-calls", "max-egress-bytes-per-day"]

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

function checkGrants(front: JsonObject, context: Context): void {
  const { report } = context
  const id = optionalText(front, "id")
  if (id !== undefined && id.split("/").length > 2) {
    const say = context.mode === "strict" ? report.error : report.lenient
    say("policy-id-segments", "id", `\`${shown(id)}\` has more than two segments`, "write `@owner/name`")
  }
  if (front["default"] === "allow")
    report.warn(
      "policy-default-allow",
      "default",
      "`default: allow` grants whatever no rule speaks about",
      "write `default: deny` and grant what is needed",
    )
  objects(front, "grants").forEach((grant, i) => {
    const at = joinPath("grants", i)
    if (grant["ttl_seconds"] !== undefined && grant["granted_at"] === undefined)
      report.warn(
        "grant-without-start",
        `${at}.granted_at`,
        "`ttl_seconds` without `granted_at` counts as expired",
        "add `granted_at:`",
      )
    objects(grant, "conditions").forEach((condition, j) => {
      const kind = text(condition, "kind")
      if (!CONDITIONS.includes(kind))
        report.warn(
          "condition-unknown",
          joinPath(`${at}.conditions`, j),
          `the condition \`${shown(kind, 40)}\` is not known; the grant is skipped`,
          `use one of ${CONDITIONS.join(", ")}`,
        )
    })
  })
  objects(front, "requirements").forEach((requirement, i) =>
    report.warn(
      "requirement-unknown",
      joinPath("requirements", i),
      `the requirement \`${shown(text(requirement, "kind"), 40)}\` cannot be met by this host; it denies`,
      "remove it, or use an approval",
    ),
  )
  objects(front, "limits").forEach((limit, i) => {
    if (!LIMITS.includes(text(limit, "kind")))
      report.warn(
        "limit-unknown",
        joinPath("limits", i),
        `the limit \`${shown(text(limit, "kind"), 40)}\` is not known and not enforced`,
        `use one of ${LIMITS.join(", ")}`,
      )
  })
}

function checkGovernance(front: JsonObject, context: Context): void {
  if (front["decision"] !== "allow") return
  if (front["autonomy"] === 0)
    context.report.error(
      "policy-allow-autonomy-0",
      "autonomy",
      "`decision: allow` with `autonomy: 0` contradicts itself",
      "write `decision: require-approval`, or raise `autonomy`",
    )
  if (text(object(front, "match"), "action").includes("*") && front["budget"] === undefined) {
    context.report.warn(
      "policy-wildcard-allow",
      "budget",
      "a wildcard is allowed without a budget",
      "add `budget: { max_per_hour }`, or name the actions",
    )
  }
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
  const dialect = schema === "policy/v1" ? "grants" : "governance"
  if (!checkShape(`policy-${dialect}`, front, report)) return undefined
  if (dialect === "grants") checkGrants(front, context)
  else checkGovernance(front, context)
  if (report.failed) return undefined
  const id =
    (dialect === "grants" ? optionalText(front, "id") : optionalText(front, "slug")) ?? basename(dirname(context.file))
  return deepFreeze({ kind: "policy" as const, id, dialect, body: front, source: sourceOf(context, written) })
}

/** `policy:team/x.review` in a tool's approval leads to the AIP-7 policy with the slug of its last segment (C-44). */
export const policySlug = (ref: string): string => (ref.split(/[/.]/).at(-1) ?? ref).toLowerCase().replaceAll("_", "-")
