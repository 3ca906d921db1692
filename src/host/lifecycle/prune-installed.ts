/**
 * `prune`: installed packages that no registered driver asks for, removed.
 *
 * Guarantees: only the operator prunes. What a registered driver needs, as its manifest is now, stays.
 */
import { type Caller, isOperator } from "../access/caller.ts"
import type { HostCore } from "../call/core.ts"
import { kindOf } from "../drivers/kinds.ts"
import { callErrorOf } from "../failure.ts"
import type { PruneReport } from "../types.ts"

export const pruneInstalled = async (core: HostCore, caller: Caller): Promise<PruneReport> => {
  if (!isOperator(caller))
    return {
      ok: false,
      error: callErrorOf({
        ok: false,
        code: "unauthorised",
        message: "only the operator of this host removes what is installed",
        details: {},
      }),
    }
  const asked = { prefer: core.config.install.prefer, atHandToo: true }
  const wanted = core.registry.drivers.flatMap(({ contract }) => kindOf(contract)?.packages?.(contract, asked) ?? [])
  return { ok: true, ...(await core.installs.prune(wanted)) }
}
