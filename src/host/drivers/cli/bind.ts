/**
 * One entry of a cli driver against one contract: its templates compiled, and what they cannot do without.
 */
import type { TemplatePath } from "../../../manifest/templates/template.ts"
import type { CliSpec, DriverContract, Implementation, ToolContract } from "../../../manifest/types.ts"
import { scopeOf } from "../../invoke/template-scope.ts"
import type { BoundEntry } from "../kind.ts"
import { checkProgramText } from "./program-text-check.ts"
import { type ArgvProgram, compileArgv, compileStdin, type StdinProgram } from "./template.ts"

/** How the program is called, compiled. */
export interface CliProgram {
  readonly argv: ArgvProgram
  readonly stdin?: StdinProgram
}

/** Values that a template puts in as they are, and that have no default. */
const neededBy = ({ argv, stdin }: CliProgram): readonly TemplatePath[] =>
  [
    ...argv.elements.flatMap((element) => (element.type === "one" ? element.pieces : [])),
    ...(stdin?.pieces ?? []),
  ].flatMap((piece) => (piece.type === "literal" || piece.fallback !== undefined ? [] : [piece.path]))

export const bind = (
  driver: DriverContract,
  cli: CliSpec,
  index: number,
  tool: ToolContract,
  implementation: Implementation,
): BoundEntry => {
  const scope = scopeOf(tool, implementation)
  const place = (field: string): { file: string; path: string } => ({
    file: driver.source.file,
    path: `implements[${index}].metadata.cli.${field}`,
  })
  const argv = compileArgv(implementation.cli?.argv ?? [], scope, place("argv"))
  const text = implementation.cli?.stdin
  const stdin = text === undefined ? undefined : compileStdin(text, scope, place("stdin"))
  const code = argv.ok
    ? checkProgramText([cli.bin, ...cli.binArgs], argv.program, stdin?.ok === true ? stdin.program : undefined, {
        argv: place("argv"),
        stdin: place("stdin"),
      })
    : []
  const diagnostics = [...argv.diagnostics, ...(stdin?.diagnostics ?? []), ...code]
  if (!argv.ok) return { binding: { tool, implementation, needs: [] }, diagnostics }
  const program: CliProgram = { argv: argv.program, ...(stdin?.ok === true ? { stdin: stdin.program } : {}) }
  return { binding: { tool, implementation, needs: neededBy(program), cli: program }, diagnostics }
}
