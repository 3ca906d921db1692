/**
 * The programs a call may start, as fixed paths.
 *
 * Guarantees: names of `exec.spawn` become paths in the system's folders or are left out and reported; without
 * `exec.allow` there are none but the program itself and what its first line starts (C-51).
 */
import { basename, join, relative } from "node:path"
import type { CliSandbox } from "../../../manifest/types.ts"
import type { Executables } from "../../../sandbox/backend.ts"
import { inside } from "../paths.ts"
import type { Program } from "./program.ts"

/** What a script's first line starts, under the names it uses. */
export const interpretersOf = (program: Program): Record<string, string> =>
  Object.fromEntries((program.called ?? program.interpreters).map((path) => [basename(path), path]))

const mountOf = ({ mount }: Program): string => mount ?? inside.bundle

/** The folder that the program comes in, and where it is seen inside. */
export const bundlesOf = (program: Program): Record<string, string> =>
  program.bundle === undefined ? {} : { [program.bundle]: mountOf(program) }

/** The program, its interpreters, and those of `exec.spawn` that are on this machine. */
export const executablesFor = (
  findProgram: (name: string) => Program | undefined,
  program: Program,
  exec: CliSandbox["exec"],
): { executables: Executables; absent: readonly string[] } => {
  const names = exec.allow ? exec.spawn : []
  const found = names.map((name) => [name, findProgram(name)] as const)
  const spawn: Record<string, string> = {}
  Object.assign(spawn, interpretersOf(program))
  for (const [name, other] of found) {
    if (other === undefined) continue
    Object.assign(spawn, interpretersOf(other), { [name]: other.found })
  }
  return {
    executables: {
      program: program.bundle === undefined ? program.found : program.path,
      children: exec.allow,
      spawn,
      bundles: bundlesOf(program),
    },
    absent: found.filter(([, other]) => other === undefined).map(([name]) => name),
  }
}

/** Where the program is seen inside. */
export const insidePath = (program: Program): string =>
  program.bundle === undefined ? program.found : join(mountOf(program), relative(program.bundle, program.path))
