/**
 * `why`: the way a call would go, without going it.
 *
 * Guarantees: the same steps as a call up to the sealed profile; nothing runs but version checks that were not known.
 * Values that the operator's config passes to tools are not shown.
 */
import { callErrorOf, type Failure } from "../invoke/failure.ts"
import type { RouteRow, WhyReport } from "../types.ts"
import { admit } from "./admit.ts"
import { authorize } from "./authorize.ts"
import type { HostCore } from "./core.ts"
import { findRoute, route } from "./route.ts"
import { sealProfile } from "./seal.ts"
import { signIn } from "./sign-in.ts"
import type { Authorized, Requested } from "./steps.ts"

const hidden = "(from the operator's env)"

export const explain = async (core: HostCore, requested: Requested): Promise<WhyReport> => {
  const { tool } = requested.request
  const ended = (failure: Failure, rows: readonly RouteRow[] = []): WhyReport => ({
    tool,
    rows,
    error: callErrorOf(failure),
  })
  const admitted = admit(core, requested, true)
  if (!admitted.ok) return ended(admitted)
  const asked = authorize(core, admitted.value)
  // A call that waits for approval still has a route and a profile, and they are what an approver wants to see.
  const approved =
    asked.ok || asked.code !== "approval_required"
      ? asked
      : authorize(core, { ...admitted.value, request: { ...requested.request, approve: true } })
  if (!approved.ok) return ended(approved)
  const call: Authorized = approved.value
  const routing = await findRoute(core, call)
  const { rows } = routing.resolution
  const routed = route(call, routing)
  if (!routed.ok) return ended(routed, rows)
  const selected = routed.value.driver.key
  const signedIn = signIn(routed.value)
  if (!signedIn.ok) return { ...ended(signedIn, rows), selected }
  const sealed = sealProfile(core, signedIn.value)
  if (!sealed.ok) return { ...ended(sealed, rows), selected }
  const { profile, profileDigest, passed } = sealed.value
  const env = { ...profile.env, ...Object.fromEntries(passed.map((name) => [name, hidden])) }
  return {
    tool,
    rows,
    selected,
    profile: { ...profile, env },
    profileDigest,
    ...(asked.ok ? {} : { error: callErrorOf(asked) }),
  }
}
