/**
 * `caisson egress-proxy`: the proxy on its own, with a policy from a file.
 *
 * Guarantees: listens only after the whole policy was understood; a mistake in it ends with exit code 2 and names the
 * field. SIGHUP reads the file again: a good policy replaces the old one at once, a bad one changes nothing. Verdicts
 * go to stdout as pino's JSON lines where stdout is no terminal, else to stderr as lines for people; after the first that cannot be written (nobody reads
 * them any more, the disk is full) nothing passes, and the command ends with 5. Ends with 0 on SIGINT or SIGTERM.
 */
import { readFileSync, writeSync } from "node:fs"
import {
  createEgressProxy,
  type EgressProxy,
  PolicyError,
  type PolicyInput,
  type Verdict,
  type VerdictLogger,
} from "../../../egress-proxy/index.ts"
import { readEgressPolicy } from "../../../host/config/egress-settings.ts"
import { exit } from "../../exit.ts"
import { diagnosticLines } from "../../render/diagnostics.ts"
import { type Terminal } from "../../terminal.ts"
import { inline } from "../../visible.ts"

export interface ProxyFlags {
  readonly policy: string
  readonly listen: string
}

const readPolicy = (file: string, terminal: Terminal): PolicyInput | undefined => {
  let source: string
  try {
    source = readFileSync(file, "utf8")
  } catch (error) {
    terminal.say(`caisson: the policy cannot be read: ${inline((error as Error).message)}`)
    return undefined
  }
  const read = readEgressPolicy(source, file)
  if (read.ok) return read.policy
  for (const diagnostic of read.diagnostics)
    for (const line of diagnosticLines(diagnostic, terminal.paint)) terminal.say(line)
  return undefined
}

const verdictLine = (verdict: Verdict): string => {
  const target =
    verdict.host === undefined ? "" : ` ${verdict.host}${verdict.port === undefined ? "" : `:${verdict.port}`}`
  const hint = verdict.hint === undefined ? "" : `; ${verdict.hint}`
  return inline(`${verdict.decision} ${verdict.protocol}${target} ${verdict.reason}${hint}`)
}

/** Lines on stdout, each written before the call returns; one that cannot be is thrown, and so is each after it. */
const verdictLogger = async (onFailure: (error: Error) => void): Promise<VerdictLogger> => {
  const { pino } = await import("pino")
  let failure: Error | undefined
  const stdout = pino.destination({ fd: 1, sync: true })
  // It is told of an error once, and of a broken pipe never again: what is written then goes nowhere without a word.
  stdout.on("error", (error: Error) => {
    failure ??= error
    onFailure(failure)
  })
  const log = pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, stdout)
  const write =
    (level: "info" | "warn") =>
    (fields: object, message: string): void => {
      if (failure === undefined) log[level](fields, message)
      if (failure !== undefined) throw failure
    }
  return { info: write("info"), warn: write("warn") }
}

/** Lines for a person on stderr, each written before the call returns; one that cannot be is thrown, and ends it. */
const verdictLines =
  (terminal: Terminal, onFailure: (error: Error) => void) =>
  (verdict: Verdict): void => {
    const line = verdictLine(verdict)
    try {
      writeSync(2, `${line}\n`)
    } catch (error) {
      // A terminal that is slow to scroll is there all the same.
      if ((error as NodeJS.ErrnoException).code === "EAGAIN") return terminal.say(line)
      onFailure(error as Error)
      throw error
    }
  }

const open = async (
  flags: ProxyFlags,
  policy: PolicyInput,
  terminal: Terminal,
  onFailure: (error: Error) => void,
): Promise<EgressProxy | number> => {
  const told = terminal.isInteractive
    ? { onVerdict: verdictLines(terminal, onFailure) }
    : { logger: await verdictLogger(onFailure) }
  try {
    const { boundBuffers } = await import("../../../host/data/socket-buffers.ts")
    return await createEgressProxy({ ...policy, listen: flags.listen, onDescriptor: boundBuffers, ...told })
  } catch (error) {
    const message = inline(error instanceof Error ? error.message : String(error))
    terminal.say(`caisson: ${message}`)
    return error instanceof PolicyError ? exit.usage : exit.hostBroken
  }
}

const reload = (file: string, proxy: EgressProxy, terminal: Terminal): void => {
  const next = readPolicy(file, terminal)
  try {
    if (next !== undefined) proxy.update(next)
    terminal.say(next === undefined ? "caisson: the old policy stays" : "caisson: the new policy holds")
  } catch (error) {
    terminal.say(`caisson: ${inline((error as Error).message)}; the old policy stays`)
  }
}

/** Those that are connected get to read why they are refused, for a moment. */
const toldSo = async (proxy: EgressProxy): Promise<void> => {
  for (let left = 20; left > 0 && proxy.counters().connections > 0; left -= 1)
    await new Promise((resolve) => setTimeout(resolve, 50))
}

export const run = async (flags: ProxyFlags, terminal: Terminal): Promise<number> => {
  const policy = readPolicy(flags.policy, terminal)
  if (policy === undefined) return exit.usage
  const unwritten = Promise.withResolvers<Error>()
  const proxy = await open(flags, policy, terminal, unwritten.resolve)
  if (typeof proxy === "number") return proxy
  const stopped = new Promise<undefined>((resolve) => {
    for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => resolve(undefined))
  })
  process.on("SIGHUP", () => reload(flags.policy, proxy, terminal))
  terminal.say(`caisson: the egress proxy listens on ${proxy.url ?? proxy.address}`)
  const failure = await Promise.race([stopped, unwritten.promise])
  if (failure !== undefined) {
    terminal.say(`caisson: verdicts cannot be written (${inline(failure.message)}); nothing passes any more`)
    await toldSo(proxy)
  }
  await proxy.close()
  return failure === undefined ? exit.ok : exit.hostBroken
}
