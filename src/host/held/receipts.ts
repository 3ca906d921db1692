/**
 * The evidence of a held call: one receipt of the holding, which is the call's own, and one of each decision about it.
 *
 * Guarantees: every claim leaves exactly one receipt, by whoever made it or by the host that found it broken off;
 * `recorded` finds the ones that a crash kept from being noted elsewhere. A decision's receipt names that of the holding.
 * Carries paths, codes, counts and digests, never a value.
 */
import type { Caller } from "../access/caller.ts"
import type { JsonObject } from "../../manifest/types.ts"
import { type EventDraft, parseEvent } from "../receipts/event.ts"
import { linesOfLog } from "../receipts/segments.ts"
import { tenantFact } from "../receipts/whose.ts"
import type { CallError } from "../types.ts"
import type { Claim, HeldCall } from "../store/store.ts"
import { expiresOf, factsOf, type HeldFacts, toolName } from "./facts.ts"

const subjectOf = (facts: HeldFacts): EventDraft["subject"] => {
  const path = facts.folder.path.toWellFormed()
  return { kind: "tool", ref: toolName(facts), ...(path.length > 0 && path.length <= 1024 ? { path } : {}) }
}

/** What the call's own receipt says of the holding, and a decision's once more. */
const heldRecord = (
  held: Pick<HeldCall, "id" | "at" | "holdMs" | "bytes">,
  { layer, tool, bound }: HeldFacts,
): JsonObject => ({
  id: held.id,
  expires: expiresOf(held),
  bytes: held.bytes,
  layer,
  ...(bound === undefined ? {} : { bound: { tool: tool.digest, ...bound } }),
})

export interface DecisionEnd {
  readonly error?: CallError
  readonly committed: boolean
  /** is the call settled with it */
  readonly final: boolean
  /** written by another host than the one that was deciding */
  readonly crashed?: boolean
  /** it is on record, and others are wanted still */
  readonly waits?: boolean
  /** the yeses that let it be committed, where a rule wanted several */
  readonly yeses?: readonly { readonly id: string; readonly by: string }[]
  /** why, in the words of who decided */
  readonly reason?: string
}

export const decisionDraft = (held: HeldCall, claim: Claim, end: DecisionEnd): EventDraft => {
  const facts = factsOf(held)
  const { error, committed, final, crashed, reason, waits, yeses } = end
  const commit = error?.details["commit"]
  return {
    actor: { id: claim.by, role: claim.decision === "expire" ? "host" : "approver" },
    action: claim.decision === "expire" ? "approval.expired" : "approval.decided",
    subject: subjectOf(facts),
    metadata: {
      call: held.id,
      ok: error === undefined,
      verdict: error?.code ?? "ok",
      ...(error === undefined ? {} : { class: error.class }),
      ...(commit === undefined ? {} : { details: { commit } }),
      ...(crashed === true ? { crashed } : {}),
      ...tenantFact(facts),
      user_id: facts.user,
      decision: {
        number: claim.number,
        answer: claim.decision,
        final,
        ...(waits === true ? { waits } : {}),
        ...(yeses === undefined ? {} : { yeses: yeses.map(({ id, by }) => ({ id, by })) }),
        ...(reason === undefined ? {} : { reason }),
        ...(held.receipt === undefined ? {} : { held_receipt: held.receipt }),
      },
      held: heldRecord(held, facts),
      effects_total: facts.effects,
      effects_committed: committed,
      ...(committed && error === undefined && facts.fires !== undefined ? { fired: [...facts.fires] } : {}),
    },
  }
}

interface RefusedAnswer {
  readonly call: string
  /** absent where whoever asked may not know of it, or there is none */
  readonly held: HeldCall | undefined
  readonly answer: "approve" | "deny"
  readonly by: Caller
  readonly error: CallError
}
/** An answer that did not count, or came when there was nothing to answer any more: nothing of the call was changed. */
export const refusedDraft = ({ call, held, answer, by, error }: RefusedAnswer): EventDraft => ({
  actor: { id: by.actor },
  action: "approval.refused",
  subject: held === undefined ? { kind: "call", ref: call } : subjectOf(factsOf(held)),
  metadata: {
    call,
    // Whoever is refused sees no call of another tenant's: what is said of theirs is their own tenant's.
    ...tenantFact(by),
    ok: false,
    verdict: error.code,
    class: error.class,
    decision: { answer, final: false, ...(held?.receipt === undefined ? {} : { held_receipt: held.receipt }) },
    ...(held === undefined ? {} : { user_id: factsOf(held).user, effects_total: factsOf(held).effects }),
    effects_committed: false,
  },
})

/** The receipt of a holding whose host died before it wrote the call's own. */
export const holdDraft = (held: HeldCall): EventDraft => {
  const facts = factsOf(held)
  return {
    actor: { id: facts.user },
    action: "tool.invoked",
    subject: subjectOf(facts),
    metadata: {
      call: held.id,
      ok: false,
      verdict: "approval_required",
      class: "needs-action",
      crashed: true,
      ...tenantFact(facts),
      user_id: facts.user,
      held: heldRecord(held, facts),
      effects_total: facts.effects,
      effects_committed: false,
    },
  }
}

export interface RecordedDecision {
  readonly verdict: string
  readonly committed: boolean
  readonly final: boolean
  readonly receipt: string
}
interface Recorded {
  /** hash of the call's own receipt */
  readonly hold?: string
  /** by the claim's number */
  readonly decisions: ReadonlyMap<number, RecordedDecision>
}

/** What the log says of a call. Reads all of it: for what a crash left open. */
export const recorded = (data: string, call: string): Recorded => {
  const decisions = new Map<number, RecordedDecision>()
  let hold: string | undefined
  for (const { text, terminated } of linesOfLog(data)) {
    if (!terminated || !text.includes(`"call":"${call}"`)) continue
    const parsed = parseEvent(text)
    if (!parsed.ok || parsed.event.metadata?.["call"] !== call) continue
    const { action, metadata, hash } = parsed.event
    const receipt = `sha256:${hash}`
    if (action === "tool.invoked") hold ??= receipt
    const decision = metadata["decision"] as JsonObject | undefined
    if (typeof decision?.["number"] === "number")
      decisions.set(decision["number"], {
        verdict: typeof metadata["verdict"] === "string" ? metadata["verdict"] : "internal",
        committed: metadata["effects_committed"] === true,
        final: decision["final"] === true,
        receipt,
      })
  }
  return { ...(hold === undefined ? {} : { hold }), decisions }
}
