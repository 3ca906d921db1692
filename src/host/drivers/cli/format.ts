/**
 * Which format a program's output has, and whether the driver's JSON flag goes on the command line (C-54).
 *
 * Guarantees: pure; the flag never lands behind a literal `--`, where it would be a file name, and never twice.
 */
import type { CliOutput, Implementation, JsonSchema, OutputFormat } from "../../../manifest/types.ts"

const wantsObject = (outputs: JsonSchema): boolean => outputs["type"] === "object"

/**
 * The entry's own `output_format` wins; then a default of json, yaml or binary; then JSON where the contract promises
 * an object and the driver has a flag for it; then text.
 */
export const outputFormat = (output: CliOutput, cli: Implementation["cli"], outputs: JsonSchema): OutputFormat => {
  if (cli?.outputFormat !== undefined) return cli.outputFormat
  if (output.defaultFormat !== "text") return output.defaultFormat
  return output.jsonFlag !== undefined && wantsObject(outputs) ? "json" : "text"
}

/** The tool's arguments with the JSON flag where the format asks for it: at the end, or before a literal `--`. */
export const withJsonFlag = (
  argv: readonly string[],
  output: CliOutput,
  format: OutputFormat,
  positionalFrom: number,
): readonly string[] => {
  const flag = output.jsonFlag
  if (format !== "json" || flag === undefined) return argv
  const dashes = Number.isFinite(positionalFrom) ? argv.indexOf("--") : -1
  const options = dashes === -1 ? argv : argv.slice(0, dashes)
  if (options.some((text) => text === flag || text.startsWith(`${flag}=`))) return argv
  const positionals = dashes === -1 ? [] : argv.slice(dashes)
  return [...options, flag, ...output.jsonFlagArgs, ...positionals]
}
