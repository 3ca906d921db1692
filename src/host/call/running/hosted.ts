/**
 * One attempt of a call that runs no program: the host itself acts, with nothing but what it is handed.
 *
 * Guarantees: no sandbox is made and nothing of the workspace is touched; the one way out is an outlet whose dials go the
 * way of a sandbox's, and what it let through and stopped is counted the same. Ends by the answer, by the call's time or
 * by a cancel; then the desk is closed: its signal is aborted, and a dial after that leads nowhere.
 */
import type { Dialled } from "../../../egress-proxy/serve/hosted.ts"
import type { EgressPolicy } from "../../../egress-proxy/types.ts"
import type { JsonObject } from "../../../manifest/types.ts"
import type { Desk, HostedCommand } from "../../drivers/kind.ts"
import type { Failure, Success } from "../../failure.ts"
import { endingFailure } from "../../invoke/error-map.ts"
import { egressBudgets, hostLimits } from "../../limits.ts"
import type { HostCore, ServedEgress } from "../core.ts"
import type { Attempt, Ended, Sealed, Step } from "../steps.ts"
import type { AttemptOptions } from "./attempt.ts"
import { settledWithin } from "./settled-within.ts"
import { mergeDenials, withUnreachable } from "./stopped.ts"

/** Of a call without network: a dial is refused, and on record, as from a sandbox. */
const nowhere: EgressPolicy = Object.freeze({
  entries: [],
  services: {},
  private: [],
  budgets: egressBudgets,
  readOnlyHttp: "off",
  substitutions: [],
})

const deskClosed: Dialled = Object.freeze({
  ok: false,
  verdict: Object.freeze({ decision: "infrastructure", reason: "closing", protocol: "tcp" }),
})

/** A bug of ours; whatever it says, a value may be in it, so that only its name is told. */
const broken = (error: unknown): Failure => ({
  ok: false,
  code: "internal",
  message: "the host's own driver code failed",
  details: { error: error instanceof Error ? error.name : "unknown" },
})

/** Nothing was written, so there is nothing to judge, keep, hold or throw away. */
const withoutLayer = (ending: Ended["ending"], wallMs: number): Ended => ({
  ending,
  usage: { wallMs },
  writes: { effects: [], bytes: 0 },
  keepHome: async () => ({ ok: true }),
  commit: async () => ({ ok: true }),
  hold: async () => ({ ok: false, message: "there is nothing to hold" }),
  discard: async () => undefined,
  [Symbol.asyncDispose]: async () => undefined,
})

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve()
    signal.addEventListener("abort", () => resolve(), { once: true })
  })

export const hosted = async (
  core: HostCore,
  sealed: Sealed,
  command: HostedCommand,
  { wallMs, earlier, scope }: AttemptOptions,
): Promise<Step<Attempt>> => {
  const { tool, profile, egress, signal, tell, timeout } = sealed
  const started = performance.now()
  const time = new AbortController()
  const closed = new AbortController()
  const gone = AbortSignal.any([signal, time.signal, closed.signal])
  let serving: Promise<ServedEgress> | undefined
  let proxy: ServedEgress | undefined
  const serve = async (): Promise<ServedEgress> => {
    const served = await core.egressProxy(egress ?? nowhere)
    if (gone.aborted) await served[Symbol.asyncDispose]()
    else proxy = scope.use(served)
    return served
  }
  let facts: JsonObject = {}
  const desk: Desk = {
    signal: gone,
    outputBytes: profile.limits.outputBytes,
    tell: (event) => {
      if (!gone.aborted) tell(event)
    },
    note: (more) => {
      facts = { ...facts, ...more }
    },
    secret: (name) => {
      const { hosted: given } = sealed.sealedSecrets
      return Promise.resolve(Object.hasOwn(given, name) ? given[name]?.reveal() : undefined)
    },
    outlet: {
      async connect(to) {
        const served = await (serving ??= serve())
        if (gone.aborted) return deskClosed
        return served.dial({ ...to, signal: to.signal === undefined ? gone : AbortSignal.any([gone, to.signal]) })
      },
    },
  }
  let answer: Success | Failure | undefined
  const answering = Promise.resolve()
    .then(() => command.act(desk))
    .catch(broken)
    .then((settled) => {
      answer = settled
    })
  const timer = setTimeout(() => time.abort(), wallMs)
  await Promise.race([answering, aborted(gone)])
  clearTimeout(timer)
  const stopped = signal.aborted || time.signal.aborted
  // What is under way hears of the end, and is waited for, so that nothing goes on behind the call's back.
  if (stopped) await settledWithin(answering, hostLimits.lastWordMs.value)
  closed.abort()
  const network = profile.network !== "none"
  const ending: Ended["ending"] = signal.aborted
    ? { by: "cancelled" }
    : time.signal.aborted
      ? { by: "limit", limit: "wall" }
      : { by: "answer" }
  const outcome =
    ending.by === "answer" && answer !== undefined
      ? answer
      : endingFailure(ending as { by: "cancelled" }, { tool, network, timeoutMs: timeout.ms })
  return {
    ok: true,
    value: {
      exited: withoutLayer(ending, performance.now() - started),
      facts,
      reached: proxy?.reached() ?? [],
      denied: mergeDenials(earlier, proxy?.denials() ?? []),
      outcome: withUnreachable(outcome, proxy?.failures() ?? []),
    },
  }
}
