/**
 * ACTION.md (AIP-39) → ActionContract, and the check that a tool carrying out an action only narrows it.
 *
 * Guarantees: verb and target come from the id where not given; `implementations` is never read as authority (it is
 * not even kept). A tool may add effects and needs, never drop or relax them.
 */
import { parseApproval, relaxesApproval } from "../values/approval.ts"
import { sourceOf } from "../values/context.ts"
import type { Context } from "../values/context.ts"
import type { Report } from "../values/diagnostics.ts"
import { object, optionalNumber, optionalText, text, texts } from "../values/fields.ts"
import { deepFreeze } from "../values/freeze.ts"
import { covers, parseGlob } from "../values/globs.ts"
import { parseMutates } from "../values/mutates.ts"
import { checkShape } from "../schema/shape.ts"
import { ACTION_FILE, readRequires } from "./tool.ts"
import type { ActionContract, JsonObject, MutateScope, ToolContract } from "../base-types.ts"
import { majorOf } from "../schema/version.ts"

export function readAction(written: JsonObject, context: Context): ActionContract | undefined {
  const { report } = context
  if (!checkShape("action", written, report)) return undefined
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

const scopeCovers = (wide: string, narrow: string): boolean => {
  const [one, other] = [parseGlob(wide), parseGlob(narrow)]
  return one.ok && other.ok && covers(one.glob, other.glob)
}

/** Does the tool declare at least this effect of the action? A wildcard of the action is met by any scope of its class. */
function honours(tool: ToolContract, wanted: MutateScope): boolean {
  return tool.mutates.some(
    (own) =>
      own.class === wanted.class &&
      (wanted.scope === "*" ||
        own.scope === wanted.scope ||
        scopeCovers(wanted.scope, own.scope) ||
        scopeCovers(own.scope, wanted.scope)),
  )
}

export function checkAction(tool: ToolContract, action: ActionContract, report: Report): void {
  const major = /@(\d+)$/.exec(tool.implements ?? "")?.[1] ?? "1"
  // A file is what its author looked at, whatever its major.
  if (!tool.implements?.startsWith(ACTION_FILE) && majorOf(action.version) > Number(major)) {
    report.error(
      "action-major",
      "implements",
      `\`${action.id}\` is at major ${majorOf(action.version)}; this tool was written for ${major}`,
      `check the tool against it, then write \`implements: ${action.id}@${majorOf(action.version)}\``,
    )
  }
  for (const wanted of action.mutates) {
    if (!honours(tool, wanted))
      report.error(
        "action-mutates",
        "mutates",
        `\`${action.id}\` has the effect \`${wanted.text}\`, which this tool does not declare`,
        `add \`${wanted.text}\` or a scope within it`,
      )
  }
  const lists: readonly (readonly [string, readonly string[], readonly string[]])[] = [
    ["requires.network", action.requires.network ?? [], tool.requires.network ?? []],
    ["requires.secrets", action.requires.secrets, tool.requires.secrets],
    ["requires.tools", action.requires.tools, tool.requires.tools],
    [
      "metadata.fires_events",
      Array.isArray(tool.metadata["fires_events"]) ? action.firesEvents : [],
      texts(tool.metadata, "fires_events"),
    ],
  ]
  for (const [path, wanted, given] of lists) {
    for (const name of wanted)
      if (!given.includes(name))
        report.error(
          "action-requires",
          path,
          `\`${action.id}\` requires \`${name}\`, which this tool leaves out`,
          `add \`${name}\``,
        )
  }
  if (tool.riskLevel < action.riskLevel)
    report.error(
      "action-risk",
      "risk_level",
      `\`${action.id}\` has risk ${action.riskLevel}; this tool says ${tool.riskLevel}`,
      `write \`risk_level: ${action.riskLevel}\` or more`,
    )
  if (relaxesApproval(action.approval, tool.approval))
    report.error(
      "action-approval",
      "approval",
      `this tool asks for less approval than \`${action.id}\``,
      `write \`approval: ${action.approval.class === "policy" ? `policy:${action.approval.ref}` : action.approval.class}\` or stricter`,
    )
  const inherited = object(tool.metadata, "action")
  for (const [key, value] of [
    ["category", action.category],
    ["target_kind", action.targetKind],
  ] as const) {
    if (inherited[key] !== undefined && inherited[key] !== value)
      report.error(
        "action-inherited",
        `metadata.action.${key}`,
        `\`${key}\` is inherited from \`${action.id}\` as \`${value}\``,
        "remove it",
      )
  }
}
