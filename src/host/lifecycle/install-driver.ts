/**
 * `install`: the packages of one driver, installed or mended, and its version check.
 *
 * Guarantees: only the operator installs. What was changed since it was installed is installed anew; a version outside the
 * driver's range is installed anew once, since a registry may have a newer one, and told with both versions if it stays.
 */
import { type Caller, isOperator } from "../access/caller.ts"
import type { HostCore } from "../call/core.ts"
import { kindOf } from "../drivers/kinds.ts"
import { callErrorOf, type Failure } from "../failure.ts"
import type { FrozenLayer, InstallOptions, InstallSpec } from "../install/types.ts"
import type { InstallReport } from "../types.ts"

const ended = (failure: Failure): InstallReport => ({ ok: false, error: callErrorOf(failure) })

const installAll = async (
  core: HostCore,
  specs: readonly InstallSpec[],
  options: InstallOptions & { readonly anew?: boolean },
): Promise<{ readonly ok: true; readonly layers: readonly FrozenLayer[] } | Failure> => {
  const layers: FrozenLayer[] = []
  for (const spec of specs) {
    const installed = await core.installs.ensure(spec, { ...options, repair: true })
    if (!installed.ok) return installed
    layers.push(installed.value)
  }
  return { ok: true, layers }
}

export const installDriver = async (
  core: HostCore,
  ref: string,
  caller: Caller,
  options: InstallOptions,
): Promise<InstallReport> => {
  if (!isOperator(caller))
    return ended({
      ok: false,
      code: "unauthorised",
      message: "only the operator of this host installs drivers",
      details: {},
    })
  const driver = core.registry.driver(ref)
  if (driver === undefined)
    return ended({
      ok: false,
      code: "not_found",
      message: `there is no driver ${ref.slice(0, 120)}`,
      hint: "`caisson drivers` lists what is registered",
      details: {},
    })
  const specs = kindOf(driver.contract)?.packages?.(driver.contract) ?? []
  let installed = await installAll(core, specs, options)
  if (!installed.ok) return ended(installed)
  let found = await core.availability(driver)
  if (!found.available && found.code === "version_mismatch" && specs.length > 0) {
    installed = await installAll(core, specs, { ...options, anew: true })
    if (!installed.ok) return ended(installed)
    found = await core.availability(driver)
  }
  if (!found.available)
    return ended({
      ok: false,
      code: found.code,
      message: `${driver.key}: ${found.reason}`,
      hint: found.fix,
      details: { driver: driver.key },
    })
  return {
    ok: true,
    driver: driver.key,
    ...(found.version === undefined ? {} : { version: found.version }),
    layers: installed.layers.map(({ digest, source, packages }) => ({ digest, source, packages })),
  }
}
