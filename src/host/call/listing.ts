/**
 * What is registered, with availability as a call would find it.
 *
 * Guarantees: a tool is available iff a call with a fitting input would get a driver, a login and a policy's leave; a
 * driver, iff it would serve one of its tools if it were the only one. The reason is the one that such a call would
 * end with. Does not: ask for approval, or look at any input.
 */
import { callErrorOf, type Failure } from "../invoke/failure.ts"
import type { ReasonCode } from "../reasons.ts"
import type { RegisteredDriver } from "../registry/types.ts"
import type { Availability, DriverListing, ToolListing } from "../types.ts"
import type { ToolContract } from "../../manifest/types.ts"
import { forbidden } from "./authorize.ts"
import type { HostCore } from "./core.ts"
import { availabilityOf, findRoute, refusedRoute } from "./route.ts"
import { missingSecrets } from "./sign-in.ts"

const unavailable = (failure: Failure): Availability => {
  const { code, message, hint } = callErrorOf(failure)
  return { available: false, code: code as ReasonCode, reason: message, fix: hint }
}

const availabilityFor = async (
  core: HostCore,
  tool: ToolContract,
  drivers: readonly RegisteredDriver[],
): Promise<Availability> => {
  const routing = await findRoute(core, { tool, input: {}, context: {}, anyInput: true }, drivers)
  const { resolution, availability } = routing
  const failure = refusedRoute(routing) ?? forbidden(core, tool)
  if (failure !== undefined || !resolution.ok)
    return failure === undefined ? { available: false, code: "no_route", reason: "", fix: "" } : unavailable(failure)
  const secrets = missingSecrets(tool, resolution.driver.key)
  if (secrets !== undefined) return unavailable(secrets)
  const found = availability.get(resolution.driver.key)
  return {
    available: true,
    ...(found?.available === true && found.version !== undefined ? { version: found.version } : {}),
  }
}

export const listTools = (core: HostCore): Promise<readonly ToolListing[]> =>
  Promise.all(
    core.registry.tools.map(async (contract) => {
      const drivers = core.registry.driversFor(contract)
      return {
        contract,
        drivers: drivers.map((driver) => driver.key),
        availability: await availabilityFor(core, contract, drivers),
      }
    }),
  )

const driverAvailability = async (core: HostCore, driver: RegisteredDriver): Promise<Availability> => {
  const own = await availabilityOf(core, driver)
  if (!own.available) return { available: false, code: own.code, reason: own.reason, fix: own.fix }
  const tools = [...new Set(driver.bindings.map((binding) => binding.tool))]
  const found = await Promise.all(tools.map((tool) => availabilityFor(core, tool, [driver])))
  return found.find((one) => one.available) ?? found[0] ?? own
}

export const listDrivers = (core: HostCore): Promise<readonly DriverListing[]> =>
  Promise.all(
    core.registry.drivers.map(async (driver) => ({
      contract: driver.contract,
      availability: await driverAvailability(core, driver),
    })),
  )
