/**
 * `caisson call`: one tool call, sealed.
 *
 * Guarantees: exactly one envelope, on stdout alone as JSON where stdout is no terminal; the exit code is that of the
 * envelope. Ctrl-C cancels the call and still prints its envelope. A call that needs approval asks where stdin and stderr
 * are a terminal; elsewhere it ends as `approval_required`, and its effects are held for an answer.
 */
import { processCaller } from "../../host/access/caller.ts"
import type { CallOptions, CallRequest, ContentChange, Envelope, WhyOptions } from "../../host/types.ts"
import { exitOf } from "../exit.ts"
import type { HostFlags } from "../host.ts"
import { givenContext, givenInput } from "../input.ts"
import { onInterrupt } from "../interrupt.ts"
import { withCaisson } from "../reach/with-caisson.ts"
import { changeLines } from "../render/changes.ts"
import { envelopeLines, questionLines, valueText } from "../render/envelope.ts"
import { resultJson, type Terminal } from "../terminal.ts"
import { inline } from "../visible.ts"
import { says } from "../texts.ts"

export interface CallFlags extends HostFlags {
  readonly input?: string
  readonly workspace: string
  readonly user?: string
  readonly driver?: string
  readonly context?: string
  readonly plan?: boolean
  readonly record?: string
  readonly replay?: string
  readonly yes?: boolean
  readonly observe?: boolean
  /** seconds; absent: it does not wait */
  readonly wait?: number
  readonly json?: boolean
}

/** What `call` and `why` ask of the host, and who asks. What cannot be read goes with its reason: its refusal is evidence too. */
export const requestFrom = async (
  tool: string,
  flags: Omit<CallFlags, "json">,
  signal: AbortSignal,
): Promise<{ readonly request: CallRequest; readonly options: WhyOptions }> => {
  const input = await givenInput(flags.input, signal)
  const context = givenContext(flags.context)
  const unreadable = [input, context].flatMap((given) => (given.ok ? [] : [given.message]))[0]
  const request: CallRequest = {
    tool,
    ...(input.ok && input.value !== undefined ? { input: input.value } : {}),
    workspace: flags.workspace,
    ...(context.ok && context.value !== undefined ? { context: context.value } : {}),
    ...(flags.driver === undefined ? {} : { driver: flags.driver }),
    ...(flags.plan === true ? { plan: true } : {}),
    ...(flags.observe === true ? { observe: true } : {}),
  }
  const options: WhyOptions = {
    caller: processCaller(flags.user),
    signal,
    ...(unreadable === undefined ? {} : { unreadable }),
  }
  return { request, options }
}

export const reachOf = ({ unreadable }: WhyOptions): Pick<WhyOptions, "unreadable"> =>
  unreadable === undefined ? {} : { unreadable }

export const showEnvelope = (envelope: Envelope, flags: Pick<CallFlags, "json" | "plan">, terminal: Terminal): void => {
  if (flags.json === true || !terminal.isInteractive) {
    resultJson(terminal, envelope)
    if (!envelope.ok) terminal.say(`caisson: ${envelope.error.code}: ${inline(envelope.error.message)}`)
    return
  }
  for (const line of envelopeLines(envelope, terminal.paint, flags.plan)) terminal.say(line)
  if (envelope.ok) terminal.result(valueText(envelope.value))
}

/** Where a person sits at the terminal: what the call did, or may do, and a question. */
const asking = (terminal: Terminal): Pick<CallOptions, "approve"> =>
  terminal.canAsk
    ? {
        approve: async (question) => {
          for (const line of questionLines(question, terminal.paint)) terminal.say(line)
          return terminal.confirm(question.about === "call" ? says.runThis : says.keepThese, question.signal)
        },
      }
    : {}

const waiting = ({ wait }: CallFlags): Pick<CallOptions, "wait"> => (wait === undefined ? {} : { wait: wait * 1000 })

export const run = async (tool: string, flags: CallFlags, terminal: Terminal): Promise<number> => {
  using interrupt = onInterrupt(() => terminal.say(`caisson: ${says.cancelling}`))
  const { request, options } = await requestFrom(tool, flags, interrupt.signal)
  // Awaited here, so that the signals stay ours until the host is closed.
  return await withCaisson(
    { ...flags, ...reachOf(options), warm: true },
    terminal,
    async (caisson) => {
      let changes: readonly ContentChange[] = []
      const onChanges = (planned: readonly ContentChange[]): void => void (changes = planned)
      const envelope = await terminal.during(
        caisson.call(request, {
          ...options,
          approved: flags.yes === true,
          ...waiting(flags),
          ...(flags.record === undefined ? {} : { record: flags.record }),
          ...(flags.replay === undefined ? {} : { replay: flags.replay }),
          onChanges,
          ...asking(terminal),
        }),
        tool,
      )
      if (flags.json !== true && terminal.isInteractive)
        for (const line of changeLines(changes, terminal.paint)) terminal.say(line)
      showEnvelope(envelope, flags, terminal)
      return exitOf(envelope)
    },
    (error) => {
      if (flags.json === true || !terminal.isInteractive)
        resultJson(terminal, { ok: false, error, call: "none", effects: [], denied: [], receipt: "none" })
    },
  )
}
