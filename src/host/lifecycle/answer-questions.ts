/**
 * What tools ask people: the questions that are open, and a person's answer to one.
 *
 * Guarantees: nobody of another tenant sees one. Whoever asked sees their own, an approver those of others. An answer counts
 * from whoever may approve that call: the asker only where their own yes counts, others only as approvers, and where a rule
 * names its signers only one of them. It fits the form, or is refused. Each answer is a line of the audit log, without the
 * answer itself. Whoever may not see a question gets the answer for one that is not there.
 */
import { compileSchema } from "../../manifest/schema/json-schema.ts"
import type { JsonObject, JsonValue } from "../../manifest/types.ts"
import { type Caller, isOperator, mayActForUser, subjectOf, tenantOf } from "../access/caller.ts"
import { mayApprove } from "../access/decide.ts"
import { accessPolicyOf } from "../access/policy.ts"
import { actionOf } from "../call/admission/find-tool.ts"
import type { HostCore } from "../call/core.ts"
import { callErrorOf, type Failure } from "../failure.ts"
import { hostLimits } from "../limits.ts"
import { textOf } from "../call/requested/request.ts"
import { faultsText } from "../invoke/input-faults.ts"
import type { EventDraft } from "../receipts/event.ts"
import { type AskedQuestion, StoreUnavailable } from "../store/store.ts"
import type { CallError, ListOptions, QuestionListing, QuestionsOfHost } from "../types.ts"

const refuse = (failure: Failure): { readonly ok: false; readonly error: CallError } => ({
  ok: false,
  error: callErrorOf(failure),
})
const nowhere = refuse({
  ok: false,
  code: "not_found",
  message: "there is no such question that is still open",
  hint: "`caisson questions` lists them",
  details: {},
})

const maySee = (caller: Caller, question: AskedQuestion): boolean =>
  question.tenant === tenantOf(caller) &&
  (isOperator(caller) ||
    (mayActForUser(caller) && (question.asker === subjectOf(caller) || caller.roles.includes("approver"))))

const listing = ({ id, tool, asker, text, askedMs, expiresMs }: AskedQuestion): QuestionListing => {
  const { message, input, form } = JSON.parse(text) as { message: string; input: JsonObject; form: JsonObject }
  return {
    id,
    tool,
    user: asker,
    message,
    input,
    form,
    asked: new Date(askedMs).toISOString(),
    expires: new Date(expiresMs).toISOString(),
  }
}

/** Why this caller's answer does not count; undefined where it does. */
const mayAnswer = (
  core: HostCore,
  caller: Caller,
  { asker, actor, tool: name }: AskedQuestion,
): Failure | undefined => {
  const isOwn = actor === caller.actor || asker === caller.actor
  const tool = core.registry.tool(name)
  const counts =
    caller.mayApprove &&
    (isOwn || caller.roles.includes("approver")) &&
    tool !== undefined &&
    mayApprove(accessPolicyOf(core.registry, core.config), caller, { tool, ...actionOf(core.registry, tool) })
  return counts
    ? undefined
    : {
        ok: false,
        code: "unauthorised",
        message: "this caller's answer does not count for that question",
        hint: "ask a person who may approve it",
        details: {},
      }
}

const unfit = (form: JsonObject, answer: JsonValue): Failure | undefined => {
  const compiled = compileSchema(form)
  const result = compiled.ok ? compiled.validate(answer) : undefined
  if (result?.ok === true && JSON.stringify(answer).length <= hostLimits.questionAnswerChars.value) return undefined
  return {
    ok: false,
    code: "input_invalid",
    message: result?.ok === false ? faultsText("the answer", result.errors) : "the answer cannot be taken",
    hint: "`caisson questions` shows the form that it has to fit",
    details: {},
  }
}

export const questionsOf = (
  core: HostCore,
  callerIn: (of: "list" | "answer", given: ListOptions) => Caller,
  record: (draft: EventDraft) => Promise<unknown>,
): QuestionsOfHost => {
  const seen = async (caller: Caller): Promise<readonly AskedQuestion[]> => {
    const store = await core.store()
    return (await store.asked(tenantOf(caller), Date.now())).filter(
      (question) => textOf(question) === undefined && maySee(caller, question),
    )
  }
  return {
    async list(options) {
      const caller = callerIn("list", options ?? {})
      return (await seen(caller)).map(listing)
    },
    async answer(id, answer, options) {
      const caller = callerIn("answer", options ?? {})
      try {
        const question = (await seen(caller)).find((each) => each.id === id)
        if (question === undefined) return nowhere
        const barred = mayAnswer(core, caller, question) ?? unfit(listing(question).form, answer)
        if (barred !== undefined) return refuse(barred)
        await record({
          actor: { id: caller.actor, role: isOperator(caller) ? "operator" : "approver" },
          action: "question.answered",
          subject: { kind: "call", ref: id },
          metadata: { tenant: question.tenant, user_id: question.asker, tool: question.tool },
        })
        const store = await core.store()
        const isTaken = await store.answerAsked(question.tenant, id, JSON.stringify(answer), caller.actor, Date.now())
        return isTaken ? { ok: true, value: undefined } : nowhere
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error
        return refuse({ ok: false, code: "internal", message: error.message, details: {} })
      }
    },
  }
}
