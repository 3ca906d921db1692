/**
 * CLI.md (AIP-29) → DriverContract of kind cli (C-1).
 *
 * Guarantees: the closed CLI schema is applied first (in compat mode after taking out the universal keys of AIP-30
 * that real files carry), then the synthesised driver goes through the same checks as any DRIVER.md. Each leaf of
 * `commands` becomes an `implements` entry whose argv, unless its tool says otherwise, is its path in the tree (C-4).
 */
import type { Context } from "../values/context.ts"
import { checkCredentials } from "../values/credentials.ts"
import { shown } from "../values/diagnostics.ts"
import { readDriver } from "./driver.ts"
import { isObject, objects, without } from "../values/fields.ts"
import { splitInstall } from "../kinds/install.ts"
import { limits } from "../limits.ts"
import { checkShape } from "../schema/shape.ts"
import type { DriverContract, JsonObject, JsonValue } from "../types.ts"

const UNIVERSAL = [
  "kind",
  "driver_kind",
  "implements",
  "network",
  "region",
  "policy_tags",
  "health_check",
  "cost_override",
  "timeout_override_ms",
  "retry_override",
]
const DISCOURAGED = ["shell", "env", "cwd"]

interface Command {
  readonly path: readonly string[]
  readonly ref: string
}

/** The leaves of a `commands` tree, however malformed the rest is. */
export function commandLeaves(
  tree: JsonValue | undefined,
  path: readonly string[] = [],
  found: Command[] = [],
): readonly Command[] {
  if (path.length > limits.commandDepth || found.length >= limits.commandCount) return found
  if (typeof tree === "string") found.push({ path, ref: tree })
  else if (isObject(tree)) for (const [key, sub] of Object.entries(tree)) commandLeaves(sub, [...path, key], found)
  return found
}

interface Mended {
  /** judged by the CLI schema */
  readonly bundle: JsonObject
  /** the universal keys that were taken out */
  readonly universal: JsonObject
}

function mend(front: JsonObject, context: Context): Mended {
  if (context.mode === "strict") return { bundle: front, universal: {} }
  const { report } = context
  const pick = (keys: readonly string[]): readonly string[] => keys.filter((key) => Object.hasOwn(front, key))
  for (const key of pick(UNIVERSAL))
    report.lenient(
      "cli-universal-keys",
      key,
      `\`${key}\` belongs to DRIVER.md; it is read here all the same`,
      "write a DRIVER.md with `kind: cli` instead of CLI.md, or remove the key",
    )
  if (Object.hasOwn(front, "intents"))
    report.lenient("cli-intents", "intents", "`intents` is accepted in the place of `actions`", "write `actions:`")
  for (const key of pick(DISCOURAGED))
    report.lenient(
      "cli-discouraged",
      key,
      `\`${key}\` at the top of a CLI.md is ignored`,
      "remove it; use `sandbox.env` for variables",
    )
  const kind = front["kind"]
  if (kind !== undefined && kind !== "cli")
    report.error(
      "cli-kind",
      "kind",
      `a CLI.md is a driver of kind cli, not \`${shown(kind, 20)}\``,
      "write `kind: cli`, or rename the file to DRIVER.md",
    )
  let bundle = without(front, [...UNIVERSAL, ...DISCOURAGED, "intents", "runtime"])
  const sandbox = bundle["sandbox"]
  if (isObject(sandbox) && (sandbox["network"] === undefined || sandbox["env"] === undefined)) {
    report.lenient(
      "cli-sandbox-parts",
      "sandbox",
      "`sandbox.network` or `sandbox.env` is missing; absent means none",
      "add `network: { egress: [] }` and `env: {}`",
    )
    bundle = { ...bundle, sandbox: { network: {}, env: {}, ...sandbox } }
  }
  if (bundle["commands"] === undefined && objects(front, "implements").length > 0) {
    report.lenient(
      "cli-no-commands",
      "commands",
      "there are no `commands`; the tools come from `implements`",
      "write a DRIVER.md with `kind: cli` instead",
    )
    bundle = { ...bundle, commands: { none: "none" } }
  }
  return {
    bundle,
    universal: without(
      front,
      Object.keys(front).filter((key) => !UNIVERSAL.includes(key) && key !== "runtime"),
    ),
  }
}

export function readCli(written: JsonObject, context: Context): DriverContract | undefined {
  const { report } = context
  checkCredentials(written, report)
  const { bundle, universal } = mend(written, context)
  const silent = {
    ...context,
    report: { ...report, error: () => undefined, warn: () => undefined, lenient: () => undefined },
  }
  const install = splitInstall(bundle["install"], silent)
  if (!checkShape("cli", install === undefined ? bundle : { ...bundle, install: install.checked }, report))
    return undefined
  if (install !== undefined && install.methods.length === 0) {
    report.error("missing-field", "install", "`install` is empty", "add at least one install method")
    return undefined
  }
  const explicit = objects(universal, "implements")
  const leaves = commandLeaves(written["commands"])
  const commands = new Map(leaves.map((leaf, i) => [explicit.length + i, leaf.path] as const))
  const sandbox = isObject(written["sandbox"]) ? written["sandbox"] : {}
  const front: JsonObject = {
    ...without(bundle, ["commands", "actions"]),
    ...without(universal, ["kind", "driver_kind"]),
    sandbox,
    kind: "cli",
    implements: [...explicit, ...leaves.map((leaf) => ({ tool: leaf.ref, version: "*" }))],
  }
  return readDriver(front, context, { written, commands })
}
