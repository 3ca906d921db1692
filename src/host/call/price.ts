/**
 * Step 3b: what the call costs by the driver that serves it, before anything is run.
 *
 * Guarantees: a call that tool or driver calls `expensive` is asked about, with its cost in the question, unless a yes came
 * with it or was given beforehand; that yes is about the cost, and answers no question about effects but a grant's, which
 * holds for all of the call. What it costs is debited after that, and a call beyond a budget is refused.
 */
import type { JsonObject } from "../../manifest/types.ts"
import type { Failure } from "../failure.ts"
import { debitCall, hasRoom } from "./admission/debit.ts"
import { takeGrant } from "./admission/granted.ts"
import { answerTo, cancelled, denied, putToPeople, withRequest } from "./approve.ts"
import { costOf } from "./admission/cost.ts"
import type { HostCore } from "./core.ts"
import type { Cost, Routed, Step } from "./steps.ts"

/** Units are thousandths of a cent. */
const inWords = ({ units, currency }: Cost): string =>
  units === undefined ? "how much, its driver does not say" : `${units / 100_000} ${currency ?? "USD"} a call`

const costFacts = (cost: Cost): JsonObject => ({ ...cost })

/** What is to be answered before such a call runs; undefined where its cost asks nothing. */
export const costQuestion = ({ approval, tool, driver }: Routed, cost: Cost): Failure | undefined => {
  if (cost.class !== "expensive") return undefined
  if (approval.granted || approval.answers?.call === true || approval.grant !== undefined) return undefined
  return {
    ok: false,
    code: "approval_required",
    message: `a call of ${tool.id} by ${driver.key} is expensive (${inWords(cost)}); nothing was run`,
    details: {
      approval: "always",
      cost: costFacts(cost),
      ...(approval.mayGrant ? {} : { approver: "another person" }),
    },
    ...(approval.mayGrant ? {} : { hint: "ask somebody whose approval counts for it, or for a grant" }),
  }
}

const answered = async (core: HostCore, routed: Routed, asked: Failure, cost: Cost): Promise<Step<Routed>> => {
  const { approval, call, tool, driver } = routed
  const grant = await takeGrant(core, routed)
  if (grant !== undefined) return { ok: true, value: { ...routed, approval: { ...approval, grant } } }
  const requested = async (): Promise<Step<Routed>> => {
    const put = await putToPeople(core, routed, asked, { driver, cost, message: asked.message, approval: "always" })
    return "code" in put ? put : { ok: true, value: { ...routed, approval: withRequest(approval, put) } }
  }
  if (!approval.mayGrant) return await requested()
  const question = {
    call,
    tool: tool.id,
    driver: driver.key,
    about: "call",
    approval: "always",
    message: asked.message,
    mutates: tool.mutates.map((scope) => scope.text),
    effects: [],
    denied: [],
    changes: [],
  } as const
  switch (await answerTo(routed, question)) {
    case "yes":
      return { ok: true, value: { ...routed, approval: { ...approval, answers: { ...approval.answers, call: true } } } }
    case "no":
      return denied("this call", asked)
    case "cancelled":
      return cancelled
    default:
      return await requested()
  }
}

export const price = async (core: HostCore, routed: Routed): Promise<Step<Routed>> => {
  const cost = costOf(routed)
  const asked = costQuestion(routed, cost)
  const broke = asked === undefined ? undefined : await hasRoom(core, routed, cost.units)
  if (broke !== undefined) return broke
  const allowed: Step<Routed> =
    asked === undefined ? { ok: true, value: routed } : await answered(core, routed, asked, cost)
  if (!allowed.ok) return allowed
  const refused = await debitCall(core, allowed.value, cost.units ?? 0)
  return refused ?? { ok: true, value: { ...allowed.value, cost } }
}
