/**
 * One run of the program under its profile: prepare, serve the channel, run, read how it ended.
 *
 * Guarantees: sandbox and proxy belong to the scope that is handed in and live no longer than it; what the proxy and
 * the kernel stopped is counted together. A backend that cannot enforce the profile ends the call with nothing run.
 */
import { mkdirSync } from "node:fs"
import { namedDenial } from "../../../egress-proxy/policy/explain.ts"
import type { CollectedSandbox, Denial, Ending, RunningSandbox } from "../../../sandbox/backend.ts"
import { collect } from "../../../sandbox/collect.ts"
import { jobOf, shapeOf } from "../../../sandbox/profile.ts"
import type { ConversationCommand, HostedCommand, KindCommand, ProgramCommand } from "../../drivers/kind.ts"
import { endingFailure } from "../../invoke/error-map.ts"
import type { Failure } from "../../failure.ts"
import { tail } from "../../invoke/stream-text.ts"
import { tellWithout, withoutSecrets } from "../../secrets/redact.ts"
import { revealed } from "../sealing/secrets.ts"
import type { HostCore, ServedEgress } from "../core.ts"
import { notEnforced } from "../sealing/not-enforced.ts"
import { cancelled } from "./cancelled.ts"
import { converse } from "./converse.ts"
import { Grace } from "./grace.ts"
import { hosted } from "./hosted.ts"
import { notTaken } from "./not-taken.ts"
import { mergeDenials, withUnreachable } from "./stopped.ts"
import type { Attempt, Sealed, Step } from "../steps.ts"

type Outcome = Attempt["outcome"]

const withStderr = (failure: Failure, { stderr }: CollectedSandbox): Failure => ({
  ...failure,
  details: { ...failure.details, stderr: tail(stderr) },
})

/** How it ended is the same for every kind. */
const failedBy = (sealed: Sealed, exited: CollectedSandbox, ending: Exclude<Ending, { by: "exit" }>): Failure => {
  const { tool, profile, timeout } = sealed
  const context = { tool, network: profile.network !== "none", timeoutMs: timeout.ms }
  return withStderr(endingFailure(ending, context), exited)
}

/** One shot; what it wrote, its own kind reads. */
const runProgram = async (
  sealed: Sealed,
  command: ProgramCommand,
  running: RunningSandbox,
): Promise<Step<{ exited: CollectedSandbox; outcome: Outcome }>> => {
  const { profile } = sealed
  const exited = await collect(running, { stdin: command.stdin, outputBytes: profile.limits.outputBytes })
  if (!exited.ok) return notTaken(exited)
  const { ending, stdout, stderr } = exited
  const outcome =
    ending.by === "exit"
      ? await command.read({ exitCode: ending.code, stdout, stderr })
      : failedBy(sealed, exited, ending)
  return { ok: true, value: { exited, outcome } }
}

/** Its answer stands unless the run broke a limit or a rule, or was cancelled: to be ended is how it ends well. */
const runConversation = async (
  core: HostCore,
  sealed: Sealed,
  command: ConversationCommand,
  running: RunningSandbox,
): Promise<Step<{ exited: CollectedSandbox; outcome: Outcome }>> => {
  const { profile, signal, tell, elicit, driver } = sealed
  const talked = await converse(running, command, {
    outputBytes: profile.limits.outputBytes,
    signal,
    tell,
    review: core.reviews.of(driver.contract),
    ...(elicit === undefined ? {} : { elicit }),
  })
  if (!talked.ok) return notTaken(talked)
  const { exited, answer } = talked
  const { ending } = exited
  if (ending.by !== "exit" && ending.by !== "signal")
    return { ok: true, value: { exited, outcome: failedBy(sealed, exited, ending) } }
  if (!answer.ok) return { ok: true, value: { exited, outcome: withStderr(answer, exited) } }
  const said = tail(exited.stderr)
  const outcome = answer.stderr !== undefined || said === "" ? answer : { ...answer, stderr: said }
  return { ok: true, value: { exited, outcome } }
}

export interface AttemptOptions {
  /** what is left of the call's time */
  readonly wallMs: number
  /** what earlier attempts were denied */
  readonly earlier: readonly Denial[]
  readonly scope: AsyncDisposableStack
}

export const attempt = async (core: HostCore, sealed: Sealed, options: AttemptOptions): Promise<Step<Attempt>> => {
  const { command, secrets } = sealed
  const made = await (command.run === "hosted"
    ? hosted(core, sealed, command, options)
    : sandboxed(core, sealed, command, options))
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
  const { egress, folder, signal, driver } = sealed
  const { executables } = sealed.profile
  if (executables === undefined) throw new TypeError(`${driver.key} runs a program and was sealed without one`)
  const profile = { ...sealed.profile, executables }
  if (profile.home !== undefined) mkdirSync(profile.home.dir, { recursive: true, mode: 0o700 })
  const backend = await core.backend()
  const prepared = await backend.prepare(shapeOf(profile), signal)
  if (!prepared.ok) return signal.aborted ? cancelled : notEnforced(prepared)
  scope.use(prepared)
  let proxy: ServedEgress | undefined
  if (egress !== undefined) {
    if (prepared.channel === "none")
      return notEnforced({
        control: "egress-channel",
        message: "the sandbox was made without the channel that its network needs",
        fix: "run `caisson doctor`",
      })
    proxy = scope.use(await core.egressProxy(egress))
    proxy.serve(prepared.channel)
  }
  const files = { ...(command.run === "conversation" ? command.files : {}), ...proxy?.files }
  const sealedJob = jobOf(profile, { argv: command.argv, workspace: folder.identity, wallMs, files })
  const job = { ...sealedJob, env: { ...sealedJob.env, ...revealed(sealed.sealedSecrets.env) } }
  const grace = command.run === "conversation" ? scope.use(new Grace(signal)) : undefined
  const running = await prepared.start(job, grace?.signal ?? signal)
  grace?.talk()
  if (!running.ok) return signal.aborted ? cancelled : notTaken(running)
  scope.use(running)
  const teller = tellWithout(
    sealed.tell,
    sealed.secrets.map(({ value }) => value),
  )
  // What a conversation is held on is not the tool's output.
  const printed = command.run === "program" || running.pipes !== undefined ? ["stdout", "stderr"] : ["stderr"]
  for (const stream of printed as readonly ("stdout" | "stderr")[])
    running[stream].on("data", (bytes: Uint8Array) => teller.tell({ type: "output", stream, bytes }))
  const ran = await (command.run === "program"
    ? runProgram(sealed, command, running)
    : runConversation(core, { ...sealed, tell: teller.tell }, command, running))
  teller.end()
  if (!ran.ok) return ran
  const { exited, outcome } = ran.value
  scope.use(exited)
  const nameFor = (address: string): string | undefined => proxy?.nameFor(address)
  const tapped = exited.denied.map((denial) => (denial.layer === "egress" ? namedDenial(denial, nameFor) : denial))
  return {
    ok: true,
    value: {
      exited,
      reached: proxy?.reached() ?? [],
      denied: mergeDenials(earlier, tapped, proxy?.denials() ?? []),
      outcome: withUnreachable(outcome, proxy?.failures() ?? []),
    },
  }
}
