/**
 * A command of a driver's manifest outside any call (`login.cmd`, `refresh.cmd`, `completes_when.cmd`, set-up) → what is
 * started, and what that may start.
 *
 * Guarantees: the driver's own program where the command names it, else one of the system's folders; no shell unless the
 * text means nothing without one (C-32), and then nothing but the driver's program and what it declares can be started
 * from it. Does not: run anything.
 */
import path from "node:path"
import { cliOf } from "../../../manifest/kinds/body.ts"
import type { CliSandbox, DriverContract } from "../../../manifest/types.ts"
import type { Executables } from "../../../sandbox/backend.ts"
import { bundlesOf, executablesFor, insidePath, interpretersOf } from "./programs.ts"
import type { Program } from "./program.ts"
import { splitWords } from "./shell-words.ts"

type HomeProgram =
  | { readonly ok: true; readonly executables: Executables; readonly argv: readonly string[] }
  | { readonly ok: false; readonly message: string; readonly fix: string }

interface Sources {
  readonly contract: DriverContract
  /** the driver's own, where its kind has one */
  readonly program?: Program
  readonly findProgram: (name: string) => Program | undefined
  readonly env: Readonly<Record<string, string>>
}

/** What a driver declares of its programs outside any tool; nothing where it declares none. */
export const ownSandbox = ({ body }: DriverContract): Pick<CliSandbox, "fs" | "env" | "exec"> => {
  const declared = body.kind === "cli" ? body.cli.sandbox : body.kind === "mcp" ? body.mcp.sandbox : undefined
  return (
    declared ?? { fs: { read: [], write: [], deny: [] }, env: { pass: [], set: {} }, exec: { allow: false, spawn: [] } }
  )
}

const fix = "correct the command in the driver's manifest"

/** Another program than the driver's, with the driver's and what that declares as what it may start. */
const beside = (
  { contract, program, findProgram }: Sources,
  other: Program,
  children: boolean,
): { readonly executables: Executables } => {
  const { exec } = ownSandbox(contract)
  const own = program === undefined ? undefined : executablesFor(findProgram, program, exec).executables
  return {
    executables: {
      program: other.found,
      children: children || exec.allow,
      spawn: {
        ...interpretersOf(other),
        ...own?.spawn,
        ...(program === undefined ? {} : { [program.name]: own?.program ?? program.found }),
      },
      bundles: program === undefined ? {} : bundlesOf(program),
    },
  }
}

export const homeProgram = (sources: Sources, cmd: string): HomeProgram => {
  const { contract, program, findProgram, env } = sources
  const cli = cliOf(contract)
  const isOwn = (word: string): boolean =>
    program !== undefined && (word === cli?.bin || word === program.found || path.basename(word) === program.name)
  const split = splitWords(cmd, env)
  if (split.ok) {
    const [head = "", ...rest] = split.words
    if (program !== undefined && isOwn(head)) {
      const { executables } = executablesFor(findProgram, program, ownSandbox(contract).exec)
      return { ok: true, executables, argv: [insidePath(program), ...rest] }
    }
    const other = findProgram(head)
    if (other === undefined)
      return { ok: false, message: `it starts \`${head.slice(0, 80)}\`, which is not on this machine`, fix }
    return { ok: true, ...beside(sources, other, false), argv: [other.found, ...rest] }
  }
  if (!split.needsShell) return { ok: false, message: split.problem, fix }
  const shell = findProgram("sh")
  if (shell === undefined) return { ok: false, message: `it needs a shell (${split.why}), and there is none`, fix }
  return { ok: true, ...beside(sources, shell, true), argv: [shell.found, "-c", cmd] }
}
