/**
 * TOOL.md before its schema looks at it: fields that moved elsewhere are lifted or refused with the way to migrate, and
 * approval is brought to agree with mutates (C-8). Each function takes front matter and gives front matter.
 */
import type { Context, Lifted } from "../values/context.ts"
import { isObject, texts, without } from "../values/fields.ts"
import type { JsonObject, OutputFormat } from "../base-types.ts"

const REMOVED = ["code", "run", "runner", "secrets", "network", "entry"]
const DISCOURAGED = ["async", "streaming", "priority", "model", "temperature"]

/** The older form of a CLI subcommand: `runner.{cli,argv}`, `sandbox`, `output.format` in its TOOL.md. */
export function lift(front: JsonObject, context: Context): { readonly front: JsonObject; readonly lifted: Lifted } {
  const { report } = context
  if (context.mode === "strict" || context.links?.isSubcommand(context.file) !== true) return { front, lifted: {} }
  let rest = front
  const lifted: { argv?: readonly string[]; sandbox?: JsonObject; outputFormat?: OutputFormat } = {}
  const runner = front["runner"]
  if (isObject(runner) && Object.keys(runner).every((key) => key === "cli" || key === "argv")) {
    rest = without(rest, ["runner"])
    if (Array.isArray(runner["argv"])) lifted.argv = texts(runner, "argv")
    report.lenient(
      "argv-lifted",
      "runner",
      "`runner.argv` in a TOOL.md is the older form; it was moved to the driver",
      "write it as `implements[].metadata.cli.argv` in the driver (AIP-30)",
    )
  }
  if (isObject(front["sandbox"])) {
    rest = without(rest, ["sandbox"])
    lifted.sandbox = front["sandbox"]
    report.lenient(
      "sandbox-lifted",
      "sandbox",
      "`sandbox` in a TOOL.md is the older form; it was moved to the driver",
      "write it as `implements[].metadata.cli.sandbox` in the driver",
    )
  }
  const format = isObject(front["output"]) ? front["output"]["format"] : undefined
  if (format === "text" || format === "json" || format === "yaml" || format === "binary") {
    rest = without(rest, ["output"])
    lifted.outputFormat = format
    report.lenient(
      "output-format-lifted",
      "output.format",
      "`output.format` in a TOOL.md was moved to the driver",
      "write it as `implements[].metadata.cli.output_format` in the driver",
    )
  }
  return { front: rest, lifted }
}

export function refuseRemoved(front: JsonObject, context: Context): JsonObject {
  const { report } = context
  const gone = REMOVED.filter((key) => Object.hasOwn(front, key))
  for (const key of gone) {
    report.error(
      "tool-removed-field",
      key,
      `\`${key}\` does not belong into a TOOL.md: a tool is a contract without an implementation (AIP-14)`,
      `move \`${key}\` into a DRIVER.md that implements this tool (AIP-30)`,
    )
  }
  if (Object.hasOwn(front, "execute")) {
    gone.push("execute")
    report.error(
      "tool-execute",
      "execute",
      "`execute` does not belong into a tool definition (AIP-14)",
      "move it into a driver that implements this tool (AIP-30)",
    )
  }
  if (Object.hasOwn(front, "contextSchema")) {
    gone.push("contextSchema")
    report.error(
      "unknown-key",
      "contextSchema",
      "`contextSchema` is not a key of its own in front matter",
      "write it as `metadata.contextSchema`",
    )
  }
  for (const key of DISCOURAGED.filter((name) => Object.hasOwn(front, name))) {
    gone.push(key)
    const say = context.mode === "strict" ? report.error : report.lenient
    say(
      "tool-discouraged-field",
      key,
      `\`${key}\` is not part of a tool's contract and is ignored`,
      "remove it, or keep it under `metadata`",
    )
  }
  return without(front, gone)
}

export function settleApproval(front: JsonObject, context: Context): JsonObject {
  const { report, mode } = context
  const mutates = front["mutates"]
  if (!Array.isArray(mutates) || mutates.length === 0) return front
  const fix = "write `approval: on-mutate` (or `always`)"
  if (front["approval"] === undefined) {
    if (mode === "strict")
      report.error(
        "approval-missing-with-mutates",
        "approval",
        "a tool that mutates must say which approval it needs",
        fix,
      )
    else
      report.lenient(
        "approval-missing-with-mutates",
        "approval",
        "a tool that mutates must say which approval it needs; taken as `on-mutate`",
        fix,
      )
    return { ...front, approval: "on-mutate" }
  }
  if (front["approval"] !== "auto") return front
  if (mode === "strict")
    report.error(
      "approval-auto-with-mutates",
      "approval",
      "`approval: auto` is for tools that change nothing, and this one mutates",
      fix,
    )
  else
    report.lenient(
      "approval-auto-with-mutates",
      "approval",
      "`approval: auto` is for tools that change nothing, and this one mutates; taken as `on-mutate`",
      fix,
    )
  return { ...front, approval: "on-mutate" }
}
