/**
 * `install`: the packages of one driver, installed or mended, and its version check.
 *
 * Guarantees: only the operator installs, and only what this machine is for. What was changed since it was installed is installed anew; a version outside the
 * driver's range is installed anew once, since a registry may have a newer one, and told with both versions if it stays.
 */
import { type Caller, isOperator } from "../access/caller.ts"
import type { HostCore } from "../call/core.ts"
import { kindOf } from "../drivers/kinds.ts"
import { thisMachine, unmetRequirement } from "../drivers/program/machine.ts"
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
  const unmet = unmetRequirement(driver.contract, await thisMachine(core.data))
  if (unmet !== undefined)
    return ended({
      ok: false,
      code: "tool_unavailable",
      message: `${driver.key}: ${unmet}`,
      hint: "register a driver for this machine",
      details: { driver: driver.key },
    })
  const packages = (atHandToo: boolean): readonly InstallSpec[] =>
    kindOf(driver.contract)?.packages?.(driver.contract, { prefer: core.config.install.prefer, atHandToo }) ?? []
  const wanted = packages(false)
  let installed = await installAll(core, wanted, options)
  if (!installed.ok) return ended(installed)
  let found = await core.availability(driver)
  // This machine's own program may be of another version; then the driver's is installed beside it.
  for (const again of wanted.length > 0 ? [{ anew: true }] : [{}, { anew: true }]) {
    const all = packages(true)
    if (found.available || found.code !== "version_mismatch" || all.length === 0) break
    installed = await installAll(core, all, { ...options, ...again })
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
