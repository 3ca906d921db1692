/**
 * A tool and the action that it carries out (AIP-39 §Inheritance): what it leaves unsaid it has from the action, and
 * what it says only narrows it.
 *
 * Guarantees: a tool may add effects and needs, never drop or relax them; each fault names an effect or a call that the
 * action accounts for and the tool would let pass. `category` and `target_kind` are the action's own. A tool that
 * inherits effects asks before them (C-8). Pure.
 */
import { relaxesApproval } from "../values/approval.ts"
import { joinPath, type Report } from "../values/diagnostics.ts"
import { object, texts } from "../values/fields.ts"
import { deepFreeze } from "../values/freeze.ts"
import { covers, parseGlob } from "../values/globs.ts"
import type { ActionContract, Approval, MutateScope, ToolContract } from "../base-types.ts"
import { majorOf } from "../schema/version.ts"
import { ACTION_FILE, ACTION_INLINE } from "./action-ref.ts"
import { missingScopes, withOutputScopes } from "./file-contract.ts"

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

const approvalText = (approval: Approval): string =>
  approval.class === "policy" ? `policy:${approval.ref}` : approval.class

/** Something that the scope means. */
const exampleOf = ({ class: cls, scope }: MutateScope): string =>
  `${cls}:${scope.replace(/\/$/, "/x").replaceAll("**", "x/y").replaceAll("*", "x")}`

/** No question before effects: not what a tool may say (C-8). */
const isQuiet = (approval: Approval, mutates: readonly MutateScope[]): boolean =>
  approval.class === "auto" && mutates.length > 0

/** `approval: auto` beside effects that the action has, which the tool's own file did not show. */
function checkQuiet(tool: ToolContract, action: ActionContract, report: Report): void {
  const { unsaid: left = [], source } = tool
  const mutates = withOutputScopes(action.mutates, tool)
  if (left.includes("approval") || !left.includes("mutates") || !isQuiet(tool.approval, mutates)) return
  const say = source.mode === "strict" ? report.error : report.warn
  say(
    "approval-auto-with-mutates",
    "approval",
    `\`approval: auto\` is for tools that change nothing, and this one has \`${mutates[0]?.text ?? ""}\`, with what \`${action.id}\` has; taken as \`on-mutate\``,
    "write `approval: on-mutate` (or `always`), or leave it out",
  )
}

/** Files that the tool gives out, and no effect that the action has is. */
function checkOutputs(
  { unsaid: left = [], source, id, outputsFiles = {} }: ToolContract,
  action: ActionContract,
  report: Report,
): void {
  if (!left.includes("mutates")) return
  const say = source.mode === "strict" ? report.error : report.warn
  for (const { key, scope } of missingScopes(
    outputsFiles,
    id,
    action.mutates.map((each) => each.text),
  ))
    say(
      "output-undeclared",
      `${joinPath("outputsFiles", key)}.path`,
      `the file is an effect that \`${action.id}\` does not have`,
      `write \`mutates\` in the tool, with \`${scope}\` in it`,
    )
}

/** The tool as it is with what it has from its action. */
function inherit(tool: ToolContract, action: ActionContract): ToolContract {
  const { unsaid: left = [], ...own } = tool
  const mutates = left.includes("mutates") ? withOutputScopes(action.mutates, tool) : tool.mutates
  const network = left.includes("network") ? action.requires.network : tool.requires.network
  const floor: Approval =
    mutates.length > 0 && action.approval.class === "auto" ? { class: "on-mutate" } : action.approval
  const { id, version, category, verb, targetKind, firesEvents } = action
  return deepFreeze({
    ...own,
    mutates,
    requires: {
      ...(network === undefined ? {} : { network }),
      secrets: left.includes("secrets") ? action.requires.secrets : tool.requires.secrets,
      tools: left.includes("tools") ? action.requires.tools : tool.requires.tools,
    },
    approval: left.includes("approval") || isQuiet(tool.approval, mutates) ? floor : tool.approval,
    riskLevel: left.includes("risk_level") ? action.riskLevel : tool.riskLevel,
    action: { id, version, category, verb, targetKind, firesEvents },
  })
}

/** Does the tool hold to its action? Answers with the tool as it is with what it inherits. */
export function settleAction(written: ToolContract, action: ActionContract, report: Report): ToolContract {
  checkQuiet(written, action, report)
  checkOutputs(written, action, report)
  const tool = inherit(written, action)
  checkAction(tool, action, report)
  return tool
}

function checkAction(tool: ToolContract, action: ActionContract, report: Report): void {
  const major = /@(\d+)(?:\.\d+){0,2}$/.exec(tool.implements ?? "")?.[1] ?? "1"
  // A file, and what stands in the tool itself, is what its author looked at, whatever its major.
  const seen = [ACTION_FILE, ACTION_INLINE].some((form) => tool.implements?.startsWith(form) === true)
  if (!seen && majorOf(action.version) > Number(major)) {
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
        `\`${action.id}\` has the effect \`${wanted.text}\`, which this tool does not declare: a call that changes \`${exampleOf(wanted)}\` would go by without it`,
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
      `\`${action.id}\` has risk ${action.riskLevel}; this tool says ${tool.riskLevel}: a policy that stops risk ${action.riskLevel} would let it pass`,
      `write \`risk_level: ${action.riskLevel}\` or more`,
    )
  if (relaxesApproval(action.approval, tool.approval))
    report.error(
      "action-approval",
      "approval",
      `this tool asks for less approval than \`${action.id}\`: a call that \`${approvalText(action.approval)}\` holds back, \`${approvalText(tool.approval)}\` lets pass`,
      `write \`approval: ${approvalText(action.approval)}\` or stricter`,
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
