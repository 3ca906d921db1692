/**
 * Kind cli (AIP-29): a program, what it may touch, how its output is read; and how it is called for one tool.
 *
 * Guarantees: an absent part means the tightest reading; argv templates carry no shell operators and no secrets; a
 * tool's sandbox and egress only narrow the driver's (C-5).
 */
import type { Context } from "../values/context.ts"
import { shown } from "../values/diagnostics.ts"
import { readEgressList } from "../values/egress-block.ts"
import { type EgressEntry, intersectEgress } from "../values/egress-entry.ts"
import { defined, object, optionalObject, optionalText, text, texts } from "../values/fields.ts"
import { narrowSandbox, readSandbox } from "./cli-sandbox.ts"
import type { JsonObject, OutputFormat } from "../base-types.ts"
import { checkArgv } from "./argv.ts"

/** AIP-29 `sandbox`. Absent parts mean the tightest reading. */
export interface CliSandbox {
  readonly fs: { readonly read: readonly string[]; readonly write: readonly string[]; readonly deny: readonly string[] }
  readonly exec: { readonly allow: boolean; readonly spawn: readonly string[] }
  readonly env: { readonly pass: readonly string[]; readonly set: Readonly<Record<string, string>> }
  readonly tty: { readonly required: boolean }
}

export interface CliOutput {
  readonly defaultFormat: OutputFormat
  readonly jsonFlag?: string
  readonly jsonFlagArgs: readonly string[]
  readonly exitCodes: Readonly<Record<string, string>>
  readonly stream: "stdout" | "stderr" | "mixed"
  readonly errorStream: "stdout" | "stderr" | "mixed"
}

/** The cli half of a driver: from CLI.md or DRIVER.md kind cli. */
export interface CliSpec {
  readonly bin: string
  readonly binArgs: readonly string[]
  readonly sandbox: CliSandbox
  readonly output: CliOutput
}

/** How the program is run for one tool: templates of its arguments (C-4) and of what it reads. */
export interface CliCall {
  readonly argv: readonly string[]
  readonly stdin?: string
  readonly outputFormat?: OutputFormat
  /** narrowing of the driver's sandbox for this tool (C-5); already checked to be narrower */
  readonly sandbox?: CliSandbox
  /** narrowing of the driver's egress for this tool (C-5); the effective list, already intersected */
  readonly egress?: readonly EgressEntry[]
}

function readOutput(block: JsonObject): CliOutput {
  const codes = object(block, "exit_codes")
  return defined({
    defaultFormat: (optionalText(block, "default_format") ?? "text") as OutputFormat,
    jsonFlag: optionalText(block, "json_flag"),
    jsonFlagArgs: texts(block, "json_flag_args"),
    exitCodes: Object.fromEntries(Object.keys(codes).map((code) => [code, text(codes, code)])),
    stream: (optionalText(block, "stream") ?? "stdout") as CliOutput["stream"],
    errorStream: (optionalText(block, "error_stream") ?? "stderr") as CliOutput["errorStream"],
  })
}

export function readCli(front: JsonObject, context: Context): CliSpec {
  const bin = text(front, "bin")
  if (bin.split("/").includes("..") || bin.endsWith("/"))
    context.report.error(
      "path-escape",
      "bin",
      `\`${shown(bin)}\` leads elsewhere`,
      "write a program name, or a path inside the manifest's folder",
    )
  checkArgv(texts(front, "bin_args"), "bin_args", context, [bin])
  return {
    bin,
    binArgs: texts(front, "bin_args"),
    sandbox: readSandbox(object(front, "sandbox"), "sandbox", context.report),
    output: readOutput(object(front, "output")),
  }
}

export function readCliCall(
  block: JsonObject,
  path: string,
  spec: CliSpec,
  declared: readonly EgressEntry[],
  context: Context,
): CliCall {
  const argv = texts(block, "argv")
  checkArgv(argv, `${path}.argv`, context, [spec.bin, ...spec.binArgs])
  const stdin = optionalText(block, "stdin")
  const narrowing = optionalObject(block, "sandbox")
  const network = narrowing === undefined ? undefined : optionalObject(narrowing, "network")
  let egress: readonly EgressEntry[] | undefined
  if (network !== undefined) {
    const asked = readEgressList(texts(network, "egress"), `${path}.sandbox.network.egress`, context.report)
    egress = intersectEgress(asked, declared)
    for (const entry of asked) {
      if (!intersectEgress([entry], declared).some((both) => both.text === entry.text)) {
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
      narrowing === undefined ? undefined : narrowSandbox(spec.sandbox, narrowing, `${path}.sandbox`, context.report),
    egress,
  })
}
