/**
 * Step 6: run the program, and judge each run, until one stands.
 *
 * Guarantees: a failed attempt is repeated only where the contract's rules allow it (C-23), never after a violation,
 * never beyond the call's own deadline, and each attempt starts from the workspace as it was, and from
 * the driver's home as the attempt before left it. What earlier attempts were denied stays in the account.
 */
import { setTimeout as pause } from "node:timers/promises"
import { FolderReplaced, LockWaitEnded } from "../../sandbox/folder.ts"
import { callErrorOf, type Failure } from "../failure.ts"
import { afterFailure } from "../invoke/retry.ts"
import type { Denial } from "../../sandbox/backend.ts"
import { attempt } from "./running/attempt.ts"
import { cancelled } from "./running/cancelled.ts"
import type { HostCore } from "./core.ts"
import { judge } from "./judge.ts"
import { onTape } from "./tape/call-tape.ts"
import { keepHome, withHomes } from "./running/keep-home.ts"
import { mergeReached } from "./running/stopped.ts"
import type { Judged, Sealed, Step } from "./steps.ts"

/** No program, and no look at the workspace: such a call waits for nobody's commit, and needs no sandbox to be had. */
const touchesNothing = ({ executables, view, write, home }: Sealed["profile"]): boolean =>
  executables === undefined && view.read.length === 0 && write.length === 0 && home === undefined

/** What a crashed commit left is finished or undone first; undefined when the workspace is whole. */
const makeWhole = async (core: HostCore, { folder, signal, profile }: Sealed): Promise<Failure | undefined> => {
  if (touchesNothing(profile)) return undefined
  try {
    await core.recover(folder.identity, signal)
    return undefined
  } catch (error) {
    if (signal.aborted) return cancelled
    if (!(error instanceof FolderReplaced) && !(error instanceof LockWaitEnded)) throw error
    return { ok: false, code: "conflict", message: `${error.message}; nothing was run`, details: {} }
  }
}

/** What drivers before this one used of the call's time, and what became of them. */
export type Before = Pick<Judged, "homes" | "reached"> & {
  readonly elapsedMs: number
  readonly denied: readonly Denial[]
}
const first: Before = { elapsedMs: 0, denied: [], homes: [], reached: [] }

export const run = async (
  core: HostCore,
  sealed: Sealed,
  scope: AsyncDisposableStack,
  before: Before = first,
): Promise<Step<Judged>> => {
  const unfit = await makeWhole(core, sealed)
  if (unfit !== undefined) return unfit
  const started = performance.now() - before.elapsedMs
  let { denied, homes, reached }: Omit<Before, "elapsedMs"> = before
  sealed.tape?.begin(sealed.secrets.map(({ value }) => value.reveal()))
  for (let attempts = 1; ; attempts += 1) {
    if (sealed.signal.aborted) return cancelled
    const left = sealed.timeout.ms - (performance.now() - started)
    const { wallMs: most } = sealed.profile.limits
    const isFirst = attempts === 1 && before === first
    const wallMs = isFirst ? most : Math.max(1, Math.floor(Math.min(most, left)))
    await using own = new AsyncDisposableStack()
    sealed.tell({ type: "started", attempt: attempts })
    const made = await attempt(core, sealed, { wallMs, earlier: denied, scope: own })
    if (!made.ok) return made
    homes = [...homes, ...(await keepHome(made.value.exited, made.value.home))]
    reached = mergeReached(reached, made.value.reached)
    const judged = onTape(
      keepServer(withHomes(await judge(core, { ...sealed, attempt: made.value, attempts, homes, reached }))),
    )
    const again = nextTry(judged, performance.now() - started)
    if (again === undefined) {
      scope.use(own.move())
      return { ok: true, value: judged }
    }
    denied = made.value.denied
    await own.disposeAsync()
    await pause(again, undefined, { signal: sealed.signal }).catch(() => undefined)
  }
}

/** A server stays where the call is well, or failed in the server's own words; one whose call was refused does not. */
const keepServer = (judged: Judged): Judged => {
  const { verdict, attempt: made } = judged
  const { kept, ...rest } = made
  if (kept === undefined || !(verdict.ok || (!made.outcome.ok && verdict.code === made.outcome.code))) return judged
  kept.keep()
  return { ...judged, attempt: { ...rest, facts: kept.facts } }
}

/** The pause before another attempt, or undefined when this one stands. */
const nextTry = (judged: Judged, elapsedMs: number): number | undefined => {
  const { verdict, attempt: made, tool, retry, attempts, timeout, command, nesting } = judged
  if (nesting?.mayHaveChanged === true || judged.tape !== undefined) return undefined
  if (verdict.ok || made.outcome.ok || verdict.code !== made.outcome.code) return undefined
  const asked = verdict.details["retry_after_ms"]
  const after = afterFailure({
    tool,
    rule: retry,
    attempt: attempts,
    error: callErrorOf(verdict),
    elapsedMs,
    timeoutMs: timeout.ms,
    idempotencyKey: command.run === "hosted" && command.repeatable === true,
    ...(typeof asked === "number" ? { askedMs: asked } : {}),
  })
  return after.retry ? after.delayMs : undefined
}
