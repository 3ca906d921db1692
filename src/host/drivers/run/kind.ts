/**
 * The driver behind `run`: one command that a person typed, as it was typed.
 *
 * Guarantees: it is asked and sealed as any kind is, with the needs of a cli driver; the words of the command are nobody's
 * template. A program that lies where nothing can be started from (the workspace) is started by its interpreter where it
 * is a script. The command's own exit code is its result; where a person is asked, what it changed is theirs to keep
 * whatever that code is.
 * Does not: keep what is printed where somebody else takes it while it runs, beyond the end of stderr.
 */
import type { DriverContract, JsonObject } from "../../../manifest/types.ts"
import { cliKind } from "../cli/kind.ts"
import type { Attachment } from "../../attachment.ts"
import type { DriverKindModule, KindCommand, KindResult } from "../kind.ts"
import type { Program } from "../program/program.ts"
import { insidePath } from "../program/programs.ts"
import type { Failure, Success } from "../../failure.ts"
import { decode, tail, truncationNote } from "../../invoke/stream-text.ts"

export interface RunCommand {
  /** as it was typed, for people */
  readonly name: string
  readonly program: Program
  /** between the program and its arguments: the script that an interpreter is to run */
  readonly script: readonly string[]
  readonly args: readonly string[]
  /** who has its streams while it runs; absent: its output is its result */
  readonly attachment?: Attachment
  /** the program reads it; absent: nothing */
  readonly stdin?: Uint8Array
}

const failed = (name: string, { exitCode, stderr }: KindResult): Failure => ({
  ok: false,
  code: "upstream_error",
  message: `\`${name}\` ended with exit code ${exitCode}`,
  hint:
    exitCode === 127
      ? "a program was not found: name those that it may start with --exec"
      : exitCode === 126
        ? "a program could not be started: name those that it may start with --exec"
        : "read what it printed",
  retryable: false,
  details: { exit_code: exitCode, stderr: tail(stderr) },
})

const valueOf = ({ exitCode, stdout }: KindResult, attached: boolean): JsonObject => {
  if (attached) return { exit_code: exitCode }
  const { text, valid } = decode(stdout)
  return { exit_code: exitCode, stdout: text, ...(valid ? {} : { stdout_is_text: false }) }
}

const read = ({ name, attachment }: RunCommand, result: KindResult): Success | Failure => {
  if (result.exitCode !== 0) return failed(name, result)
  const isTaken = attachment !== undefined && attachment.collects !== true
  const said = tail(result.stderr)
  return {
    ok: true,
    value: valueOf(result, isTaken),
    notes: !isTaken && result.stdout.truncated ? [truncationNote(result.stdout)] : [],
    ...(said.trim() === "" ? {} : { stderr: said }),
  }
}

const commandOf = (run: RunCommand): KindCommand => ({
  run: "program",
  argv: [insidePath(run.program), ...run.script, ...run.args],
  stdin: run.stdin ?? new Uint8Array(),
  format: "json",
  keepsAnyway: true,
  ...(run.attachment === undefined ? {} : { attachment: run.attachment }),
  read: (result) => read(run, result),
})

/** Of one run. */
export const runKind = (run: RunCommand): DriverKindModule => ({
  ...cliKind,
  remedies: () => ({
    write: "say that it may write there, as in `--write 'notes/**'`",
    exec: "say which programs it may start, as in `--exec git`",
    egress: "say which hosts it may reach, as in `--allow api.example.com`",
  }),
  needs: (call, findProgram) => {
    const needed = cliKind.needs(call, findProgram)
    if (!needed.ok) return needed
    return { ok: true, value: { ...needed.value, tty: run.attachment?.stdio.kind === "terminal" } }
  },
  available: async () => ({ available: true, program: run.program }),
  command: () => ({ ok: true, value: commandOf(run) }),
  outline: () => [run.name, ...run.args],
  evidence: () => ({ program: run.program.path, argv_count: run.script.length + run.args.length + 1 }),
})

const served = new WeakMap<DriverContract, DriverKindModule>()

/** A driver that no manifest declares is served by its own. */
export const serveBy = (contract: DriverContract, kind: DriverKindModule): void => void served.set(contract, kind)
export const ownKindOf = (contract: object): DriverKindModule | undefined => served.get(contract as DriverContract)
