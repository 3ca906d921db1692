/**
 * `caisson run`: any command, sealed, without a manifest.
 *
 * Guarantees: what the command prints goes where ours does, as it is printed; its own exit code is ours where it ran to an
 * end that nothing of ours refused. At a terminal it has one of its own; what it changed is shown, and asked about. With
 * `--json` stdout carries one envelope alone. It runs in this process, also where a daemon holds the data folder: the
 * terminal and the pipes are this process's.
 */
import type { ContentChange, Envelope, RunOptions, RunRequest } from "../../host/types.ts"
import { exit, exitOf } from "../exit.ts"
import { type HostFlags, withHost } from "../host.ts"
import { onInterrupt } from "../interrupt.ts"
import { attachmentHere } from "../person/attached.ts"
import { changeLines } from "../render/changes.ts"
import { envelopeLines, questionLines } from "../render/envelope.ts"
import { resultJson, type Terminal } from "../terminal.ts"
import { inline } from "../visible.ts"
import { says } from "../texts.ts"

export interface RunFlags extends Pick<HostFlags, "backend"> {
  readonly allow?: readonly string[]
  readonly write?: readonly string[]
  readonly read?: readonly string[]
  readonly exec?: readonly string[]
  readonly secret?: readonly string[]
  readonly workspace: string
  readonly timeout?: number
  readonly plan?: boolean
  readonly yes?: boolean
  readonly json?: boolean
  readonly record?: string
  readonly replay?: string
  /** false: `--no-observe` */
  readonly observe?: boolean
}

const requestFrom = (command: readonly string[], flags: RunFlags): RunRequest => ({
  command,
  workspace: flags.workspace,
  ...(flags.allow === undefined ? {} : { allow: flags.allow }),
  ...(flags.write === undefined ? {} : { write: flags.write }),
  ...(flags.read === undefined ? {} : { read: flags.read }),
  ...(flags.exec === undefined ? {} : { exec: flags.exec }),
  ...(flags.secret === undefined ? {} : { secrets: flags.secret }),
  ...(flags.timeout === undefined ? {} : { timeoutMs: flags.timeout * 1000 }),
  ...(flags.plan === true ? { plan: true } : {}),
  ...(flags.observe === false ? { observe: false } : {}),
})

const SIGNALS: Readonly<Record<string, number>> = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGILL: 4, SIGABRT: 6, SIGBUS: 7 }
const MORE: Readonly<Record<string, number>> = {
  SIGFPE: 8,
  SIGKILL: 9,
  SIGSEGV: 11,
  SIGPIPE: 13,
  SIGALRM: 14,
  SIGTERM: 15,
}

/** The command's own, as a shell tells it; undefined where it is ours to say how it ended. */
const ownExit = (envelope: Envelope): number | undefined => {
  if (!envelope.ok && envelope.error.code !== "upstream_error") return undefined
  const facts = envelope.ok ? envelope.value : envelope.error.details
  if (typeof facts !== "object" || facts === null || Array.isArray(facts)) return undefined
  const { exit_code: code, signal } = facts as Readonly<Record<string, unknown>>
  if (typeof code === "number") return code
  const number = typeof signal === "string" ? (SIGNALS[signal] ?? MORE[signal]) : undefined
  return number === undefined ? undefined : 128 + number
}

/** The story, for people: of a command that printed to the same terminal, without saying it again. */
const tellEnd = (envelope: Envelope, changes: readonly ContentChange[], plan: boolean, terminal: Terminal): void => {
  for (const line of changeLines(changes, terminal.paint)) terminal.say(line)
  const quiet = envelope.ok
    ? { ...envelope, stderr: "" }
    : { ...envelope, error: { ...envelope.error, details: { ...envelope.error.details, stderr: "" } } }
  for (const line of envelopeLines(quiet, terminal.paint, plan)) terminal.say(line)
}

const asking = (terminal: Terminal, flags: RunFlags, settle: () => void): Pick<RunOptions, "approve"> =>
  terminal.canAsk && flags.json !== true
    ? {
        approve: async (question) => {
          settle()
          for (const line of questionLines({ ...question, tool: "run" }, terminal.paint)) terminal.say(line)
          return terminal.confirm(says.keepThese, question.signal)
        },
      }
    : {}

export const run = async (command: readonly string[], flags: RunFlags, terminal: Terminal): Promise<number> => {
  if (command.length === 0) {
    terminal.say(`caisson: ${says.noCommand}`)
    return exit.usage
  }
  using interrupt = onInterrupt(() => terminal.say(`caisson: ${says.cancelling}`))
  const here = attachmentHere(flags.json === true)
  const failedEarly = (error: object): void => {
    if (flags.json === true)
      resultJson(terminal, { ok: false, error, call: "none", effects: [], denied: [], receipt: "none" })
  }
  return await withHost(
    { warm: true, ...(flags.backend === undefined ? {} : { backend: flags.backend }) },
    terminal,
    async (host) => {
      let changes: readonly ContentChange[] = []
      const envelope = await host.run(requestFrom(command, flags), {
        signal: interrupt.signal,
        approved: flags.yes === true,
        attachment: here.attachment,
        ...(flags.record === undefined ? {} : { record: flags.record }),
        ...(flags.replay === undefined ? {} : { replay: flags.replay }),
        onChanges: (told) => void (changes = told),
        ...asking(terminal, flags, here.settle),
      })
      here.settle()
      if (flags.json === true) resultJson(terminal, envelope)
      else tellEnd(envelope, changes, flags.plan === true, terminal)
      if (flags.json === true && !envelope.ok)
        terminal.say(`caisson: ${envelope.error.code}: ${inline(envelope.error.message)}`)
      return ownExit(envelope) ?? exitOf(envelope)
    },
    failedEarly,
  )
}
