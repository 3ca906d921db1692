/**
 * Does this driver's `implements` entry fit this tool's contract? The registry asks before it binds (AIP-30-AD §5).
 *
 * Guarantees: an error for each way in which the driver would widen or break the contract: version outside the range,
 * dropping what is required or unknown, mapping from nothing, a longer timeout. `settleMapping` gives the mapping with
 * the driver's key on the left, whichever way it was written (C-34).
 * Does not: choose a driver, compile templates, or look at policy.
 */
import { createReport, joinPath, shown } from "../values/diagnostics.ts"
import type { Report } from "../values/diagnostics.ts"
import { isObject, object, texts } from "../values/fields.ts"
import { deepFreeze } from "../values/freeze.ts"
import { cliOf } from "../kinds/body.ts"
import type { Diagnostic, DriverContract, Implementation, JsonObject, ToolContract } from "../types.ts"
import { satisfies } from "../schema/version.ts"

const properties = (schema: JsonObject): JsonObject => object(schema, "properties")

/** Can an input of this name be given at all? Open schemas accept any name. */
function mayHave(schema: JsonObject, name: string): boolean {
  if (Object.hasOwn(properties(schema), name)) return true
  const closed = schema["additionalProperties"] === false || schema["unevaluatedProperties"] === false
  const composed = ["allOf", "anyOf", "oneOf", "$ref", "patternProperties", "if"].some(
    (key) => schema[key] !== undefined,
  )
  return !closed || composed
}

function requiredInputs(schema: JsonObject): ReadonlySet<string> {
  const all = new Set(texts(schema, "required"))
  const parts = schema["allOf"]
  if (Array.isArray(parts))
    for (const part of parts) if (isObject(part)) for (const name of texts(part, "required")) all.add(name)
  return all
}

function checkNarrowing(entry: Implementation, tool: ToolContract, at: string, report: Report): void {
  const required = requiredInputs(tool.inputs)
  const isKnown = (schema: JsonObject, name: string): boolean => Object.hasOwn(properties(schema), name)
  entry.dropInputs.forEach((name, i) => {
    const path = joinPath(`${at}.schema_narrowing.drop_inputs`, i)
    if (required.has(name))
      report.error(
        "narrowing-required",
        path,
        `\`${shown(name)}\` is required by \`${tool.id}\`; a driver may drop only optional inputs`,
        "take it off the list, or implement another tool",
      )
    else if (!isKnown(tool.inputs, name))
      report.error(
        "narrowing-unknown",
        path,
        `\`${shown(name)}\` is not an input of \`${tool.id}\``,
        `use one of ${Object.keys(properties(tool.inputs)).join(", ") || "its inputs (it has none)"}`,
      )
  })
  entry.dropOutputs.forEach((name, i) => {
    const path = joinPath(`${at}.schema_narrowing.drop_outputs`, i)
    if (texts(tool.outputs, "required").includes(name))
      report.error(
        "narrowing-required",
        path,
        `\`${shown(name)}\` is a required output of \`${tool.id}\``,
        "take it off the list",
      )
    else if (!isKnown(tool.outputs, name))
      report.error(
        "narrowing-unknown",
        path,
        `\`${shown(name)}\` is not an output of \`${tool.id}\``,
        "take it off the list",
      )
  })
}

/** Driver key → contract input. Where only the key is an input of the contract, the pair was written the other way round. */
export function settleMapping(entry: Implementation, tool: ToolContract): Implementation["mapping"] {
  const inputs = properties(tool.inputs)
  return Object.fromEntries(
    Object.entries(entry.mapping).map(([key, rule]) =>
      !Object.hasOwn(inputs, rule.from.split(".")[0] ?? "") && Object.hasOwn(inputs, key)
        ? [rule.from, { ...rule, from: key }]
        : [key, rule],
    ),
  )
}

function checkMapping(entry: Implementation, tool: ToolContract, at: string, report: Report): void {
  const settled = settleMapping(entry, tool)
  for (const [key, rule] of Object.entries(entry.mapping)) {
    const path = joinPath(`${at}.mapping`, key)
    if (settled[key] === undefined) {
      report.warn(
        "mapping-inverted",
        path,
        `\`${shown(key)}\` is the contract's input and \`${shown(rule.from)}\` the driver's; read the other way round`,
        `write \`${rule.from}: ${key}\``,
      )
      if (entry.dropInputs.includes(key))
        report.error("mapping-dropped", path, `\`${shown(key)}\` is mapped and dropped at once`, "do one of the two")
    } else if (!mayHave(tool.inputs, rule.from.split(".")[0] ?? "")) {
      report.error(
        "mapping-unknown",
        path,
        `neither \`${shown(key)}\` nor \`${shown(rule.from)}\` is an input of \`${tool.id}\``,
        `map from one of ${Object.keys(properties(tool.inputs)).join(", ") || "its inputs (it has none)"}`,
      )
    } else if (entry.dropInputs.includes(rule.from))
      report.error(
        "mapping-dropped",
        path,
        `\`${shown(rule.from)}\` is mapped and dropped at once`,
        "do one of the two",
      )
  }
  if (Object.keys(settled).length < Object.keys(entry.mapping).length)
    report.error("mapping-twice", `${at}.mapping`, "two pairs set the same key of the driver", "keep one of them")
}

/** A host that the driver may reach for one of its other tools, and that this one has no use for (C-14). */
function checkReach(
  driver: DriverContract,
  entry: Implementation,
  tool: ToolContract,
  at: string,
  report: Report,
): void {
  const [first] = entry.cli?.egress ?? driver.egress
  if (tool.requires.network?.length !== 0 || first === undefined) return
  report.warn(
    "egress-beyond-tool",
    at,
    `the driver declares \`${first.text}\`, and \`${tool.id}\` has no network: a dial to \`${first.wildcard ? "x." : ""}${first.host}:${first.ports[0] ?? 443}\` is stopped`,
    "narrow it for this tool with `metadata.cli.sandbox`, or leave it so if other tools of the driver need it",
  )
}

/** Every reason why the driver may not serve this tool by this entry; warnings do not stand in the way. */
export function checkBinding(driver: DriverContract, entry: Implementation, tool: ToolContract): readonly Diagnostic[] {
  const report = createReport(driver.source.file)
  const index = driver.implements.indexOf(entry)
  const at = joinPath("implements", Math.max(index, 0))
  if (entry.tool !== tool.id)
    report.error(
      "binding-tool",
      `${at}.tool`,
      `the entry is for \`${shown(entry.tool)}\`, not for \`${tool.id}\``,
      `write \`tool: ${tool.id}\``,
    )
  if (!satisfies(tool.version, entry.versionRange)) {
    report.error(
      "binding-version",
      `${at}.version`,
      `\`${tool.id}\` is at ${tool.version}, outside \`${shown(entry.versionRange)}\``,
      "check the driver against that version, then widen the range",
    )
  }
  checkNarrowing(entry, tool, at, report)
  checkMapping(entry, tool, at, report)
  checkReach(driver, entry, tool, at, report)
  for (const [path, ms] of [
    [`${at}.timeout_override_ms`, entry.timeoutMs],
    ["timeout_override_ms", driver.timeoutMs],
  ] as const) {
    if (ms !== undefined && ms > tool.timeoutMs)
      report.error(
        "timeout-widened",
        path,
        `${ms} ms is longer than the ${tool.timeoutMs} ms of \`${tool.id}\``,
        `write at most ${tool.timeoutMs}`,
      )
  }
  const attempts = tool.retry?.maxAttempts
  if (attempts !== undefined && entry.retry !== undefined && entry.retry.maxAttempts > attempts) {
    report.warn(
      "retry-capped",
      `${at}.retry_override.max_attempts`,
      `the contract allows ${attempts} attempts; the rest is not made`,
      `write at most ${attempts}`,
    )
  }
  if (driver.body.kind === "cli" && entry.cli === undefined) {
    report.error(
      "binding-no-argv",
      `${at}.metadata.cli.argv`,
      `nothing says how \`${cliOf(driver)?.bin ?? "the program"}\` is called for \`${tool.id}\``,
      'add, for example, `metadata: { cli: { argv: [--, "${input.NAME}"] } }`',
    )
  }
  return report.diagnostics
}

/** `checkBinding` for the entry at this index, with the entry as it is to be read: its mapping settled. */
export function checkEntry(
  driver: DriverContract,
  index: number,
  tool: ToolContract,
): { readonly diagnostics: readonly Diagnostic[]; readonly implementation: Implementation } {
  const entry = driver.implements[index]
  if (entry === undefined) throw new RangeError(`${driver.id} has no implements[${index}]`)
  return {
    diagnostics: checkBinding(driver, entry, tool),
    implementation: deepFreeze({ ...entry, mapping: settleMapping(entry, tool) }),
  }
}

const narrowingOf = (driver: DriverContract): string =>
  JSON.stringify(
    driver.implements
      .map((e) => [e.tool, [...e.dropInputs].sort(), [...e.dropOutputs].sort()] as const)
      .sort((a, b) => (a[0] < b[0] ? -1 : 1)),
  )

/** A driver registered again with another `schema_narrowing` needs a new major version (AIP-30 §Stable identity). */
export function checkRevision(before: DriverContract, after: DriverContract): readonly Diagnostic[] {
  const report = createReport(after.source.file)
  if (before.id === after.id && before.major === after.major && narrowingOf(before) !== narrowingOf(after)) {
    report.error(
      "narrowing-without-major",
      "version",
      "`schema_narrowing` changed within the same major version",
      `write \`version: ${before.major + 1}.0.0\``,
    )
  }
  const spawn =
    cliOf(after)?.sandbox.exec.spawn.filter((name) => cliOf(before)?.sandbox.exec.spawn.includes(name) !== true) ?? []
  if (before.major === after.major && spawn.length > 0)
    report.warn(
      "spawn-added",
      "sandbox.exec.spawn",
      `\`${spawn.join("`, `")}\` may be started since this revision`,
      "raise the major version, and have it reviewed",
    )
  const engine = ({ runner }: DriverContract): string | undefined =>
    runner?.form === "inline" ? runner.engine : JSON.stringify(runner)
  if (engine(before) !== engine(after))
    report.warn("runner-changed", "runner", "the runner changed since the last revision", "have it reviewed")
  return report.diagnostics
}

/** `execute` functions and `implements` must name the same tools (AIP-30 rule 3); both spellings of an id count (C-35). */
export function checkExecuteKeys(
  driver: DriverContract,
  keys: readonly string[],
): readonly { readonly tool: string; readonly missing: "execute" | "implements" }[] {
  const spellings = (entry: Implementation): readonly string[] => [
    entry.tool,
    entry.toolRef,
    entry.tool.replaceAll(".", "-"),
  ]
  const uncovered = driver.implements.filter((entry) => !keys.some((key) => spellings(entry).includes(key)))
  const extra = keys.filter((key) => !driver.implements.some((entry) => spellings(entry).includes(key)))
  return [
    ...uncovered.map((entry) => ({ tool: entry.tool, missing: "execute" as const })),
    ...extra.map((tool) => ({ tool, missing: "implements" as const })),
  ]
}
