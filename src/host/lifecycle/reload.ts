/**
 * Another generation of manifests and config: read as a whole, taken as a whole or not at all.
 *
 * Guarantees: the operator alone may ask. What did not load before may still not load; a manifest that did and now does not
 * refuses the whole, as does a config with a fault, and a setting that only a start can take. Calls under way keep what they
 * began with. Each reload that is taken is a line of the audit log.
 */
import { isOperator, type Caller } from "../access/caller.ts"
import { callErrorOf, type Failure } from "../failure.ts"
import { hostLimits } from "../limits.ts"
import { brokenManifest } from "../registry/broken.ts"
import type { Registry } from "../registry/types.ts"
import { HostStartError, startFailure } from "../start-error.ts"
import type { ReloadReport } from "../types.ts"

const forbidden: Failure = {
  ok: false,
  code: "unauthorised",
  message: "only an operator may have manifests and config read again",
  details: {},
}

/** Throws where a manifest does not load that did. */
export const acceptAfter =
  (before: Registry) =>
  (found: Registry): void => {
    const known = new Set(before.failed.map(({ file }) => file))
    const broken = found.failed.filter(({ file }) => !known.has(file))
    const first = broken[0]
    if (first === undefined) return
    const { message, hint } = callErrorOf(brokenManifest(first))
    throw new HostStartError(
      "manifest_invalid",
      message,
      hint,
      broken.flatMap(({ diagnostics }) => diagnostics),
    )
  }

/** Throws where a start is needed for it. */
export const needsStart = (setting: string): never => {
  throw new HostStartError(
    "input_invalid",
    `\`${setting}\` is another one in the config, and is taken only at a start`,
    "end this host and start it anew, or take the change back",
  )
}

interface Reloads {
  readonly data: string
  /** whole, and taken; throws what refuses it */
  readonly take: (caller: Caller) => Promise<{ readonly generation: number; readonly registry: Registry }>
}

export const createReload = ({ data, take }: Reloads): ((caller: Caller) => Promise<ReloadReport>) => {
  let last: Promise<unknown> = Promise.resolve()
  const reload = async (caller: Caller): Promise<ReloadReport> => {
    try {
      const { generation, registry } = await take(caller)
      return { ok: true, generation, tools: registry.tools.length, drivers: registry.drivers.length }
    } catch (error) {
      const { code, message, fix, diagnostics } = startFailure(error, data)
      const faults = diagnostics
        .filter(({ severity }) => severity === "error")
        .slice(0, hostLimits.reloadFaults.value)
        .map(({ file, path, message: said, fix: mend }) => ({ file, path, message: said, fix: mend }))
      const failure: Failure = {
        ok: false,
        code,
        message: `nothing was taken: ${message}`,
        hint: fix,
        retryable: false,
        details: { faults },
      }
      return { ok: false, error: callErrorOf(failure) }
    }
  }
  return (caller) => {
    if (!isOperator(caller)) return Promise.resolve({ ok: false, error: callErrorOf(forbidden) })
    // One after the other: each is held against the one before.
    const next = last.then(() => reload(caller))
    last = next.catch(() => undefined)
    return next
  }
}
