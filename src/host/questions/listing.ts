/**
 * What is registered, with availability as a call would find it.
 *
 * Guarantees: a tool is available iff a call with a fitting input would get a driver, a login and a policy's leave; a
 * driver, iff it would serve one of its tools if it were the only one. The reason is the one that such a call would
 * end with. A caller is told of what it may use, the host's operator of everything. Does not: ask for approval, or look
 * at any input.
 */
import { callErrorOf, type Failure } from "../failure.ts"
import type { ReasonCode } from "../reasons.ts"
import type { RegisteredDriver } from "../registry/types.ts"
import type { Availability, DriverListing, ToolListing } from "../types.ts"
import type { DriverContract, ToolContract } from "../../manifest/types.ts"
import { type Caller, isOperator } from "../access/caller.ts"
import type { HostCore } from "../call/core.ts"
import { permissions, toolsFor } from "../call/admission/find-tool.ts"
import { availabilityOf, findRoute, refusedRoute } from "../call/route.ts"
import { missingSecrets } from "../call/sign-in.ts"

const unavailable = (failure: Failure): Availability => {
  const { code, message, hint } = callErrorOf(failure)
  return { available: false, code: code as ReasonCode, reason: message, fix: hint }
}

const routeOf = (core: HostCore, caller: Caller, tool: ToolContract, drivers: readonly RegisteredDriver[]) =>
  findRoute(core, { tool, input: {}, context: {}, anyInput: true, caller }, drivers, true)
type Routing = Awaited<ReturnType<typeof routeOf>>

/** What a person can mend by signing in or setting up, and what not. */
const statesOf = ({ resolution }: Routing): Pick<ToolListing, "unauthed" | "unavailable"> => {
  const fallen = resolution.rows.filter(({ phase }) => phase !== "selected" && phase !== "rank")
  const unauthed = fallen.filter(({ code }) => code === "auth_required" || code === "setup_required").length
  return { unauthed, unavailable: fallen.length - unauthed }
}

const availabilityFor = async (
  core: HostCore,
  caller: Caller,
  tool: ToolContract,
  routing: Routing,
): Promise<Availability> => {
  const { resolution, availability } = routing
  const permission = permissions(core, caller)(tool)
  const failure = refusedRoute(routing) ?? (permission.ok ? undefined : permission.failure)
  if (failure !== undefined || !resolution.ok)
    return failure === undefined ? { available: false, code: "no_route", reason: "", fix: "" } : unavailable(failure)
  const secrets = await missingSecrets(core, { tool, caller }, resolution.driver)
  if (secrets !== undefined) return unavailable(secrets)
  const found = availability.get(resolution.driver.key)
  return {
    available: true,
    ...(found?.available === true && found.version !== undefined ? { version: found.version } : {}),
  }
}

/** Of a manifest's file, its place and its digest, which change with what the caller is not told of, only the operator hears. */
const untold = <T extends ToolContract | DriverContract>(contract: T): T => ({
  ...contract,
  source: { ...contract.source, file: "(kept by the host)", digest: "", leniencies: [] },
})

export const listTools = (core: HostCore, caller: Caller): Promise<readonly ToolListing[]> =>
  Promise.all(
    toolsFor(core, caller).map(async (contract) => {
      const drivers = core.registry.driversFor(contract)
      const routing = await routeOf(core, caller, contract, drivers)
      return {
        contract: isOperator(caller) ? contract : untold(contract),
        drivers: drivers.map((driver) => driver.key),
        ...statesOf(routing),
        availability: await availabilityFor(core, caller, contract, routing),
      }
    }),
  )

const driverAvailability = async (
  core: HostCore,
  caller: Caller,
  driver: RegisteredDriver,
  tools: readonly ToolContract[],
): Promise<Availability> => {
  const own = await availabilityOf(core, driver)
  if (!own.available) return { available: false, code: own.code, reason: own.reason, fix: own.fix }
  const found = await Promise.all(
    tools.map(async (tool) => availabilityFor(core, caller, tool, await routeOf(core, caller, tool, [driver]))),
  )
  return found.find((one) => one.available) ?? found[0] ?? own
}

/** A driver is told of by the tools that the caller may use; those that it serves besides are not. */
const driverFor = (
  driver: RegisteredDriver,
  told: readonly ToolContract[],
  all: boolean,
): { readonly contract: DriverContract; readonly tools: readonly ToolContract[] } | undefined => {
  const tools = [...new Set(driver.bindings.map((binding) => binding.tool))].filter((tool) => told.includes(tool))
  const { contract } = driver
  if (all) return { contract, tools }
  const named = contract.implements.filter((entry) => told.some((tool) => tool.id === entry.tool))
  return named.length === 0 ? undefined : { contract: untold({ ...contract, implements: named }), tools }
}

export const listDrivers = async (core: HostCore, caller: Caller): Promise<readonly DriverListing[]> => {
  const told = toolsFor(core, caller)
  const listed = core.registry.drivers.map(async (driver) => {
    const found = driverFor(driver, told, isOperator(caller))
    if (found === undefined) return []
    const { contract, tools } = found
    return [{ contract, availability: await driverAvailability(core, caller, driver, tools) }]
  })
  return (await Promise.all(listed)).flat()
}
