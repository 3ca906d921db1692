/**
 * Step 2: may this call be made, and who has to say yes? What the call is, put to `access/decide.ts`.
 */
import { resolve } from "node:path"
import { decide, permit } from "../access/decide.ts"
import { accessPolicyOf } from "../access/policy.ts"
import type { Failure } from "../failure.ts"
import type { HostCore } from "./core.ts"
import type { Admitted, Authorized, Step } from "./steps.ts"

interface Known {
  /** a person was asked about the call itself and said yes; effects are a question of their own */
  readonly beforehand?: boolean
  /** rules whose budget this call was debited to */
  readonly within?: ReadonlySet<string>
}

const factsOf = ({ tool, action, request, approved, plan, workspace, empty }: Admitted) => ({
  asked: request.tool,
  tool,
  ...(action === undefined ? {} : { action }),
  ...(request.workspace === undefined && empty !== undefined ? {} : { workspace }),
  named: resolve(request.workspace ?? "."),
  plan,
  approved,
  now: Date.now(),
})

/** May it be made at all, whoever would have to say yes? */
export const permitted = (core: HostCore, admitted: Admitted): Failure | undefined => {
  const verdict = permit(accessPolicyOf(core.registry, core.config), admitted.caller, factsOf(admitted))
  return verdict.ok ? undefined : verdict
}

export const authorize = (
  core: HostCore,
  admitted: Admitted,
  { beforehand = false, within = new Set() }: Known = {},
): Step<Authorized> => {
  const facts = { ...factsOf(admitted), beforehand, within }
  const verdict = decide(accessPolicyOf(core.registry, core.config), admitted.caller, facts)
  if (!verdict.ok) return verdict
  const { approval, access } = verdict
  return { ok: true, value: { ...admitted, approval, access } }
}
