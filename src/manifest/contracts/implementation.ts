/**
 * `implements[]` entries → Implementation.
 *
 * Guarantees: a reference that leads to a file means the id declared there (C-35, C-61), a path that leads nowhere
 * refuses the driver; the version range is readable. What its kind says of an entry is read in `kinds/`.
 */
import { isPathRef } from "../values/context.ts"
import type { Context } from "../values/context.ts"
import { shown } from "../values/diagnostics.ts"
import { defined, object, optionalNumber, optionalObject, optionalText, text, texts } from "../values/fields.ts"
import { declaredKind, type DriverSide, readCall } from "../kinds/body.ts"
import { readRetry } from "./tool.ts"
import type { CostClass, Implementation, JsonObject, JsonValue } from "../types.ts"
import { parseRange } from "../schema/version.ts"

function readMapping(entry: JsonObject): Implementation["mapping"] {
  return Object.fromEntries(
    Object.entries(object(entry, "mapping")).map(([key, value]: [string, JsonValue]) => [
      key,
      typeof value === "string"
        ? { from: value }
        : defined({
            from: text(value as JsonObject, "from"),
            transform: optionalText(value as JsonObject, "transform"),
          }),
    ]),
  )
}

interface Target {
  readonly tool: string
  readonly major?: number
  /** from the TOOL.md of a CLI subcommand in the older form */
  readonly cli?: JsonObject
  readonly range?: string
}

/** `id`, or `id@major`. */
const byId = (ref: string): Target => {
  const found = /^(.+)@(\d{1,9})$/.exec(ref)
  return found === null ? { tool: ref } : { tool: found[1] ?? ref, major: Number(found[2]) }
}

/** Tried in turn: a file beside this one or in the folder of manifests, then a registered id (C-61). */
function findTool(ref: string, path: string, context: Context): Target | undefined {
  if (ref.startsWith("/")) {
    context.report.error(
      "path-escape",
      path,
      "a tool is named by its id or by a path relative to this file",
      "write a relative path such as `./tools/x/TOOL.md`",
    )
    return undefined
  }
  if (context.links === undefined) return isPathRef(ref) ? { tool: ref } : byId(ref)
  const found = context.links.tool(context.file, ref)
  if (found.found !== "tool" && !isPathRef(ref) && !(found.found === "invalid" && ref.includes("/"))) return byId(ref)
  if (found.found === "tool") {
    const { contract, lifted } = found.tool
    const cli = defined({
      argv: lifted.argv,
      sandbox: lifted.sandbox,
      output_format: lifted.outputFormat,
    }) as JsonObject
    return { tool: contract.id, cli, range: `^${contract.version}` }
  }
  const what =
    found.found === "invalid"
      ? "leads to a manifest that was refused"
      : "leads to no TOOL.md among the folders that were read"
  context.report.error(
    "tool-ref-unresolvable",
    path,
    `\`${shown(ref)}\` ${what}`,
    "correct the path, or mend the TOOL.md it names",
  )
  return undefined
}

export const readCost = (block: JsonObject): Pick<Implementation, "costUnitsPerCall" | "costClass" | "currency"> =>
  defined({
    costUnitsPerCall: optionalNumber(block, "cost_units_per_call"),
    costClass: optionalText(block, "cost_class") as CostClass | undefined,
    currency: optionalText(block, "currency"),
  })

/** `command`: the path in a CLI.md's `commands` tree when the entry was made from it. */
export function readImplementation(
  entry: JsonObject,
  path: string,
  side: DriverSide,
  context: Context,
  command?: readonly string[],
): Implementation | undefined {
  const ref = text(entry, "tool")
  const target = findTool(ref, command === undefined ? `${path}.tool` : path, context)
  if (target === undefined) return undefined
  const range = command === undefined ? text(entry, "version") : (target.range ?? "*")
  const parsed = parseRange(range)
  if (!parsed.ok) context.report.error("version-range", `${path}.version`, parsed.message, parsed.fix)
  else if (parsed.translated) dialect(`${path}.version`, range, parsed.range, context)
  const narrowing = object(entry, "schema_narrowing")
  const metadata = object(entry, "metadata")
  const kind = declaredKind(side)
  const own = optionalObject(metadata, kind)
  const block =
    kind !== "cli" || (command === undefined && own === undefined)
      ? own
      : { ...(command === undefined ? {} : { argv: command }), ...target.cli, ...own }
  return defined({
    toolRef: ref,
    tool: target.tool,
    major: target.major,
    versionRange: parsed.ok ? parsed.range : range,
    dropInputs: texts(narrowing, "drop_inputs"),
    dropOutputs: texts(narrowing, "drop_outputs"),
    mapping: readMapping(entry),
    ...readCost(object(entry, "cost_override")),
    timeoutMs: optionalNumber(entry, "timeout_override_ms"),
    retry: readRetry(optionalObject(entry, "retry_override")),
    ...readCall(block, command === undefined ? `${path}.metadata.${kind}` : path, side, target.tool, context),
    metadata,
  })
}

/** Ranges written for pip are translated in compat mode and refused in strict mode (C-41). */
export function dialect(path: string, written: string, translated: string, context: Context): void {
  const message = `\`${shown(written, 60)}\` is not an npm range`
  if (context.mode === "strict") context.report.error("range-dialect", path, message, `write \`${translated}\``)
  else
    context.report.lenient(
      "range-dialect",
      path,
      `${message}; read as \`${shown(translated, 60)}\``,
      `write \`${translated}\``,
    )
}
