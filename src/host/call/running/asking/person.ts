/**
 * A tool whose answer is a person's: the question is put to whoever is there, else kept until a person answers it.
 *
 * Guarantees: whoever is asked on the spot sees the call's whole input; where it does not fit, the question is kept for a place
 * where it does. What a person answers fits the contract's output, or it is no answer. Whoever is at the other end of the
 * call answers only where their own yes counts; an agent never answers its own question. A question that nobody answered
 * while the call waited stays open for a while: asked again, the same call is given the answer, once.
 * Does not: judge what was answered.
 */
import { setTimeout as pause } from "node:timers/promises"
import { digestOf } from "../../../../manifest/values/digest.ts"
import { compileSchema } from "../../../../manifest/schema/json-schema.ts"
import { shown } from "../../../../manifest/values/diagnostics.ts"
import type { JsonValue } from "../../../../manifest/types.ts"
import { mayApprove } from "../../../access/decide.ts"
import { tenantOf } from "../../../access/caller.ts"
import { accessPolicyOf } from "../../../access/policy.ts"
import type { Desk } from "../../../drivers/kind.ts"
import type { Failure, Success } from "../../../failure.ts"
import { hostLimits, questionBounds } from "../../../limits.ts"
import { faultsText } from "../../../invoke/input-faults.ts"
import type { AskedQuestion } from "../../../store/store.ts"
import { actionOf } from "../../admission/find-tool.ts"
import type { HostCore } from "../../core.ts"
import type { Sealed } from "../../steps.ts"

interface Asking {
  readonly signal: AbortSignal
  /** what is left of the attempt's time */
  readonly leftMs: () => number
}

const LOOK_MS = 1000
/** What is left for the call to say that nobody answered. */
const LAST_MS = 2000

const checked = (sealed: Sealed, value: JsonValue): Success | Failure => {
  const compiled = compileSchema(sealed.tool.outputs)
  const result = compiled.ok ? compiled.validate(value) : undefined
  if (result?.ok === true) return { ok: true, value, notes: [] }
  return {
    ok: false,
    code: "output_invalid",
    message: result === undefined ? "the form cannot be used" : faultsText("the answer", result.errors),
    details: {},
  }
}

const unanswered = (question: AskedQuestion): Failure => ({
  ok: false,
  code: "approval_required",
  message: `a person has to answer what ${question.tool} asks, and nobody has so far`,
  hint: `have a person run \`caisson questions answer ${question.id}\`, then make the call again`,
  details: { question: question.id, expires: new Date(question.expiresMs).toISOString() },
})

/** With all of what it is about, before the tool's own words; undefined: there is too much of it. */
const wholeQuestion = ({ tool, input }: Sealed): string | undefined => {
  const about = JSON.stringify(input)
  if (about.length > hostLimits.questionChars.value / 2) return undefined
  return shown(`${shown(tool.name)}: ${about}. ${tool.description}`, hostLimits.questionChars.value)
}

/** Whoever made the call, where a person can be reached through it and their yes counts; undefined: nobody. */
const askedNow = async (core: HostCore, sealed: Sealed): Promise<Success | Failure | undefined> => {
  const { elicit, caller, tool } = sealed
  const message = wholeQuestion(sealed)
  if (elicit === undefined || message === undefined) return undefined
  const deed = { tool, ...actionOf(core.registry, tool) }
  if (!mayApprove(accessPolicyOf(core.registry, core.config), caller, deed)) return undefined
  const answer = await elicit({ message, schema: tool.outputs })
  if (answer.action === "accept") return checked(sealed, answer.content)
  if (answer.action === "cancel") return undefined
  return { ok: false, code: "approval_denied", message: "the person who was asked did not answer", details: {} }
}

export const askPerson = async (
  core: HostCore,
  sealed: Sealed,
  { signal, leftMs }: Asking,
  desk: Pick<Desk, "tell" | "note">,
): Promise<Success | Failure> => {
  const { tool, input, caller, user, call } = sealed
  const message = shown(`${tool.name}: ${tool.description}`, hostLimits.questionChars.value)
  const now = await askedNow(core, sealed)
  if (now !== undefined) return now
  const store = await core.store()
  const at = Date.now()
  const question = await store.ask(
    {
      tenant: tenantOf(caller),
      id: call,
      asker: user,
      actor: caller.actor,
      tool: `${tool.id}@${tool.major}`,
      digest: digestOf([tool.source.digest, input]),
      text: JSON.stringify({ message, input, form: tool.outputs }),
      askedMs: at,
      expiresMs: at + hostLimits.questionMs.value,
    },
    questionBounds,
  )
  if (question === undefined)
    return {
      ok: false,
      code: "overloaded",
      message: "too many questions wait for a person already",
      hint: "have some of them answered: `caisson questions` lists them",
      undone: true,
      details: {},
    }
  desk.tell({ type: "progress", value: { question: question.id, message } })
  for (;;) {
    const taken = await store.takeAnswer(question.tenant, question.id)
    if (taken?.answer !== undefined) {
      desk.note({ question: taken.id, answered_by: taken.answeredBy ?? "" })
      return checked(sealed, JSON.parse(taken.answer) as JsonValue)
    }
    if (signal.aborted || leftMs() < LAST_MS + LOOK_MS) return unanswered(question)
    await pause(LOOK_MS, undefined, { signal }).catch(() => undefined)
  }
}
