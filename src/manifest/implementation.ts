/**
 * `implements[]` entries → Implementation.
 *
 * Guarantees: a reference that leads to a file means the id declared there (C-35, C-61), a path that leads nowhere
 * refuses the driver; the version
 * range is readable; argv templates carry no shell operators and no secrets; a tool's sandbox only narrows.
 */
import { isPathRef } from "./context.ts"
import type { Context } from "./context.ts"
import { joinPath, shown } from "./diagnostics.ts"
import { readEgressList } from "./egress-block.ts"
import { intersectEgress } from "./egress-entry.ts"
import type { EgressEntry } from "./egress-entry.ts"
import { defined, object, optionalNumber, optionalObject, optionalText, text, texts } from "./fields.ts"
import { programTexts } from "./program-text.ts"
import { narrowSandbox } from "./sandbox.ts"
import { readRetry } from "./tool.ts"
import type { CliSandbox, CostClass, Implementation, JsonObject, JsonValue, OutputFormat } from "./types.ts"
import { parseRange } from "./version.ts"

const SHELL_OPERATOR = /^(?:\|\|?|&&?|;|\d?>>?(?:&\d)?|<<?<?|\d>&\d)$/
const SHELL_TEXT = /\$\(/
/** innocent in a filter or a query, an accident in a command line */
const SHELL_LIKE = /\s(?:&&|\|\|?|;|>>?)\s/

export interface DriverSide {
  /** `bin` and `bin_args`: what the tool's arguments stand behind */
  readonly command?: readonly string[]
  readonly sandbox?: CliSandbox
  readonly egress: readonly EgressEntry[]
}

const TEMPLATE = /\$\{[^}]*\}/g

/** Which of the arguments a program of the command reads as code: there, shell syntax is no accident. */
function readAsCode(command: readonly string[], argv: readonly string[]): ReadonlySet<number> {
  const words = [...command, ...argv].map((text, i) => {
    const prefix = text.replace(/\$\{.*$/s, "")
    return { prefix, i: i - command.length, ...(prefix === text ? { texts: [text] } : {}) }
  })
  return new Set(programTexts(words).texts.map((each) => each.word.i))
}

/** Arguments as they stand in a manifest: no shell syntax where no shell runs, no secrets. */
export function checkArgv(
  argv: readonly string[],
  path: string,
  context: Context,
  command: readonly string[] = [],
): void {
  const code = readAsCode(command, argv)
  argv.forEach((template, i) => {
    const at = joinPath(path, i)
    const literal = code.has(i) ? "" : template.replaceAll(TEMPLATE, "")
    if (SHELL_OPERATOR.test(template) || SHELL_TEXT.test(literal)) {
      context.report.error(
        "argv-shell",
        at,
        `\`${shown(template)}\` is shell syntax; no shell runs, each template is one argument`,
        "write one argument per line, and use several tools or `stdin` instead of pipes",
      )
    } else if (SHELL_LIKE.test(literal)) {
      context.report.warn(
        "argv-shell-like",
        at,
        `\`${shown(template)}\` is passed as one argument, as it stands; no shell reads it`,
        "split it into one argument per line if a shell was meant to",
      )
    }
    if (/\$\{\s*secrets\b/.test(template)) {
      context.report.error(
        "secret-in-argv",
        at,
        "a secret in an argument is visible to every process",
        "pass it as an environment variable through `auth.state.env`",
      )
    }
    if (template.includes("\u0000"))
      context.report.error("argv-shell", at, "an argument cannot hold a NUL byte", "remove it")
  })
}

function readCliPart(
  block: JsonObject | undefined,
  path: string,
  side: DriverSide,
  context: Context,
): Implementation["cli"] | undefined {
  if (block === undefined) return undefined
  const argv = texts(block, "argv")
  checkArgv(argv, `${path}.argv`, context, side.command)
  const stdin = optionalText(block, "stdin")
  const narrowing = optionalObject(block, "sandbox")
  const network = narrowing === undefined ? undefined : optionalObject(narrowing, "network")
  let egress: readonly EgressEntry[] | undefined
  if (network !== undefined) {
    const asked = readEgressList(texts(network, "egress"), `${path}.sandbox.network.egress`, context.report)
    egress = intersectEgress(asked, side.egress)
    for (const entry of asked) {
      if (!intersectEgress([entry], side.egress).some((both) => both.text === entry.text)) {
        context.report.error(
          "sandbox-widened",
          `${path}.sandbox.network.egress`,
          `the tool asks for more than its driver allows: \`${entry.text}\``,
          "allow it in the driver's `network.egress`, or take it out here",
        )
      }
    }
  }
  return defined({
    argv,
    stdin,
    outputFormat: optionalText(block, "output_format") as OutputFormat | undefined,
    sandbox:
      narrowing === undefined || side.sandbox === undefined
        ? undefined
        : narrowSandbox(side.sandbox, narrowing, `${path}.sandbox`, context.report),
    egress,
  })
}

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
  const own = optionalObject(metadata, "cli")
  const cli =
    command === undefined && own === undefined
      ? undefined
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
    cli: readCliPart(cli, command === undefined ? `${path}.metadata.cli` : path, side, context),
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
