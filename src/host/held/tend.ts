/**
 * What time and crashes leave of held calls: broken-off decisions are finished, expired calls and remains thrown away.
 *
 * Guarantees: a decision whose process died counts as made exactly where its commit stands (a note says so once the
 * workspace is whole); one that was not is taken back, and the call is held as before. Nothing that a living process
 * works on is touched. Every claim has one receipt in the end, and so has the holding. Safe to run at any time, by any
 * number of processes, and again after a crash in its middle.
 */
import { FolderReplaced, LockWaitEnded, lookAt } from "../../sandbox/folder.ts"
import { hasFinished, notedCommits, txRootOf } from "../../sandbox/effects/index.ts"
import { callErrorOf } from "../failure.ts"
import { type ReasonCode, reasons } from "../reasons.ts"
import { isOver, now } from "../store/instant.ts"
import type { Claim, HeldCall, Store } from "../store/store.ts"
import type { CallError } from "../types.ts"
import type { HeldContext } from "./context.ts"
import { factsOf } from "./facts.ts"
import { heldOnDisk, isCallId, lockHeld } from "./files.ts"
import { holdDraft, recorded, type RecordedDecision } from "./receipts.ts"
import { endClaim, settleClaim, tidy } from "./settle-held.ts"

const errorFor = (claim: Claim): CallError => {
  switch (claim.decision) {
    case "deny":
      return callErrorOf({
        ok: false,
        code: "approval_denied",
        message: "a person said no to these effects",
        details: {},
      })
    case "expire":
      return callErrorOf({ ok: false, code: "approval_expired", message: "nobody answered in time", details: {} })
    case "approve":
      return callErrorOf({
        ok: false,
        code: "internal",
        message: "the host died while it committed; nothing was committed",
        details: { commit: "none" },
      })
  }
}

/** What the receipt of a decision says of how it ended, in words. */
const errorOf = (claim: Claim, verdict: string): CallError => {
  const usual = errorFor(claim)
  if (usual.code === verdict || !Object.hasOwn(reasons, verdict)) return usual
  const code = verdict as ReasonCode
  return callErrorOf({ ok: false, code, message: reasons[code].message, details: { commit: "none" } })
}

/** Make the workspace whole, so that notes tell; false where the folder is not in its place, or is in use for too long. */
export const makeWhole = async ({ core }: HeldContext, held: HeldCall, cancel: AbortSignal): Promise<boolean> => {
  const { folder } = factsOf(held)
  try {
    const there = lookAt(folder.path)
    if (there.ino !== folder.ino || there.birthNs !== folder.birthNs) return false
    await core.recover(there, cancel)
    return true
  } catch (error) {
    if (error instanceof FolderReplaced || error instanceof LockWaitEnded) return false
    if (["ENOENT", "ENOTDIR", "EACCES", "ELOOP"].includes((error as NodeJS.ErrnoException).code ?? "")) return false
    throw error
  }
}

const unknown = callErrorOf({
  ok: false,
  code: "internal",
  message: "the host died while it committed, and the workspace is not in its place",
  details: { commit: "unknown" },
})

/** Its receipt is written: the store follows. */
const follow = async (
  context: HeldContext,
  held: HeldCall,
  claim: Claim,
  told: RecordedDecision,
  committed: boolean,
) => {
  if (!told.final && !committed) return void (await (await context.store()).release(held.id, claim.number))
  const { receipt, verdict } = told
  const error = committed || verdict === "ok" ? undefined : errorOf(claim, verdict)
  const end = { committed, receipt, ...(error === undefined ? {} : { error }) }
  await settleClaim(context, held, claim, committed ? "ok" : verdict, end)
}

/** Finish or take back a decision whose process died. The caller holds the call's lock. */
export const resume = async (context: HeldContext, held: HeldCall, cancel: AbortSignal): Promise<void> => {
  const { claim } = held
  if (claim === undefined) return
  const whole = claim.decision !== "approve" || (await makeWhole(context, held, cancel))
  const committed = claim.decision === "approve" && hasFinished(txRootOf(context.core.data), held.id)
  const told = recorded(context.core.data, held.id).decisions.get(claim.number)
  if (told !== undefined) return follow(context, held, claim, told, committed || told.committed)
  if (committed) return void (await endClaim(context, held, claim, { committed, final: true, crashed: true }))
  if (whole) {
    const final = claim.decision !== "approve"
    await endClaim(context, held, claim, { error: errorFor(claim), committed, final, crashed: true })
    return
  }
  // It may stand or not; who knows the folder's new place may still find out, until its time is over.
  if (isOver(held.at, held.holdMs, now()))
    await endClaim(context, held, claim, { error: unknown, committed, final: true, crashed: true })
}

/** The call's own receipt, where its host died before it wrote one. */
export const receiptHolding = async ({ core, log, store }: HeldContext, held: HeldCall): Promise<HeldCall> => {
  if (held.receipt !== undefined) return held
  const found = recorded(core.data, held.id).hold
  const receipt = found ?? `sha256:${(await log.append(holdDraft(held)))?.hash ?? ""}`
  await (await store()).receipted(held.id, receipt)
  return { ...held, receipt }
}

const tendOne = async (context: HeldContext, store: Store, id: string, cancel: AbortSignal): Promise<void> => {
  using lock = lockHeld(context.core.data, id)
  if (lock === undefined) return
  const found = await store.held(id)
  if (found === undefined || found.state === "settled") return await tidy(context, id)
  const held = await receiptHolding(context, found)
  if (held.state === "deciding") await resume(context, held, cancel)
  const claimed = await store.claim(id, "expire", "caisson", now())
  if (claimed.ok)
    await endClaim(context, claimed.held, claimed.claim, {
      error: errorFor(claimed.claim),
      committed: false,
      final: true,
    })
}

/** Which calls need looking at: all that something is left of, on disk, in notes or in the store. */
const toTend = async ({ core }: HeldContext, store: Store): Promise<readonly string[]> => {
  const open = await store.heldList({ states: ["held", "deciding"] })
  const at = now()
  const idle = new Set(
    open
      .filter(
        ({ state, receipt, at: since, holdMs }) =>
          state === "held" && receipt !== undefined && !isOver(since, holdMs, at),
      )
      .map(({ id }) => id),
  )
  const left = [...open.map(({ id }) => id), ...heldOnDisk(core.data), ...notedCommits(txRootOf(core.data))]
  return [...new Set(left)].filter((id) => isCallId(id) && !idle.has(id))
}

/** One call that cannot be tended is in no other's way; the next host tries again. */
export const tend = async (context: HeldContext, cancel: AbortSignal): Promise<void> => {
  const store = await context.store()
  for (const id of await toTend(context, store)) {
    if (cancel.aborted) return
    try {
      await tendOne(context, store, id, cancel)
    } catch (error) {
      process.emitWarning(`the held call ${id} could not be tended: ${(error as Error).message}`)
    }
  }
}
