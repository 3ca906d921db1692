/**
 * Step 2: may this call be made, and who has to say yes? What the call is, put to `access/decide.ts`.
 */
import { resolve } from "node:path"
import { decide } from "../access/decide.ts"
import { accessPolicyOf } from "../access/policy.ts"
import type { HostCore } from "./core.ts"
import type { Admitted, Authorized, Step } from "./steps.ts"

interface Known {
  /** a person was asked about the call itself and said yes; effects are a question of their own */
  readonly beforehand?: boolean
  /** rules whose budget this call was debited to */
  readonly within?: ReadonlySet<string>
}

export const authorize = (
  core: HostCore,
  admitted: Admitted,
  { beforehand = false, within = new Set() }: Known = {},
): Step<Authorized> => {
  const { tool, action, caller, request, approved, plan, workspace } = admitted
  const verdict = decide(accessPolicyOf(core.registry, core.config), caller, {
    asked: request.tool,
    tool,
    ...(action === undefined ? {} : { action }),
    ...(request.workspace === undefined && admitted.empty !== undefined ? {} : { workspace }),
    named: resolve(request.workspace ?? "."),
    plan,
    approved,
    beforehand,
    within,
    now: Date.now(),
  })
  if (!verdict.ok) return verdict
  const { approval, access } = verdict
  return { ok: true, value: { ...admitted, approval, access } }
}
