/**
 * ACTION.md (AIP-39) → ActionContract.
 *
 * Guarantees: verb and target come from the id where not given; `implementations` is never read as authority (it is
 * not even kept). Does not: look at the tools that carry it out; inheritance.ts does.
 */
import { parseApproval } from "../values/approval.ts"
import { sourceOf } from "../values/context.ts"
import type { Context } from "../values/context.ts"
import { joinPath, shown } from "../values/diagnostics.ts"
import { parseEgressEntry } from "../values/egress-entry.ts"
import { defined, object, optionalNumber, optionalText, text, texts } from "../values/fields.ts"
import { deepFreeze } from "../values/freeze.ts"
import { parseMutates } from "../values/mutates.ts"
import { checkShape } from "../schema/shape.ts"
import type { ActionContract, JsonObject, ToolContract } from "../base-types.ts"

export function readRequires(front: JsonObject, context: Context): ToolContract["requires"] {
  const requires = object(front, "requires")
  const network = Array.isArray(requires["network"]) ? texts(requires, "network") : undefined
  network?.forEach((host, i) => {
    const parsed = host === "*" ? undefined : parseEgressEntry(host)
    if (parsed?.ok === false)
      context.report.warn(
        "requires-network",
        joinPath("requires.network", i),
        `\`${shown(host)}\`: ${parsed.message}`,
        parsed.fix === undefined ? "name hosts, or `*`" : `write \`${parsed.fix}\``,
      )
  })
  return defined({ network, secrets: texts(requires, "secrets"), tools: texts(requires, "tools") })
}

/** `base`: where it stands, when not by itself. */
export function readAction(written: JsonObject, context: Context, base = ""): ActionContract | undefined {
  const { report } = context
  if (!checkShape("action", written, report, base)) return undefined
  const id = text(written, "id")
  const [target = "", verb = target] = id.split(":")
  const targetKind = id.includes(":") ? target : ""
  const version = optionalText(written, "version") ?? "1.0.0"
  const contract: ActionContract = {
    kind: "action",
    id,
    description: text(written, "description"),
    version,
    category: optionalText(written, "category") ?? (targetKind === "" ? verb : targetKind),
    verb: optionalText(written, "verb") ?? verb,
    targetKind: optionalText(written, "target_kind") ?? targetKind,
    mutates: parseMutates(texts(written, "mutates"), report),
    requires: readRequires(written, context),
    approval: parseApproval(optionalText(written, "approval") ?? "auto"),
    riskLevel: (optionalNumber(written, "risk_level") ?? 0) as ActionContract["riskLevel"],
    firesEvents: texts(written, "fires_events"),
    source: sourceOf(context, written),
  }
  return report.failed ? undefined : deepFreeze(contract)
}
