/**
 * Packages of the chosen driver that are not installed yet: installed now, where the operator lets calls do so.
 *
 * Guarantees: only what the route chose is installed; afterwards the driver is asked again whether it can serve, its
 * version check included, and what has the wrong version is installed anew once. A cancel ends it.
 */
import type { Failure } from "../failure.ts"
import type { HostCore } from "./core.ts"
import { foundOf } from "./route.ts"
import type { Routed, Step } from "./steps.ts"

export const obtain = async (core: HostCore, routed: Routed): Promise<Step<Routed>> => {
  const { install, driver, signal, tell, ...rest } = routed
  if (install === undefined || install.length === 0) return { ok: true, value: routed }
  const installAll = async (anew: boolean): Promise<Failure | undefined> => {
    for (const spec of install) {
      const installed = await core.installs.ensure(spec, {
        signal,
        anew,
        tell: (progress) => tell({ type: "installing", driver: driver.key, progress }),
      })
      if (!installed.ok) return { ...installed, details: { ...installed.details, driver: driver.key } }
    }
    return undefined
  }
  const failure = await installAll(false)
  if (failure !== undefined) return failure
  let found = await core.availability(driver)
  if (!found.available && found.code === "version_mismatch") {
    const again = await installAll(true)
    if (again !== undefined) return again
    found = await core.availability(driver)
  }
  if (!found.available || found.install !== undefined)
    return {
      ok: false,
      code: found.available ? "install_failed" : found.code,
      message: found.available ? `${driver.key} is installed, and still asks for it` : found.reason,
      ...(found.available ? {} : { hint: found.fix }),
      details: { driver: driver.key },
    }
  return { ok: true, value: { ...rest, driver, signal, tell, ...foundOf(found) } }
}
