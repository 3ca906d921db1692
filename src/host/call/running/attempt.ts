/**
 * One run of the program under its profile: prepare, serve the channel, run, read how it ended.
 *
 * Guarantees: sandbox and proxy belong to the scope that is handed in and live no longer than it, unless the driver has
 * its server kept, and nothing of this call is in the way; what the proxy and the kernel stopped is counted together.
 * A backend that cannot enforce the profile ends the call with nothing run.
 */
import type { CollectedSandbox, Denial, RunningSandbox, Unavailable } from "../../../sandbox/backend.ts"
import { collect } from "../../../sandbox/collect.ts"
import type { CallTool, ConversationCommand, HostedCommand, KindCommand, ProgramCommand } from "../../drivers/kind.ts"
import { accessOf, deniedPaths } from "../../access-record/record.ts"
import { tellWithout, withoutSecrets } from "../../secrets/redact.ts"
import type { HostCore } from "../core.ts"
import { attached } from "./attached.ts"
import { cancelled } from "./cancelled.ts"
import { converse } from "./conversing/converse.ts"
import { Grace } from "./conversing/grace.ts"
import { leftUntold } from "./ended.ts"
import { hosted } from "./hosted.ts"
import { keptAttempt } from "./kept/attempt.ts"
import { NestedCalls } from "./nested.ts"
import { notTaken } from "./not-taken.ts"
import { accountOf, failedBy, talkOutcome } from "./outcome.ts"
import { readOutput } from "./read-output.ts"
import { makeReady } from "./ready.ts"
import { mergeDenials } from "./stopped.ts"
import type { Attempt, Sealed, Step } from "../steps.ts"

/** Read by its own kind; or what it left cannot be told. */
type Run = { readonly ok: true; readonly exited: CollectedSandbox; readonly outcome: Attempt["outcome"] } | Unavailable

/** One shot; what it wrote, its own kind reads. */
const runProgram = async (
  sealed: Sealed,
  command: ProgramCommand,
  running: RunningSandbox,
  untilMs: number,
): Promise<Run> => {
  const { profile } = sealed
  const { outputBytes } = profile.limits
  const { attachment, stdin } = command
  const exited = await (attachment === undefined
    ? collect(running, { stdin, outputBytes })
    : attached(running, attachment, sealed.secrets, outputBytes))
  if (!exited.ok) return exited
  const { ending } = exited
  const outcome =
    ending.by === "exit"
      ? await readOutput(sealed, command, exited, ending.code, untilMs)
      : failedBy(sealed, exited, ending)
  return { ok: true, exited, outcome }
}

const runConversation = async (
  core: HostCore,
  sealed: Sealed,
  command: ConversationCommand,
  running: RunningSandbox,
  callTool: CallTool,
): Promise<Run> => {
  const { profile, signal, tell, elicit, driver } = sealed
  const talked = await converse(running, command, {
    outputBytes: profile.limits.outputBytes,
    signal,
    tell,
    review: core.reviews.of(driver.contract),
    callTool,
    ...(elicit === undefined ? {} : { elicit }),
  })
  if (!talked.ok) return talked
  const { exited, answer } = talked
  return { ok: true, exited, outcome: talkOutcome(sealed, exited, answer) }
}

export interface AttemptOptions {
  /** what is left of the call's time */
  readonly wallMs: number
  /** what earlier attempts were denied */
  readonly earlier: readonly Denial[]
  readonly scope: AsyncDisposableStack
}

/** What belongs to the work is over with it, however it ended. */
const withEnd = async <T>(work: () => Promise<T>, end: () => Promise<void>): Promise<T> => {
  try {
    return await work()
  } finally {
    await end()
  }
}

const attemptAs = (
  core: HostCore,
  sealed: Sealed,
  command: KindCommand,
  options: AttemptOptions,
): Promise<Step<Attempt>> => {
  if (command.run === "hosted") return hosted(core, sealed, command, options)
  // What a plan leaves in a server's memory would be there for calls that are meant; and files are handed over when a
  // program starts, and taken when it is over.
  const { profile, observe, tape } = sealed
  const keeps = !sealed.plan && profile.exchange === undefined && observe === undefined && tape === undefined
  if (command.run === "conversation" && command.keeps !== undefined && keeps)
    return keptAttempt(core, sealed, command, command.keeps, options)
  return sandboxed(core, sealed, command, options)
}

export const attempt = async (core: HostCore, sealed: Sealed, options: AttemptOptions): Promise<Step<Attempt>> => {
  const { command, secrets } = sealed
  const made = await attemptAs(core, sealed, command, options)
  if (!made.ok || secrets.length === 0) return made
  const values = secrets.map(({ value }) => value)
  return { ok: true, value: { ...made.value, outcome: withoutSecrets(made.value.outcome, values) } }
}

const sandboxed = async (
  core: HostCore,
  sealed: Sealed,
  command: Exclude<KindCommand, HostedCommand>,
  { wallMs, earlier, scope }: AttemptOptions,
): Promise<Step<Attempt>> => {
  const { signal } = sealed
  const began = performance.now()
  const ready = await makeReady(core, sealed, command, wallMs, scope)
  if (!ready.ok) return ready
  const { prepared, job, network, home } = ready.value
  network?.proxy.serve(network.channel)
  const grace = command.run === "conversation" ? scope.use(new Grace(signal)) : undefined
  const running = await prepared.start(job, grace?.signal ?? signal)
  grace?.talk()
  if (!running.ok) return signal.aborted ? cancelled : notTaken(running)
  scope.use(running)
  const teller = tellWithout(
    sealed.tell,
    sealed.secrets.map(({ value }) => value),
  )
  // What a conversation is held on is not the tool's output; and what somebody takes is told to them alone.
  const isTaken = command.run === "program" && command.attachment !== undefined && command.attachment.collects !== true
  const printed = isTaken
    ? []
    : command.run === "program" || running.pipes !== undefined
      ? ["stdout", "stderr"]
      : ["stderr"]
  for (const stream of printed as readonly ("stdout" | "stderr")[])
    running[stream].on("data", (bytes: Uint8Array) => teller.tell({ type: "output", stream, bytes }))
  const nested = new NestedCalls(core.data, sealed)
  const runs = (): Promise<Run> =>
    command.run === "program"
      ? runProgram(sealed, command, running, began + wallMs)
      : runConversation(core, { ...sealed, tell: teller.tell }, command, running, nested.call)
  const ran = await withEnd(runs, () => nested.end())
  teller.end()
  const before = mergeDenials(earlier, nested.denials())
  if (!ran.ok) {
    const { exited, outcome } = leftUntold(ran, performance.now() - began)
    return { ok: true, value: { exited, ...accountOf(outcome, [], network?.proxy, before) } }
  }
  const { exited, outcome } = ran
  scope.use(exited)
  const seen = [...exited.denied, ...deniedPaths(exited.observed)]
  const account = accountOf(outcome, seen, network?.proxy, before)
  const access = sealed.observe === undefined ? {} : { access: accessOf(exited.observed, account) }
  return { ok: true, value: { exited, ...account, ...access, ...(home === undefined ? {} : { home }) } }
}
