/**
 * One attempt of a call that runs no program: the host itself acts, with nothing but what it is handed.
 *
 * Guarantees: no sandbox is made; the one way out is an outlet whose dials go the way of a sandbox's, and what it let
 * through and stopped is counted the same; the one way to the workspace is a layer that is sealed, judged and committed as
 * a sandbox's. Ends by the answer, by the call's time or by a cancel; then the desk is closed: its signal is aborted, a dial
 * after that leads nowhere, and nothing more is written.
 */
import type { Dialled } from "../../../egress-proxy/serve/hosted.ts"
import type { EgressPolicy } from "../../../egress-proxy/types.ts"
import type { JsonObject } from "../../../manifest/types.ts"
import type { Exchanged, Unavailable } from "../../../sandbox/backend.ts"
import type { Desk, HostedCommand } from "../../drivers/kind.ts"
import type { Failure, Success } from "../../failure.ts"
import { endingFailure } from "../../invoke/error-map.ts"
import { egressBudgets, hostLimits } from "../../limits.ts"
import { tellWithout } from "../../secrets/redact.ts"
import type { HostCore, ServedEgress } from "../core.ts"
import { sentTo } from "../sealing/secrets.ts"
import type { Attempt, Ended, Sealed, Step } from "../steps.ts"
import type { AttemptOptions } from "./attempt.ts"
import { AttemptFiles } from "./attempt-files.ts"
import { endedWith, leftUntold } from "./ended.ts"
import { notTaken } from "./not-taken.ts"
import { askPerson } from "./asking/person.ts"
import { createPace } from "./pace.ts"
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

/** What a contract hands over lies on this machine, and what serves the call does not. */
const outOfReach = (driver: string): Failure => ({
  ok: false,
  code: "tool_unavailable",
  message: `the contract exchanges files, and ${driver} runs nothing here that could reach them`,
  hint: "serve the tool by a driver whose program or function runs here",
  details: { driver },
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
  const { tool, profile, egress, signal, tell, timeout, folder } = sealed
  const started = performance.now()
  const time = new AbortController()
  const closed = new AbortController()
  const gone = AbortSignal.any([signal, time.signal, closed.signal])
  let serving: Promise<ServedEgress> | undefined
  let proxy: ServedEgress | undefined
  const serve = async (): Promise<ServedEgress> => {
    const served = await core.egressProxy(egress ?? nowhere, undefined, sealed.tape?.tape)
    if (gone.aborted) await served[Symbol.asyncDispose]()
    else proxy = scope.use(served)
    return served
  }
  let facts: JsonObject = {}
  const { view, write, limits } = profile
  const files = new AttemptFiles(core.layers, { workspace: folder.identity, view, write, limits, signal: gone })
  const teller = tellWithout(
    tell,
    sealed.secrets.map(({ value }) => value),
  )
  const desk: Desk = {
    signal: gone,
    outputBytes: profile.limits.outputBytes,
    tell: (event) => {
      if (!gone.aborted) teller.tell(event)
    },
    review: core.reviews.of(sealed.driver.contract),
    ...(sealed.elicit === undefined ? {} : { elicit: sealed.elicit }),
    note: (more) => {
      facts = { ...facts, ...more }
    },
    secret: (name, host) => {
      const { hosted: given } = sealed.sealedSecrets
      return Promise.resolve(Object.hasOwn(given, name) ? sentTo(given[name], host) : undefined)
    },
    layer: files,
    askPerson: () =>
      askPerson(core, sealed, { signal: gone, leftMs: () => wallMs - (performance.now() - started) }, desk),
    pace: createPace(core, sealed, {
      signal: gone,
      leftMs: () => wallMs - (performance.now() - started),
      note: (more) => desk.note(more),
    }),
    outlet: {
      ...(sealed.tape === undefined ? {} : { tape: sealed.tape.tape }),
      async connect(to) {
        const served = await (serving ??= serve())
        if (gone.aborted) return deskClosed
        return served.dial({ ...to, signal: to.signal === undefined ? gone : AbortSignal.any([gone, to.signal]) })
      },
    },
  }
  let answer: Success | Failure | undefined
  let refused: Unavailable | undefined
  let exchanged: Exchanged | undefined
  let acted = false
  const act = async (): Promise<Success | Failure> => {
    if (profile.exchange === undefined) {
      acted = true
      return await command.act(desk)
    }
    if (command.takesFiles !== true) return outOfReach(sealed.driver.key)
    const exchange = await files.exchange(profile.exchange)
    acted = true
    const said = await command.act({ ...desk, filesAt: exchange.folder })
    if (!gone.aborted) exchanged = await exchange.takeBack()
    return said
  }
  const answering = act()
    .catch((error: unknown) => {
      refused = files.refusalOf(error)
      return broken(error)
    })
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
  const left = await (stopped || refused !== undefined ? files.discard() : files.seal()).catch((error: unknown) => {
    refused = files.refusalOf(error)
    if (refused === undefined) throw error
    return undefined
  })
  if (refused !== undefined && !stopped && !acted) return notTaken(refused)
  const network = profile.network !== "none"
  const ending: Ended["ending"] = signal.aborted
    ? { by: "cancelled" }
    : time.signal.aborted
      ? { by: "limit", limit: "wall" }
      : files.exceeded
        ? { by: "limit", limit: "disk" }
        : { by: "answer" }
  const wallSoFar = performance.now() - started
  const said =
    ending.by === "answer" && answer !== undefined
      ? answer
      : endingFailure(ending as { by: "cancelled" }, { tool, network, timeoutMs: timeout.ms })
  const { exited: ended, outcome } =
    refused === undefined || stopped
      ? { exited: endedWith(ending, wallSoFar, { layers: left }), outcome: said }
      : leftUntold(refused, wallSoFar)
  const exited = scope.use(exchanged === undefined ? ended : { ...ended, exchanged })
  return {
    ok: true,
    value: {
      exited,
      facts,
      reached: proxy?.reached() ?? [],
      denied: mergeDenials(earlier, proxy?.denials() ?? []),
      outcome: withUnreachable(outcome, proxy?.failures() ?? []),
    },
  }
}
