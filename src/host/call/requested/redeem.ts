/**
 * A call that needs a yes before it runs, where nobody is there to ask: it is put to people, and the same call, made again,
 * finds their answer.
 *
 * Guarantees: an answer is used once, by one call, and by none but the very same: another input, another driver, a contract
 * that was changed is another request. Whose yes counts is decided anew when it is used: one that was taken back, ran out,
 * or would not count any more releases nothing. Where the store cannot be had there is no yes.
 */
import { releasedBy, type UsedGrant } from "../../access/decide.ts"
import { accessPolicyOf } from "../../access/policy.ts"
import { giverOf, useOf } from "../admission/granted.ts"
import type { HostCore } from "../core.ts"
import type { Admitted } from "../steps.ts"
import { hostLimits, questionBounds } from "../../limits.ts"
import { now } from "../../store/instant.ts"
import { type AskedQuestion, type GrantRecord, type Store, StoreUnavailable } from "../../store/store.ts"
import { answerOf, isYesTo, type RequestedCall, requestOf, textOf } from "./request.ts"

type Redeemed =
  | { readonly is: "granted"; readonly grant: UsedGrant }
  | { readonly is: "denied"; readonly reason?: string }
  | { readonly is: "asked"; readonly id: string; readonly expires: string }
  | { readonly is: "not-asked"; readonly why: string }

/** What people say yes to: by its id, its digest, and whose call it is of. */
export interface Ballot {
  readonly tenant: string
  readonly user: string
  readonly tool: string
  /** by the id that the data folder issued */
  readonly workspace: string
  readonly request: { readonly id: string; readonly digest: string }
}

/** Those who said yes to it and whose yes is still good, as they were then. */
export const yesesTo = async (store: Store, { tenant, user, tool, workspace, request }: Ballot) => {
  const given = await store.grants({ tenant, covering: { user, tool, workspace } })
  return given.filter((grant) => isYesTo(grant, request)).map((grant) => ({ grant, person: giverOf(grant) }))
}

export const ballotOf = (question: AskedQuestion): Ballot | undefined => {
  const text = textOf(question)
  if (text === undefined) return undefined
  const { tenant, tool, id, digest } = question
  return { tenant, user: text.user, tool, workspace: text.workspaceId, request: { id, digest } }
}

const useAll = async (
  store: Store,
  tenant: string,
  grants: readonly GrantRecord[],
): Promise<readonly GrantRecord[] | undefined> => {
  const used: GrantRecord[] = []
  for (const { id } of grants) {
    const one = await store.useGrant(tenant, id, now())
    if (one === undefined) return undefined
    used.push(one)
  }
  return used
}

/** The ticket is taken by one call; then the yeses behind it have to hold. */
const use = async (
  core: HostCore,
  store: Store,
  call: Admitted,
  question: AskedQuestion,
): Promise<Redeemed | undefined> => {
  const taken = await store.takeAnswer(question.tenant, question.id)
  if (taken === undefined) return undefined
  const answer = answerOf(taken)
  if (answer.decision === "deny")
    return { is: "denied", ...(answer.reason === undefined ? {} : { reason: answer.reason }) }
  const { tool, action, caller } = call
  const deed = { tool, ...(action === undefined ? {} : { action }) }
  const ballot = ballotOf(taken)
  const people = ballot === undefined ? [] : await yesesTo(store, ballot)
  const chosen = releasedBy(accessPolicyOf(core.registry, core.config), caller, people, deed)
  const used =
    chosen &&
    (await useAll(
      store,
      question.tenant,
      chosen.map(({ grant }) => grant),
    ))
  const [first, ...beside] = used ?? []
  if (first === undefined) return undefined
  return {
    is: "granted",
    grant: { ...useOf(first), request: question.id, ...(beside.length === 0 ? {} : { beside: beside.map(useOf) }) },
  }
}

const redeem = async (core: HostCore, call: Admitted, wanted: RequestedCall): Promise<Redeemed> => {
  const store = await core.store()
  // The second round finds what another call left; there is always room for a third question.
  for (let round = 0; round < 3; round += 1) {
    const askedMs = Date.now()
    const expiresMs = askedMs + core.config.approvals.holdMs
    const request = requestOf(core.data, call, wanted, { askedMs, expiresMs })
    if (request.text.length > hostLimits.requestChars.value)
      return { is: "not-asked", why: "its input is too long to be shown to a person" }
    const question = await store.ask(request, questionBounds)
    if (question === undefined) return { is: "not-asked", why: "too many questions wait for a person already" }
    if (question.answer === undefined)
      return { is: "asked", id: question.id, expires: new Date(question.expiresMs).toISOString() }
    const used = await use(core, store, call, question)
    if (used !== undefined) return used
  }
  return { is: "not-asked", why: "it was answered for other calls" }
}

export const askBeforehand = async (core: HostCore, call: Admitted, wanted: RequestedCall): Promise<Redeemed> => {
  if (call.signal.aborted) return { is: "not-asked", why: "the call was cancelled" }
  // What a program asks for in the middle of a call is refused and over: nothing waits for an answer to it.
  if (call.within !== undefined) return { is: "not-asked", why: "another call's program asked for it" }
  if (core.config.approvals.holdMs === 0) return { is: "not-asked", why: "`approvals.hold_ms` is 0" }
  try {
    return await redeem(core, call, wanted)
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    return { is: "not-asked", why: error.message }
  }
}
