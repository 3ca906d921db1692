/**
 * One attempt of a call whose driver has its server kept.
 *
 * Guarantees: the calls of one driver, workspace and user come one after the other. A server that was kept serves only
 * where nothing has happened to it or to the workspace since: it lives, wrote nothing while nobody called, and the
 * workspace is, by `stat`, what it was when the server was started, as is its home where a login keeps something there;
 * else it is thrown away with whatever it wrote, and another is started on a new layer. It is kept again only where it
 * answered, and neither it nor anybody else changed the workspace: whatever it wrote ends it, so that its layer is
 * sealed, judged and committed as any. A call that fails otherwise, is cancelled or is too late ends it. Whether the
 * call's verdict lets it be kept is decided by whoever judges (`Attempt.kept`). A kept server that cannot be talked with,
 * before anything was asked of it, is replaced once; what it reached and was denied in the call until then is told with
 * the rest.
 */
import type { Denial, Glance } from "../../../../sandbox/backend.ts"
import { treePrint } from "../../../../sandbox/effects/tree-print.ts"
import { capture } from "../../../../sandbox/process/capture.ts"
import type { JsonObject } from "../../../../manifest/types.ts"
import type { ConversationCommand, Keeps, KeptAnswer } from "../../../drivers/kind.ts"
import type { Failure, Success } from "../../../failure.ts"
import { hostLimits } from "../../../limits.ts"
import { tellWithout } from "../../../secrets/redact.ts"
import type { HostCore, ServedEgress } from "../../core.ts"
import type { Attempt, Sealed, Step } from "../../steps.ts"
import type { AttemptOptions } from "../attempt.ts"
import { cancelled } from "../cancelled.ts"
import { endTalk } from "../conversing/converse.ts"
import { Grace } from "../conversing/grace.ts"
import { hearOut, noAnswer } from "../conversing/hear-out.ts"
import { endedWith, leftUntold } from "../ended.ts"
import { accountOf, answered, talkOutcome } from "../outcome.ts"
import { mergeReached } from "../stopped.ts"
import type { Lane } from "./keeper.ts"
import { ownTokens } from "../own-tokens.ts"
import { type KeptServer, startServer } from "./server.ts"
import { type Whose, whoseServer } from "./whose.ts"

const crowded: Failure = {
  ok: false,
  code: "rate_limited",
  message: `more than ${hostLimits.keptWaiting.value} calls wait for the server that is kept for this driver, workspace and user`,
  details: { waiting: hostLimits.keptWaiting.value },
}
const late = (ms: number): Failure => ({
  ok: false,
  code: "timeout",
  message: `another call had the server that is kept for this driver, workspace and user for longer than ${ms} ms; nothing was run`,
  details: { limit: "wall", waited: true },
})

/** More of what was counted up to then. */
const since = (now: readonly Denial[], then: readonly Denial[]): readonly Denial[] => {
  const keyOf = ({ layer, reason, target }: Denial): string => JSON.stringify([layer, reason, target])
  const before = new Map(then.map((denial) => [keyOf(denial), denial.count]))
  return now.flatMap((denial) => {
    const count = denial.count - (before.get(keyOf(denial)) ?? 0)
    return count > 0 ? [{ ...denial, count }] : []
  })
}

/** Why it cannot serve this call; undefined where it can. */
const unfit = async (server: KeptServer, print: string | undefined, wallMs: number): Promise<string | undefined> => {
  if (server.isOver) return "it ended"
  if (!server.lasts(wallMs)) return "its time was over"
  if (print === undefined || print !== server.print) return "the workspace changed"
  // A login that was renewed, ended or done anew since: it would go on with what was there before.
  if (server.home?.isCurrent() === false) return "its home changed"
  const seen = await server.running.glance().catch(() => undefined)
  if (seen === undefined) return "it ended"
  if (seen.written) return "it wrote while nobody called"
  // What it dialled while nobody called is no call's.
  server.denied = seen.denied
  return undefined
}

/** What this call may use, and what it left. */
interface Turn {
  readonly core: HostCore
  readonly sealed: Sealed
  readonly keeps: Keeps
  readonly lane: Lane<KeptServer>
  readonly options: AttemptOptions
  readonly wallMs: number
  readonly scope: AsyncDisposableStack
}

const isAnswer = (answer: KeptAnswer | Failure | undefined): answer is KeptAnswer =>
  answer !== undefined && "left" in answer

/** How it stands, or why it cannot stay. */
const untouched = async (server: KeptServer, { sealed }: Turn): Promise<Glance | string> => {
  const seen = await server.running.glance().catch(() => undefined)
  if (seen === undefined) return "it ended"
  if (seen.written) return "it wrote, and what it wrote was judged"
  if (server.print === undefined) return "the workspace has too many entries"
  const print = await treePrint(sealed.folder, hostLimits.keptWorkspaceEntries.value)
  return print === server.print ? seen : "the workspace changed"
}

/** What a server did in the call that was not asked in the end. */
type Unasked = Pick<Attempt, "reached" | "denied"> & { readonly unasked: true }
type Served = Step<Attempt> | Unasked

const serve = async (turn: Turn, server: KeptServer, facts: JsonObject): Promise<Served> => {
  const { core, sealed, keeps, lane, options, wallMs } = turn
  const { signal, elicit, driver, egress } = sealed
  const { outputBytes } = sealed.profile.limits
  const { running, network } = server
  const began = performance.now()
  const isFirst = server.calls === 0
  server.calls += 1
  await using own = new AsyncDisposableStack()
  const tokens = await ownTokens(core, sealed)
  if (!tokens.ok) return tokens
  const idleDials = network?.refused() ?? 0
  const proxy: ServedEgress | undefined =
    network === undefined || egress === undefined ? undefined : own.use(await network.begin(egress, tokens.value))
  if (proxy !== undefined) own.defer(() => network?.end())
  const printed = server.listen()
  const stderr = capture(printed, outputBytes, () => running.stop({ by: "limit", limit: "output" }))
  own.defer(() => server.unlisten())
  const teller = tellWithout(
    sealed.tell,
    sealed.secrets.map(({ value }) => value),
  )
  printed.on("data", (bytes: Uint8Array) => teller.tell({ type: "output", stream: "stderr", bytes }))
  const grace = own.use(new Grace(signal))
  grace.talk()
  grace.signal.addEventListener("abort", () => running.stop({ by: "cancelled" }), { once: true })
  const deadline = setTimeout(() => running.stop({ by: "limit", limit: "wall" }), wallMs)
  own.defer(() => clearTimeout(deadline))
  const { answer: said, isGone } = await hearOut(
    running,
    (heard) =>
      keeps.converse(server.talk, {
        signal: heard,
        tell: teller.tell,
        review: core.reviews.of(driver.contract),
        ...(elicit === undefined ? {} : { elicit }),
      }),
    signal,
  )
  const answer: Success | Failure = said === undefined ? noAnswer : isAnswer(said) ? said.answer : said
  const left = isAnswer(said) ? said.left : "unknown"
  const isCancelled = signal.aborted
  if (!isFirst && left === "unasked" && !isCancelled) {
    teller.end()
    const stopped = (await running.glance().catch(() => undefined))?.denied ?? []
    const { reached, denied } = accountOf(answer, since(stopped, server.denied), proxy, options.earlier)
    return { unasked: true, reached, denied }
  }
  const told: JsonObject = {
    ...facts,
    reused: !isFirst,
    since: server.since.toISOString(),
    calls: server.calls,
    ...(idleDials > 0 ? { idle_dials_refused: idleDials } : {}),
  }
  const mayStay = left === "answered" && !isGone && !isCancelled
  const seen = mayStay ? await untouched(server, turn) : "it did not answer what it was asked"
  if (typeof seen !== "string") {
    server.unlisten()
    await stderr.ended
    teller.end()
    const tapped = since(seen.denied, server.denied)
    server.denied = seen.denied
    const exited = endedWith({ by: "answer" }, performance.now() - began, { stderr: stderr.result() })
    return {
      ok: true,
      value: {
        exited,
        ...accountOf(answered(answer, stderr.result()), tapped, proxy, options.earlier),
        facts: { kept_server: { ...told, kept: false, ended: "the call was refused" } },
        kept: {
          facts: { kept_server: { ...told, kept: true } },
          keep: () => lane.put(server),
        },
      },
    }
  }
  const talked = await endTalk(running, { answer, isGone, isCancelled, outputBytes, stderr })
  teller.end()
  const kept_server = { ...told, kept: false, ended: seen }
  if (!talked.ok) {
    const { exited, outcome } = leftUntold(talked, performance.now() - began)
    return { ok: true, value: { exited, ...accountOf(outcome, [], proxy, options.earlier), facts: { kept_server } } }
  }
  const { exited } = talked
  turn.scope.use(exited)
  const outcome = talkOutcome(sealed, exited, talked.answer)
  return {
    ok: true,
    value: {
      exited,
      ...accountOf(outcome, since(exited.denied, server.denied), proxy, options.earlier),
      facts: { kept_server },
      ...(server.home === undefined ? {} : { home: server.home }),
    },
  }
}

/** The server that serves the call: the one that is kept, or another, and why that is. */
const serverFor = async (
  turn: Turn,
  command: ConversationCommand,
  whose: Whose,
  replaced?: string,
): Promise<Step<{ readonly server: KeptServer; readonly facts: JsonObject }>> => {
  const { core, sealed, keeps, lane, wallMs } = turn
  const print = await treePrint(sealed.folder, hostLimits.keptWorkspaceEntries.value)
  const found = replaced === undefined ? lane.take(whose) : undefined
  const why = found === undefined ? replaced : await unfit(found, print, wallMs)
  if (found !== undefined && why === undefined) return { ok: true, value: { server: found, facts: {} } }
  await found?.[Symbol.asyncDispose]()
  const started = await startServer(core, sealed, command, keeps, { whose, print, wallMs })
  return started.ok
    ? { ok: true, value: { server: started.value, facts: why === undefined ? {} : { restarted: why } } }
    : started
}

export const keptAttempt = async (
  core: HostCore,
  sealed: Sealed,
  command: ConversationCommand,
  keeps: Keeps,
  options: AttemptOptions,
): Promise<Step<Attempt>> => {
  const { signal } = sealed
  const until = performance.now() + options.wallMs
  const whose = whoseServer(sealed, command.argv)
  const lane = await core.kept.lane(
    whose.tuple,
    AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(options.wallMs))]),
  )
  if (lane === undefined) return signal.aborted ? cancelled : late(options.wallMs)
  if (lane === "full") return crowded
  options.scope.use(lane)
  let replaced: string | undefined
  let { earlier } = options
  let reachedBefore: Attempt["reached"] = []
  for (;;) {
    const wallMs = Math.max(1, Math.floor(until - performance.now()))
    const scope = options.scope
    const turn: Turn = { core, sealed, keeps, lane, options: { ...options, earlier }, wallMs, scope }
    const chosen = await serverFor(turn, command, whose, replaced)
    if (!chosen.ok) return chosen
    const { server, facts } = chosen.value
    // Unless it is put back, it ends with the attempt.
    let isKept = false
    scope.defer(async () => {
      if (!isKept) await server[Symbol.asyncDispose]()
    })
    const served = await serve(turn, server, facts)
    if ("unasked" in served) {
      replaced = "it did not answer"
      earlier = served.denied
      reachedBefore = served.reached
      await server[Symbol.asyncDispose]()
      continue
    }
    if (!served.ok) return served
    const value: Attempt = { ...served.value, reached: mergeReached(reachedBefore, served.value.reached) }
    const { kept } = value
    if (kept === undefined) return { ok: true, value }
    const keep = (): void => {
      isKept = true
      kept.keep()
    }
    return { ok: true, value: { ...value, kept: { ...kept, keep } } }
  }
}
