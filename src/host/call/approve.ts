/**
 * Asking for a yes, before the run or about the effects: first of what was granted beforehand, then of a person.
 *
 * Guarantees: the answer holds for exactly what was shown: effects are asked about while their layer waits, with every
 * process of the call gone, and a yes commits that layer and no other. No answer in time, a cancelled call or a question
 * that fails is never a yes. A grant is used where it answers, once for all of a call; its yes covers whatever the call
 * did within its contract.
 * Assumes: whoever asks shows the question as it is.
 */
import { shown } from "../../manifest/values/diagnostics.ts"
import type { ApprovalQuestion } from "../types.ts"
import { hostLimits } from "../limits.ts"
import type { Failure } from "../failure.ts"
import { changesOf, lookBounds } from "../diffs/changes.ts"
import { debitRules } from "./admission/debit.ts"
import { takeGrant } from "./admission/granted.ts"
import type { Approval, UsedGrant } from "../access/decide.ts"
import { askBeforehand } from "./requested/redeem.ts"
import type { RequestedCall } from "./requested/request.ts"
import { authorize } from "./authorize.ts"
import { costOf } from "./admission/cost.ts"
import type { HostCore } from "./core.ts"
import { findRoute, refusedRoute } from "./route.ts"
import { unlessCancelled } from "./running/cancelled.ts"
import { tellDenials } from "./judging/denials.ts"
import type { Admitted, Authorized, Judged, Requested, Step } from "./steps.ts"

type Answer = "yes" | "no" | "none" | "cancelled"

export const answerTo = async (
  { ask, signal }: Pick<Requested, "ask" | "signal">,
  question: Omit<ApprovalQuestion, "signal">,
): Promise<Answer> => {
  if (ask === undefined) return "none"
  if (signal.aborted) return "cancelled"
  const moot = AbortSignal.any([signal, AbortSignal.timeout(hostLimits.approvalMs.value)])
  const given = Promise.withResolvers<Answer>()
  const stop = (): void => given.resolve(signal.aborted ? "cancelled" : "none")
  moot.addEventListener("abort", stop, { once: true })
  try {
    Promise.resolve(ask({ ...question, signal: moot })).then(
      (yes) => given.resolve(yes === undefined ? "none" : yes === true ? "yes" : "no"),
      (error: unknown) => given.reject(error instanceof Error ? error : new Error(String(error))),
    )
    return await given.promise
  } finally {
    moot.removeEventListener("abort", stop)
  }
}

export const cancelled: Failure = {
  ok: false,
  code: "cancelled",
  message: "the call was cancelled while a person was asked; nothing was committed",
  details: {},
}
export const denied = (what: string, asked: Failure): Failure => ({
  ok: false,
  code: "approval_denied",
  message: `a person said no to ${what}; nothing was committed`,
  details: asked.details,
})

/** How somebody who may approve lets exactly this tool be called there, once. */
const grantIt = ({ tool, caller, request }: Admitted): string | undefined =>
  request.workspace === undefined
    ? undefined
    : `somebody who may approve gives a yes beforehand, with \`caisson grants create --tool ${tool.id} --user ${shown(caller.user)} --workspace ${shown(request.workspace, 400)} --uses 1 --days 1\` or at /v1/grants of the daemon; then make the call again, or run it with --yes`

/**
 * What people said who were asked about this very call: their yes, with the driver that they were told of, or why there
 * is none.
 */
export const putToPeople = async (
  core: HostCore,
  call: Admitted,
  asked: Failure,
  wanted: RequestedCall,
): Promise<(UsedGrant & { readonly driver: string }) | Failure> => {
  const put = await askBeforehand(core, call, wanted)
  switch (put.is) {
    case "granted":
      return { ...put.grant, driver: wanted.driver.key }
    case "denied": {
      const no = denied("this call", asked)
      return put.reason === undefined ? no : { ...no, message: `${no.message}: ${put.reason}` }
    }
    case "asked":
      return {
        ...asked,
        message: `${asked.message}; nothing was run, and people were asked, until ${put.expires}`,
        hint: `somebody who may approve answers \`caisson approvals show ${put.id}\`, then make the same call again; or ${grantIt(call) ?? "run it with --yes"}`,
        request: { id: put.id, expires: put.expires },
      }
    case "not-asked": {
      const hint = grantIt(call)
      const details = { ...asked.details, not_asked: put.why }
      return { ...asked, ...(hint === undefined ? {} : { hint }), details }
    }
  }
}

/** Several people's yes is for all of the call; one person's is for making it, and its effects are a question of their own. */
export const withRequest = (
  approval: Approval,
  { driver, ...requested }: UsedGrant & { readonly driver: string },
): Approval => ({
  ...approval,
  requested,
  driver,
  answers: { ...approval.answers, call: true },
  ...(requested.beside === undefined ? {} : { grant: requested }),
})

/** Step 2 with a person to ask: what cannot be undone by throwing a layer away is asked about before anything runs. */
export const authorizeAsking = async (core: HostCore, admitted: Admitted): Promise<Step<Authorized>> => {
  const within = await debitRules(core, admitted)
  if ("code" in within) return within
  const asked = authorize(core, admitted, { within })
  if (asked.ok || asked.code !== "approval_required") return asked
  const { call, tool } = admitted
  const grant = await takeGrant(core, admitted)
  if (grant !== undefined) {
    const granted = authorize(core, admitted, { within, beforehand: true })
    if (!granted.ok) return granted
    const { answers: _nobodyWasAsked, ...approval } = granted.value.approval
    return { ok: true, value: { ...granted.value, approval: { ...approval, grant } } }
  }
  // Nobody is asked about what could not be run anyway.
  const routing = await unlessCancelled(findRoute(core, admitted), admitted.signal)
  if ("code" in routing) return routing
  const unrouted = refusedRoute(routing)
  const { resolution } = routing
  if (unrouted !== undefined || !resolution.ok) return unrouted ?? asked
  const approval = asked.details["approval"] === "always" ? "always" : "on-mutate"
  const cost = costOf({ tool, route: resolution })
  const requested = async (): Promise<Step<Authorized>> => {
    const put = await putToPeople(core, admitted, asked, {
      driver: resolution.driver,
      message: asked.message,
      approval,
      ...(cost.class === "trivial" ? {} : { cost }),
    })
    if ("code" in put) return put
    const granted = authorize(core, admitted, { within, beforehand: true })
    if (!granted.ok) return granted
    return { ok: true, value: { ...granted.value, approval: withRequest(granted.value.approval, put) } }
  }
  // Who sits there may not be the one who has to say yes.
  if (asked.details["approver"] !== undefined) return await requested()
  const mutates = tool.mutates.map((scope) => scope.text)
  const question = {
    call,
    tool: tool.id,
    about: "call",
    approval,
    mutates,
    effects: [],
    denied: [],
    changes: [],
  } as const
  switch (await answerTo(admitted, { ...question, message: asked.message })) {
    case "yes":
      return authorize(core, admitted, { within, beforehand: true })
    case "no":
      return denied("this call", asked)
    case "cancelled":
      return cancelled
    default:
      return await requested()
  }
}

/** Step 7b: the effects, shown to a person where that is due and one can be asked. */
export const approve = async (core: HostCore, judged: Judged): Promise<Judged> => {
  const { verdict, ifApproved, approval } = judged
  if (ifApproved === undefined || verdict.ok) return judged
  const grant = approval.grant ?? (await takeGrant(core, judged))
  if (grant !== undefined) {
    const { ifApproved: _answered, ...granted } = judged
    return { ...granted, verdict: ifApproved, approval: { ...approval, granted: true, grant } }
  }
  if (!approval.mayGrant) return judged
  const looked = judged.ask === undefined ? undefined : await judged.attempt.exited.look(lookBounds)
  const answer = await answerTo(judged, {
    call: judged.call,
    tool: judged.tool.id,
    driver: judged.driver.key,
    about: "effects",
    approval: approval.class,
    message: `${judged.failedBefore === undefined ? "" : `${judged.failedBefore}; `}the call changed ${judged.effects.length} path${judged.effects.length === 1 ? "" : "s"} of the workspace`,
    mutates: judged.tool.mutates.map((scope) => scope.text),
    effects: judged.effects,
    denied: tellDenials(judged.attempt.denied, judged),
    changes: changesOf(judged.effects, looked),
  })
  const answers = (effects: boolean): Judged["approval"] => ({
    ...approval,
    granted: effects,
    answers: { ...approval.answers, effects },
  })
  // Whoever was asked has answered, or left: nobody is asked again.
  const { ifApproved: _none, ...answered } = judged
  switch (answer) {
    case "yes":
      return { ...answered, verdict: ifApproved, approval: answers(true) }
    case "no":
      return { ...answered, verdict: denied("these effects", verdict), approval: answers(false) }
    case "cancelled":
      return { ...answered, verdict: cancelled }
    default:
      return judged
  }
}
