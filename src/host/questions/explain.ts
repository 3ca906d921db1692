/**
 * `why`: the way a call would go, without going it.
 *
 * Guarantees: the same steps as a call up to the prepared sandbox; nothing runs but version checks that were not known.
 * Where such a call would fail, the report carries that failure.
 * Values that the operator's config passes to tools are not shown.
 */
import { isOperator } from "../access/caller.ts"
import { callErrorOf, type Failure } from "../failure.ts"
import { shapeOf, unfitJob } from "../../sandbox/profile.ts"
import type { CallProfile, RouteRow, WhyReport } from "../types.ts"
import { admit } from "../call/admit.ts"
import { authorize } from "../call/authorize.ts"
import type { HostCore } from "../call/core.ts"
import { costOf } from "../call/admission/cost.ts"
import { costQuestion } from "../call/price.ts"
import { findRoute, route } from "../call/route.ts"
import { notEnforced } from "../call/sealing/not-enforced.ts"
import { commandWords, kindCall, sealCommand, sealProfile } from "../call/seal.ts"
import { signIn } from "../call/sign-in.ts"
import { transform } from "../call/transform.ts"
import type { Authorized, Requested, Step } from "../call/steps.ts"

const hidden = "(from the operator's env)"

/** What the call's effects would meet, without the approval that was lent to it for its profile's sake. */
const whatIsAsked = (asked: Step<Authorized>): "commit" | "ask" => (asked.ok ? asked.value.approval.onEffects : "ask")

/** Where the host keeps a home is nothing to a caller. */
const homeUntold = ({ home }: CallProfile): Pick<CallProfile, "home"> =>
  home === undefined ? {} : { home: { ...home, dir: "(kept by the host)" } }

/** A sandbox is prepared and thrown away unused: what this machine cannot enforce ends the call too. */
const notSealed = async (core: HostCore, profile: CallProfile): Promise<Failure | undefined> => {
  const { executables } = profile
  if (executables === undefined) return undefined
  const unfit = unfitJob({ argv: [], env: profile.env })
  if (unfit !== undefined) return notEnforced(unfit)
  const prepared = await (await core.backend()).prepare(shapeOf({ ...profile, executables }))
  if (!prepared.ok) return notEnforced(prepared)
  await prepared[Symbol.asyncDispose]()
  return undefined
}

export const explain = async (core: HostCore, requested: Requested): Promise<WhyReport> => {
  const { tool } = requested.request
  const ended = (failure: Failure, rows: readonly RouteRow[] = []): WhyReport => ({
    tool,
    rows,
    error: callErrorOf(failure),
  })
  const admitted = admit(core, requested, true)
  if (!admitted.ok) return ended(admitted)
  using _workspace = admitted.value.folder
  const asked = authorize(core, admitted.value)
  // A call that waits for approval still has a route and a profile, and they are what an approver wants to see.
  const approved =
    asked.ok || asked.code !== "approval_required" ? asked : authorize(core, admitted.value, { beforehand: true })
  if (!approved.ok) return ended(approved)
  const call: Authorized = approved.value
  const routing = await findRoute(core, call, core.registry.driversFor(call.tool), true)
  const { rows } = routing.resolution
  const routed = route(call, routing)
  if (!routed.ok) return ended(routed, rows)
  const selected = routed.value.driver.key
  const transformed = await transform(routed.value)
  if (!transformed.ok) return { ...ended(transformed, rows), selected }
  const signedIn = await signIn(core, transformed.value, "look")
  if (!signedIn.ok) return { ...ended(signedIn, rows), selected }
  const sealed = sealProfile(core, signedIn.value)
  if (!sealed.ok) return { ...ended(sealed, rows), selected }
  const { profile, profileDigest, passed, kind, egress } = sealed.value
  const made = sealCommand(signedIn.value, sealed.value)
  const costs = costQuestion(routed.value, costOf(routed.value))
  const waits = asked.ok ? costs : asked
  const stopped = waits ?? (made.ok || call.anyInput === true ? await notSealed(core, profile) : made)
  const env = { ...profile.env, ...Object.fromEntries(passed.map((name) => [name, hidden])) }
  return {
    tool,
    rows,
    selected,
    argv: made.ok ? commandWords(made.value) : kind.outline(kindCall(signedIn.value)),
    egress: (egress?.entries ?? []).map((entry) => entry.text),
    mutates: call.tool.mutates.map((scope) => scope.text),
    approval: { class: call.approval.class, effects: whatIsAsked(asked) },
    profile: { ...profile, env, ...(isOperator(call.caller) ? {} : homeUntold(profile)) },
    profileDigest,
    ...(stopped === undefined ? {} : { error: callErrorOf(stopped) }),
  }
}
