/**
 * Requests to make a call, as people are told of them, and their answers.
 *
 * Guarantees: shown to those whom the call's own effects would be shown to; whoever may not see one gets the answer for one
 * that is not there. A yes counts from who may approve that call, and where a rule wants several, of so many people, none of
 * whom made it; the first no ends it. An answer is on record before it holds. It lets the very same call be made once, until
 * the request's time is over. Nothing is run here.
 */
import { type Caller, isOperator, mayActForUser, mayName, subjectOf, tenantOf } from "../access/caller.ts"
import { mayVote } from "../access/decide.ts"
import type { Deed } from "../access/grants.ts"
import { accessPolicyOf } from "../access/policy.ts"
import { boundDeed } from "../call/admission/find-tool.ts"
import type { HostCore } from "../call/core.ts"
import { callErrorOf, type Failure } from "../failure.ts"
import type { JsonObject } from "../../manifest/types.ts"
import type { EventDraft } from "../receipts/event.ts"
import type { AuditLog } from "../receipts/log.ts"
import { tenantFact } from "../receipts/whose.ts"
import type { AskedQuestion, Store } from "../store/store.ts"
import type { Envelope, HeldApproval, HeldApprovalDetail } from "../types.ts"
import { ballotOf } from "../call/requested/redeem.ts"
import { type RequestText, textOf } from "../call/requested/request.ts"
import { mayAnswer, noSigner } from "./deciders.ts"
import { approvedAlready, countYes, takeBackAll, waiting } from "./yeses.ts"

interface Context {
  readonly core: HostCore
  readonly log: AuditLog
  store(): Promise<Store>
}
interface Asked {
  readonly id: string
  readonly decision: "approve" | "deny"
  readonly caller: Caller
  readonly reason?: string
}
interface Found {
  readonly question: AskedQuestion
  readonly text: RequestText
}

const maySee = (caller: Caller, { question, text }: Found): boolean =>
  question.tenant === tenantOf(caller) &&
  (isOperator(caller) ||
    (mayActForUser(caller) &&
      (question.asker === subjectOf(caller) || caller.roles.includes("approver")) &&
      mayName(caller, text.workspace)))

const openTo = async (store: Store, caller: Caller): Promise<readonly Found[]> =>
  (await store.asked(tenantOf(caller), Date.now())).flatMap((question) => {
    const text = textOf(question)
    return text !== undefined && maySee(caller, { question, text }) ? [{ question, text }] : []
  })

const summaryOf = ({ question, text }: Found): HeldApproval => ({
  id: question.id,
  about: "call",
  tool: question.tool,
  driver: text.driver,
  user: text.user,
  workspace: text.workspace,
  approval: text.approval,
  held: new Date(question.askedMs).toISOString(),
  expires: new Date(question.expiresMs).toISOString(),
  changes: 0,
  bytes: 0,
})

export const listRequests = async (store: Store, caller: Caller): Promise<readonly HeldApproval[]> =>
  (await openTo(store, caller)).map(summaryOf)

export const showRequest = async (
  store: Store,
  caller: Caller,
  id: string,
): Promise<HeldApprovalDetail | undefined> => {
  const found = (await openTo(store, caller)).find(({ question }) => question.id === id)
  if (found === undefined) return undefined
  const { text } = found
  return {
    ...summaryOf(found),
    intact: true,
    mutates: text.mutates,
    effects: [],
    denied: [],
    content: [],
    message: text.message,
    input: text.input,
    context: text.context,
    ...(text.cost === undefined ? {} : { cost: text.cost }),
  }
}

const fail = (code: Failure["code"], message: string, hint?: string): Failure => ({
  ok: false,
  code,
  message,
  details: {},
  ...(hint === undefined ? {} : { hint }),
})
const decidedAlready = fail(
  "conflict",
  "it was decided already",
  "`caisson receipts --call ID` shows who decided, and how",
)

/** What would be done, by the contract that people were told of; undefined where that is not registered any more. */
const deedOf = ({ registry }: HostCore, { question, text }: Found): Deed | undefined =>
  boundDeed(registry, question.tool, text.tool)

/** Why this caller's answer does not count; undefined where it does. */
const barred = (core: HostCore, { caller, decision }: Asked, found: Found): Failure | undefined => {
  const { question, text } = found
  const refused = mayAnswer(caller, { actor: question.actor, user: text.user })
  if (refused !== undefined || decision === "deny") return refused
  const deed = deedOf(core, found)
  if (deed === undefined)
    return fail(
      "conflict",
      `${question.tool} is another one by now, or not registered here`,
      "let the call be made again",
    )
  const policy = accessPolicyOf(core.registry, core.config)
  return mayVote(policy, { ...caller, mayApprove: true }, deed, question.actor) ? undefined : noSigner
}

const draftOf = (
  { id, decision, caller, reason }: Asked,
  { question, text }: Found,
  failure?: Failure,
): EventDraft => ({
  actor: { id: caller.actor, role: "approver" },
  action: failure === undefined ? "approval.decided" : "approval.refused",
  subject: { kind: "tool", ref: question.tool },
  metadata: {
    call: id,
    ...tenantFact(caller),
    ok: failure === undefined && decision === "approve",
    verdict: failure?.code ?? (decision === "approve" ? "ok" : "approval_denied"),
    ...(failure === undefined ? {} : { class: callErrorOf(failure).class }),
    user_id: text.user,
    decision: { answer: decision, about: "call", ...(reason === undefined ? {} : { reason }) },
    request: { digest: question.digest, tool: text.tool.digest, driver: text.driver },
    effects_committed: false,
  },
})

const envelope = ({ question, text }: Found, receipt: string, end: JsonObject | Failure): Envelope => {
  const base = { call: question.id, driver: text.driver, effects: [], denied: [], receipt }
  return "code" in end && end["ok"] === false
    ? { ok: false, error: callErrorOf(end as Failure), ...base }
    : { ok: true, value: end as JsonObject, ...base }
}

const approve = async (core: HostCore, store: Store, asked: Asked, found: Found): Promise<JsonObject | Failure> => {
  const { question, text } = found
  const { caller, reason } = asked
  const [deed, ballot] = [deedOf(core, found), ballotOf(question)]
  if (deed === undefined || ballot === undefined) return decidedAlready
  const vote = {
    ...ballot,
    path: text.workspace,
    expiresMs: question.expiresMs,
    maker: question.actor,
    caller,
    ...(reason === undefined ? {} : { reason }),
  }
  const counted = await countYes(core, store, vote, deed)
  if ("code" in counted) return counted
  const { yes, released } = counted
  if (yes === undefined) return approvedAlready
  const takeBack = async (): Promise<Failure> => {
    await store.revokeGrant(yes.tenant, yes.id, Date.now())
    return decidedAlready
  }
  if (released === undefined) {
    const isOpen = (await store.asked(question.tenant, Date.now())).some(({ id }) => id === question.id)
    return isOpen ? waiting : takeBack()
  }
  const answer = JSON.stringify({ decision: "approve" })
  if (!(await store.answerAsked(question.tenant, question.id, answer, caller.actor, Date.now()))) return takeBack()
  return { approved: true, next: "make the same call again", until: new Date(question.expiresMs).toISOString() }
}

const deny = async (store: Store, { caller, reason }: Asked, { question }: Found): Promise<Failure> => {
  const answer = JSON.stringify({ decision: "deny", ...(reason === undefined ? {} : { reason }) })
  if (!(await store.answerAsked(question.tenant, question.id, answer, caller.actor, Date.now()))) return decidedAlready
  const ballot = ballotOf(question)
  if (ballot !== undefined) await takeBackAll(store, ballot)
  return fail("approval_denied", "a person said no to this call; nothing was run")
}

/** Undefined: this caller is told of no such request. */
export const decideRequest = async (context: Context, asked: Asked): Promise<Envelope | undefined> => {
  const { core, log } = context
  const store = await context.store()
  const found = (await openTo(store, asked.caller)).find(({ question }) => question.id === asked.id)
  if (found === undefined) return undefined
  const refused = barred(core, asked, found)
  const event = await log.append(draftOf(asked, found, refused))
  const receipt = `sha256:${event?.hash ?? ""}`
  if (refused !== undefined) return envelope(found, receipt, refused)
  const end = asked.decision === "deny" ? await deny(store, asked, found) : await approve(core, store, asked, found)
  // Somebody else was quicker, or there was no room for it: that it did not count is on record too.
  if ("code" in end && end["code"] !== "approval_denied") await log.append(draftOf(asked, found, end as Failure))
  return envelope(found, receipt, end)
}
