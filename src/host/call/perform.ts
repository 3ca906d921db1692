/**
 * One call, from request to envelope: the steps in their order, the clock on each, and the receipt at the end.
 *
 * Guarantees: whatever happens, a refusal, a violation, a thrown bug, exactly one receipt is written and one envelope
 * given back. A call whose effects only lack a person's yes may be handed to a holder instead of being thrown away. What a
 * receipt holds of the effects is made before they are committed, and is bounded. Sandboxes, proxies and timers belong to the
 * call's scope and are gone when the envelope is out.
 */
import { changesOf, lookBounds } from "../diffs/changes.ts"
import type { Failure, Success } from "../failure.ts"
import type { AuditLog } from "../receipts/log.ts"
import { openCall } from "../receipts/open-calls.ts"
import { receiptRows, whoseCall } from "./receipt.ts"
import { commitOf, record } from "./recording/record.ts"
import { broken, Trail } from "./recording/trail.ts"
import { whatRan } from "../receipts/what-ran.ts"
import type { Envelope } from "../types.ts"
import { mutatesOutside } from "../access/decide.ts"
import { hasRoom } from "./admission/debit.ts"
import { outOfUse, takeItsPlace, takeTurn } from "./admission/operation.ts"
import { countCall, takeSandbox } from "./admission/policy-limits.ts"
import { admit } from "./admit.ts"
import { approve, authorizeAsking } from "./approve.ts"
import { permitted } from "./authorize.ts"
import type { HostCore } from "./core.ts"
import type { CallEvent } from "../events.ts"
import { askStatus } from "./judging/ask-status.ts"
import { CallEvents } from "./events.ts"
import { obtain } from "./obtain.ts"
import { findRoute, route } from "./route.ts"
import { type Before, run } from "./run.ts"
import { passOver } from "./running/fallback.ts"
import { barredWithin, nestingOf, tellChanged } from "./running/nested.ts"
import { cancelled, unlessCancelled } from "./running/cancelled.ts"
import { price } from "./price.ts"
import { renew } from "./renew.ts"
import { seal } from "./seal.ts"
import { settle } from "./settle.ts"
import { signIn } from "./sign-in.ts"
import { transform } from "./transform.ts"
import type { Admitted, Authorized, Holder, Judged, Requested, Routed, Step } from "./steps.ts"
import { told } from "./judging/told.ts"

type End = Success | Failure

const walk = async (
  core: HostCore,
  requested: Requested,
  trail: Trail,
  scope: AsyncDisposableStack,
  holder: Holder | undefined,
): Promise<End> => {
  const { tell } = requested
  const admitted = admit(core, requested)
  trail.mark("admit", admitted.ok ? admitted.value : undefined)
  if (!admitted.ok) return admitted
  const barred = barredWithin(requested, admitted.value.tool)
  if (barred !== undefined) {
    admitted.value.folder[Symbol.dispose]()
    return barred
  }
  tell({ type: "admitted", tool: `${admitted.value.tool.id}@${admitted.value.tool.major}` })
  scope.use(admitted.value.folder)
  const gone = outOfUse(admitted.value.tool, Date.now())
  if (gone !== undefined) return gone
  const refused = permitted(core, admitted.value) ?? (await withinLimits(core, admitted.value))
  if (refused !== undefined) {
    trail.mark("authorize")
    return refused
  }
  const authorized = await authorizeAsking(core, admitted.value)
  trail.mark("authorize", authorized.ok ? authorized.value : undefined)
  if (!authorized.ok) return authorized
  const busy = takeItsPlace(core, authorized.value.tool, scope) ?? takeSandbox(core, authorized.value, scope)
  if (busy !== undefined) return busy
  tellChanged(requested, authorized.value.tool)
  const turn = await turnOn(authorized.value)
  if (turn !== undefined && "code" in turn) return turn
  trail.mark("wait")
  if (turn !== undefined) scope.use(turn)
  let before: Before | undefined
  for (let attempts = 1; ; ) {
    await using own = new AsyncDisposableStack()
    const round = await serveAndSettle(core, authorized.value, trail, own, holder, before)
    if (round.again !== undefined) {
      before = round.again
      continue
    }
    const known = await askStatus(core, authorized.value, trail.progress, round.end, attempts)
    if (known.again === undefined) {
      scope.use(own.move())
      return known.end
    }
    before = known.again
    attempts += 1
  }
}

/** Rates and budgets come before approval: nobody is asked about what they would refuse all the same. */
const withinLimits = async (core: HostCore, admitted: Admitted): Promise<Failure | undefined> =>
  (await countCall(core, admitted)) ?? (await takeTurn(core, admitted.tool)) ?? (await hasRoom(core, admitted))

/** Its turn on the workspace, where it waits for that and may change it. */
const turnOn = async ({ wait, plan, tool, folder, signal }: Authorized): Promise<Disposable | Failure | undefined> => {
  if (wait === undefined || plan || !tool.mutates.some((scope) => scope.class === "workspace")) return undefined
  const turn = await wait.turn(folder.identity)
  if (turn !== undefined) return turn
  if (signal.aborted) return cancelled
  return {
    ok: false,
    code: "conflict",
    message: "other calls changed the workspace for as long as this one waited; nothing was run",
    hint: "try again, or wait longer",
    details: {},
  }
}

/** What ran met a change of others at its end: it may run again where nothing but the workspace has heard of it. */
const anotherRound = ({ wait, signal, tool, attempt, homes, reached }: Judged, end: End): Before | undefined => {
  if (wait === undefined || end.ok || end.code !== "conflict" || signal.aborted) return undefined
  const isHarmless =
    mutatesOutside(tool).length === 0 && reached.length === 0 && homes.length === 0 && tool.requires.tools.length === 0
  if (!isHarmless || performance.now() >= wait.until) return undefined
  return { elapsedMs: 0, denied: attempt.denied, homes, reached }
}

interface Round {
  readonly end: End
  /** it is to be run once more, and this is what the receipt is to keep of now */
  readonly again?: Before
}

const serveAndSettle = async (
  core: HostCore,
  authorized: Authorized,
  trail: Trail,
  scope: AsyncDisposableStack,
  holder: Holder | undefined,
  before: Before | undefined,
): Promise<Round> => {
  const { tell } = authorized
  const judged = await serve(core, authorized, trail, scope, before)
  if (!judged.ok) return { end: judged }
  trail.effects = judged.value.effects
  trail.denied = judged.value.attempt.denied
  trail.access = judged.value.attempt.access
  for (const denial of trail.denied) tell({ type: "denied", denial })
  const { verdict } = judged.value
  tell({ type: "judged", verdict: verdict.ok ? "ok" : verdict.code, effects: trail.effects.length })
  await tellChanges(judged.value)
  const answered = await approve(core, judged.value)
  trail.mark("approve", answered)
  trail.rows = await receiptRows(answered, answered.effects, trail.denied, await trail.ran)
  const keep = holder === undefined ? undefined : (call: Judged, answer: Success) => holder.hold(call, answer, scope)
  trail.committing = verdictCommits(answered)
  const settled = await settle(answered, keep)
  trail.committing = false
  trail.mark("settle")
  trail.held = settled.held
  trail.effects = settled.effects
  const again = anotherRound(answered, settled.end)
  return { end: settled.end, ...(again === undefined ? {} : { again }) }
}

const verdictCommits = ({ verdict, keptFiles, plan, effects }: Judged): boolean =>
  !plan && effects.length > 0 && (verdict.ok || keptFiles !== undefined)

/** What it changed, before that is committed or thrown away; a person who is asked about it is shown it with the question. */
const tellChanges = async ({ onChanges, effects, attempt, ask, ifApproved }: Judged): Promise<void> => {
  if (onChanges === undefined || effects.length === 0 || (ask !== undefined && ifApproved !== undefined)) return
  const looked = await attempt.exited.look(lookBounds)
  try {
    onChanges(changesOf(effects, looked))
  } catch {
    // Who listens has no say in the call.
  }
}

/** One driver's turn: what it needs, and its runs. */
const serveBy = async (
  core: HostCore,
  routed: Routed,
  trail: Trail,
  scope: AsyncDisposableStack,
  before?: Before,
  mayRenew = true,
): Promise<Step<Judged>> => {
  const { tell } = routed
  tell({ type: "routed", driver: routed.driver.key, kind: routed.driver.contract.body.kind })
  const obtained = await obtain(core, routed)
  trail.mark("install", obtained.ok ? obtained.value : undefined)
  if (!obtained.ok) return obtained
  const transformed = await transform(obtained.value)
  if (!transformed.ok) return transformed
  const signedIn = await signIn(core, transformed.value)
  trail.mark("sign_in", signedIn.ok ? signedIn.value : undefined)
  if (!signedIn.ok) return signedIn
  const sealed = seal(core, signedIn.value)
  trail.mark("seal", sealed.ok ? sealed.value : undefined)
  if (!sealed.ok) return sealed
  tell({ type: "sealed", profileDigest: sealed.value.profileDigest })
  const { executables } = sealed.value.profile
  trail.backend = executables === undefined ? "none" : core.config.backend
  trail.ran = executables === undefined ? Promise.resolve({ started: false }) : whatRan(core.data, executables)
  const began = performance.now() - (before?.elapsedMs ?? 0)
  const judged = await run(core, sealed.value, scope, before)
  trail.mark("run", judged.ok ? judged.value : undefined)
  if (!judged.ok) return judged
  const timeIsLeft = performance.now() - began < judged.value.timeout.ms
  const renewed = await renew(core, judged.value, mayRenew ? (timeIsLeft ? "yes" : "late") : "done")
  trail.mark("renew", renewed.again ? undefined : renewed.judged)
  if (!renewed.again) return { ok: true, value: renewed.judged }
  const { attempt, homes, reached } = judged.value
  await attempt.exited.discard()
  const again = { elapsedMs: performance.now() - began, denied: attempt.denied, homes, reached }
  return await serveBy(core, obtained.value, trail, scope, again, false)
}

/** People said yes to a call by one driver. */
const isAnotherDriver = ({ approval, driver }: Routed): boolean =>
  approval.driver !== undefined && approval.driver !== driver.key
const anotherDriver: Failure = {
  ok: false,
  code: "conflict",
  message: "another driver would serve the call by now than the one that people said yes to; nothing was run",
  hint: "make the call again: people are asked anew",
  details: {},
}

/** The driver that serves the call, or, where it fails and the contract's retries allow it, the next one. */
const serve = async (
  core: HostCore,
  call: Authorized,
  trail: Trail,
  scope: AsyncDisposableStack,
  earlier?: Before,
): Promise<Step<Judged>> => {
  const began = performance.now()
  // Version checks are shared by all calls: one that is cancelled does not wait for them, and does not end them either.
  const routing = await unlessCancelled(findRoute(core, call), call.signal)
  const routed = "code" in routing ? routing : route(call, routing)
  trail.mark("route", routed.ok ? routed.value : undefined)
  if (!routed.ok) return routed
  if (isAnotherDriver(routed.value)) return anotherDriver
  // Where it runs once more for the workspace's sake alone, nothing is paid a second time.
  const priced = earlier === undefined ? await price(core, routed.value) : routed
  trail.mark("price", priced.ok ? priced.value : undefined)
  if (!priced.ok) return priced
  let judged = await serveBy(core, priced.value, trail, scope, earlier)
  for (;;) {
    const elapsedMs = performance.now() - began
    const passedOver = judged.ok ? passOver(judged.value, elapsedMs) : undefined
    if (!judged.ok || passedOver === undefined) return judged
    const others = core.registry
      .driversFor(call.tool)
      .filter(({ key }) => passedOver.every(({ driver }) => driver !== key))
    const more = await unlessCancelled(findRoute(core, call, others), call.signal)
    const next = "code" in more ? more : route(call, more)
    if (!next.ok || isAnotherDriver(next.value)) return judged
    const payable = await price(core, next.value)
    if (!payable.ok) return judged
    const { attempt, homes, reached } = judged.value
    await attempt.exited.discard()
    const before = { elapsedMs, denied: attempt.denied, homes, reached }
    judged = await serveBy(core, { ...payable.value, passedOver }, trail, scope, before)
  }
}

/** The held call knows its receipt; where that fails, the next host finds it in the log. */
const noteReceipt = async (holder: Holder | undefined, { call, receipt }: Envelope): Promise<void> => {
  if (receipt !== "none") await holder?.receipted(call, receipt).catch(() => undefined)
}

const performTold = async (
  core: HostCore,
  log: AuditLog,
  asked: Requested,
  holder: Holder | undefined,
): Promise<Envelope> => {
  const tell: Requested["tell"] = (event) => {
    if (event.type === "started") trail.started = true
    asked.tell(event)
  }
  const requested: Requested = { ...asked, tell }
  const trail = new Trail(requested)
  const scope = new AsyncDisposableStack()
  try {
    using _open = openCall(core.data, requested.call, String(requested.request.tool), whoseCall(requested.caller))
    const walked = await walk(core, requested, trail, scope, holder).catch((error: unknown) => broken(error, trail))
    const end = "tool" in trail.progress ? told(trail.progress.tool, walked, Date.now()) : walked
    const envelope = await record(core, log, trail, end)
    if (trail.held !== undefined) await noteReceipt(holder, envelope)
    return envelope
  } catch (error) {
    return await record(core, log, trail, broken(error, trail))
  } finally {
    await scope.disposeAsync().catch(() => undefined)
  }
}

/** `holder`: keeps calls that nobody was there to approve; without one nothing is held. `observe` hears what happens. */
export const perform = async (
  core: HostCore,
  log: AuditLog,
  requested: Omit<Requested, "tell" | "nesting">,
  { holder, observe }: { readonly holder?: Holder; readonly observe?: (event: CallEvent) => void } = {},
): Promise<Envelope> => {
  const events = new CallEvents(requested.call, observe)
  const nesting = nestingOf(requested.within, (within) => perform(core, log, within))
  const envelope = await performTold(core, log, { ...requested, nesting, tell: events.tell }, holder)
  const commit = commitOf(envelope.effects, envelope.ok ? undefined : envelope.error.details)
  events.tell({ type: "settled", ok: envelope.ok, commit, ...(envelope.ok ? {} : { code: envelope.error.code }) })
  events.flush()
  return envelope
}
