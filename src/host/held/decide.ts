/**
 * A person's answer to a held call: exactly that layer is committed, or none of it.
 *
 * Guarantees: of several who decide at once, one does, across processes; the others are told. The answer counts only from
 * who may give it, in time, and for a workspace that this host would admit now. A layer that is not what was held, a
 * workspace that changed underneath or is another folder: nothing is committed. Every answer that was taken leaves a
 * receipt that names the call's own. Where a rule wants several people, each one's yes is to that very layer, and is kept
 * until they are enough; the first no ends it.
 */
import type { Caller } from "../access/caller.ts"
import { keptReason } from "../call/judging/effects.ts"
import { openWorkspace } from "../call/admission/workspace.ts"
import { callErrorOf, type Failure } from "../failure.ts"
import { hasFinished, txRootOf } from "../../sandbox/effects/index.ts"
import type { HeldCommitResult } from "../../sandbox/layers/held.ts"
import { digestOf } from "../../manifest/values/digest.ts"
import type { Ballot } from "../call/requested/redeem.ts"
import { now } from "../store/instant.ts"
import { type ClaimResult, type HeldCall, type Store, StoreUnavailable } from "../store/store.ts"
import type { Envelope } from "../types.ts"
import type { HeldContext } from "./context.ts"
import { decideRequest } from "./requests.ts"
import { maySee, mayDecide, wantsOthers } from "./deciders.ts"
import { expiresOf, factsOf, isDamaged, toolName } from "./facts.ts"
import { type HeldAnswer, folderOf, isCallId, lockHeld, readAnswer } from "./files.ts"
import { refusedDraft } from "./receipts.ts"
import { finalEnvelope } from "./final.ts"
import { endClaim } from "./settle-held.ts"
import { makeWhole, receiptHolding, resume } from "./tend.ts"
import { approvedAlready, countYes, takeBackAll, waiting } from "./yeses.ts"

type Answer = "approve" | "deny"

const fail = (
  code: Failure["code"],
  message: string,
  more: Partial<Pick<Failure, "hint" | "retryable" | "details">> = {},
): Failure => ({ ok: false, code, message, details: {}, ...more })

const noSuchCall = (id: string): Failure =>
  fail("not_found", `there is no held call ${isCallId(id) ? id : "of that name"}`, {
    hint: "`caisson approvals` lists those that wait for an answer",
  })

const notClaimed = (id: string, claimed: Extract<ClaimResult, { ok: false }>): Failure => {
  if (claimed.why === "absent") return noSuchCall(id)
  const { held } = claimed
  if (claimed.why === "settled")
    return fail("conflict", `the call was decided already: ${held.outcome?.verdict ?? "unknown"}`, {
      hint: `\`caisson receipts --call ${id}\` shows who decided, and how`,
      retryable: false,
      details: { verdict: held.outcome?.verdict ?? "unknown", committed: held.outcome?.committed ?? false },
    })
  if (claimed.why === "expired") return expired(held)
  return busy
}

const busy = fail("conflict", "another decision about this call is under way", { hint: "wait for it, then look again" })
const expired = (held: HeldCall): Failure =>
  fail("approval_expired", `the call was held until ${expiresOf(held)}; its effects are gone`, {
    details: { expires: expiresOf(held) },
  })

interface Ended {
  readonly failure?: Failure
  readonly committed: boolean
  readonly final: boolean
}

const endOf = (result: HeldCommitResult): Ended => {
  if (result.ok) return { committed: true, final: true }
  switch (result.reason) {
    case "conflict":
      return {
        committed: false,
        final: true,
        failure: fail("conflict", `the workspace changed underneath the call: ${result.paths.slice(0, 5).join(", ")}`, {
          details: { paths: result.paths.slice(0, 20), total: result.paths.length },
        }),
      }
    case "replaced":
      return {
        committed: false,
        final: false,
        failure: fail("conflict", `${result.message}; nothing was committed, and the call is held on`, {
          hint: "put the folder back in its place and approve again, or deny the call",
          retryable: false,
        }),
      }
    case "altered":
      return {
        committed: false,
        final: true,
        failure: fail("commit_failed", `${result.message}: nothing was committed, and the held call is thrown away`, {
          hint: "look for who writes in the data folder, then run the call again",
          retryable: false,
        }),
      }
    case "failed":
      return {
        committed: false,
        final: false,
        failure: fail("commit_failed", `the effects could not be committed: ${result.message}; the call is held on`, {
          hint: "free disk space or mend permissions, then approve it again",
        }),
      }
    case "unknown":
      return {
        committed: false,
        final: false,
        failure: fail("internal", `whether the effects were committed is not known: ${result.message}`, {
          hint: "run `caisson approvals`: it finds out",
          retryable: false,
          details: { commit: "unknown" },
        }),
      }
  }
}

const cancelled: Ended = {
  committed: false,
  final: false,
  failure: fail("cancelled", "the decision was cancelled; nothing was committed, and the call is held on"),
}

/** May this host still write there, and to those paths? */
const unfit = ({ core }: HeldContext, caller: Caller, held: HeldCall, answer: HeldAnswer): Failure | undefined => {
  const admitted = openWorkspace(core, caller, factsOf(held).folder.path)
  if (!admitted.ok) return admitted
  using _folder = admitted.value.folder
  const { kept } = admitted.value
  const own = answer.effects.find(
    ({ path, from }) =>
      keptReason(kept, path) !== undefined || (from !== undefined && keptReason(kept, from) !== undefined),
  )
  return own === undefined
    ? undefined
    : fail("policy_violation", `the host uses ${own.path} by now; nothing was committed, and the call is held on`)
}

const commit = async (
  context: HeldContext,
  caller: Caller,
  held: HeldCall,
  answer: HeldAnswer | undefined,
  cancel: AbortSignal,
): Promise<Ended> => {
  const { core } = context
  if (answer === undefined) {
    const what = isDamaged(held)
      ? "what was remembered of the call is damaged"
      : "what the call answered is not what was held"
    return endOf({ ok: false, reason: "altered", message: what })
  }
  const { folder, layer } = factsOf(held)
  const refused = unfit(context, caller, held, answer)
  if (refused !== undefined) return { committed: false, final: false, failure: refused }
  if (!(await makeWhole(context, held, cancel)))
    return cancel.aborted
      ? cancelled
      : endOf({
          ok: false,
          reason: "replaced",
          message: `the folder ${folder.path} was moved or replaced, or is in use`,
        })
  const backend = await core.backend()
  const written = await backend.commitHeld({ at: folderOf(core.data, held.id), digest: layer, name: held.id }, cancel)
  if (!written.ok && written.reason === "failed" && cancel.aborted) return cancelled
  if (written.ok || written.reason !== "unknown") return endOf(written)
  // Whoever wrote it died over it: once the workspace is whole again, a note says which it was.
  if (!(await makeWhole(context, held, cancel))) return endOf(written)
  return hasFinished(txRootOf(core.data), held.id) ? endOf({ ok: true }) : endOf({ ...written, reason: "failed" })
}

const envelopeOf = (held: HeldCall | undefined, id: string, failure: Failure): Envelope => ({
  ok: false,
  error: callErrorOf(failure),
  call: held?.id ?? (isCallId(id) ? id : "none"),
  ...(held === undefined ? {} : { driver: factsOf(held).driver }),
  effects: [],
  denied: [],
  receipt: "none",
})

interface Asked {
  readonly id: string
  readonly decision: Answer
  readonly caller: Caller
  /** why, for the receipt */
  readonly reason?: string
}
/**
 * Refused, with evidence of who was. A call that is not told of and one that is not there leave the same, so that neither
 * answer nor receipt tells them apart. Where the log cannot be written it is refused all the same.
 */
const refuse = async (
  { log }: HeldContext,
  { id, decision, caller }: Asked,
  held: HeldCall | undefined,
  failure: Failure,
): Promise<Envelope> => {
  const envelope = envelopeOf(held, id, failure)
  try {
    const answer = { call: id, held, answer: decision, by: caller, error: callErrorOf(failure) }
    const event = await log.append(refusedDraft(answer))
    return { ...envelope, receipt: `sha256:${event?.hash ?? ""}` }
  } catch {
    return envelope
  }
}

/** A yes is to this layer and to what led to it. */
const ballotOf = (held: HeldCall): Ballot => {
  const { user, tool, bound, layer, answer } = factsOf(held)
  return {
    tenant: held.tenant,
    user,
    tool: toolName(factsOf(held)),
    workspace: held.workspace,
    request: { id: held.id, digest: digestOf(["effects", tool.digest, bound ? { ...bound } : null, layer, answer]) },
  }
}

/** Nobody takes it for the call's own end, which it is not. */
const waitsForOthers = fail(
  "approval_required",
  "this yes is on record; a rule wants those of others too, and nothing was committed yet",
  { hint: "others whose approval it needs answer the same id", retryable: false, details: waiting },
)

interface Yeses {
  /** enough of them; absent: nobody else is wanted */
  readonly yeses?: readonly { readonly id: string; readonly by: string }[]
}
/** Whether the effects may be committed now, or this person waits for others. */
const releasing = async (
  { core }: HeldContext,
  store: Store,
  { caller, reason }: Asked,
  held: HeldCall,
): Promise<Yeses | Failure> => {
  const facts = factsOf(held)
  const deed = wantsOthers(core, caller, facts)
  if (deed === undefined) return {}
  const vote = {
    ...ballotOf(held),
    path: facts.folder.path,
    expiresMs: held.at.wallMs + held.holdMs,
    maker: facts.actor,
    caller,
    ...(reason === undefined ? {} : { reason }),
  }
  const counted = await countYes(core, store, vote, deed)
  if ("code" in counted) return counted
  if (counted.released !== undefined) return { yeses: counted.released.map(({ id, facts: { by } }) => ({ id, by })) }
  return counted.yes === undefined ? approvedAlready : waitsForOthers
}

/** Yeses to what is settled are of no use to anybody; where they cannot be taken back, their time runs out. */
const forgetYeses = async (store: Store, held: HeldCall): Promise<void> => {
  try {
    await takeBackAll(store, ballotOf(held))
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
  }
}

const decideLocked = async (
  context: HeldContext,
  { id, decision, caller, reason }: Asked,
  cancel: AbortSignal,
): Promise<Envelope> => {
  const store = await context.store()
  const found = await store.held(id)
  if (found === undefined) return refuse(context, { id, decision, caller }, undefined, noSuchCall(id))
  // The lock is ours, so a claim that is there was left by a process that died.
  const noted = await receiptHolding(context, found)
  if (noted.state === "deciding") await resume(context, noted, cancel)
  const claimed = await store.claim(id, decision, caller.actor, now())
  if (!claimed.ok) return refuse(context, { id, decision, caller }, found, notClaimed(id, claimed))
  const { held, claim } = claimed
  const answer = readAnswer(context.core.data, id, factsOf(held).answer)
  const why = reason === undefined ? {} : { reason }
  const released = decision === "deny" ? {} : await releasing(context, store, { id, decision, caller, ...why }, held)
  const ended: Ended =
    "code" in released
      ? { committed: false, final: false, failure: released }
      : decision === "deny"
        ? {
            committed: false,
            final: true,
            failure: fail("approval_denied", "a person said no to these effects; nothing was committed"),
          }
        : await commit(context, caller, held, answer, cancel).catch((error: unknown) =>
            endOf({ ok: false, reason: "failed", message: error instanceof Error ? error.message : String(error) }),
          )
  const error = ended.failure === undefined ? undefined : callErrorOf(ended.failure)
  const { committed, final } = ended
  const settled = await endClaim(context, held, claim, {
    committed,
    final,
    ...(error === undefined ? {} : { error }),
    ...(released === waitsForOthers ? { waits: true } : {}),
    ...("yeses" in released && committed ? { yeses: released.yeses } : {}),
    ...why,
  })
  if (final) await forgetYeses(store, held)
  const failed = settled.error
  return finalEnvelope(held, answer, {
    committed,
    receipt: settled.receipt,
    ...(failed === undefined ? {} : { error: failed }),
  })
}

export const decide = async (context: HeldContext, asked: Asked, cancel: AbortSignal): Promise<Envelope> => {
  const { id, decision, caller } = asked
  if (!isCallId(id)) return envelopeOf(undefined, id, noSuchCall(id))
  try {
    const found = await (await context.store()).held(id)
    const requested = found === undefined ? await decideRequest(context, asked) : undefined
    if (requested !== undefined) return requested
    if (found === undefined || !maySee(caller, found)) return await refuse(context, asked, undefined, noSuchCall(id))
    // Before the lock is taken: who may not decide is in nobody's way who does.
    const barred = mayDecide(context.core, caller, factsOf(found), decision === "approve")
    if (barred !== undefined) return await refuse(context, asked, found, barred)
    using lock = lockHeld(context.core.data, id)
    return lock === undefined ? await refuse(context, asked, found, busy) : await decideLocked(context, asked, cancel)
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    const again = error.kind === "busy" || error.kind === "unreachable" || error.kind === "full"
    return envelopeOf(undefined, id, fail("internal", error.message, { hint: error.fix, retryable: again }))
  }
}
