/**
 * Step 3: which driver serves the call.
 *
 * Guarantees: only drivers that this host can run and whose program was found in the right version are left; of a
 * refusal the resolver's specific reason, the fix and the closest rejections are kept.
 */
import type { JsonObject } from "../../manifest/types.ts"
import { brokenManifest, type Failure, isReasonCode } from "../invoke/failure.ts"
import type { ReasonCode } from "../reasons.ts"
import type { DriverAvailability, RegisteredDriver } from "../registry/types.ts"
import { resolve } from "../resolver/resolve.ts"
import type { Resolution, RoutePolicy } from "../resolver/types.ts"
import type { HostCore } from "./core.ts"
import { authStates } from "./sign-in.ts"
import type { Authorized, Routed, Step } from "./steps.ts"

export const runsKind = (kind: string): boolean => kind === "cli"

export const unservedKind = (driver: RegisteredDriver): DriverAvailability => ({
  available: false,
  code: "tool_unavailable",
  reason: `this host does not run ${driver.contract.driverKind} drivers yet`,
  fix: "register a driver of kind cli for the tool",
})

export const availabilityOf = async (core: HostCore, driver: RegisteredDriver): Promise<DriverAvailability> => {
  if (driver.refusal !== undefined) return { available: false, ...driver.refusal }
  return runsKind(driver.contract.driverKind) ? core.availability(driver) : unservedKind(driver)
}

const policyOf = ({ config }: HostCore): RoutePolicy => ({
  tags: {
    ...(config.policyTags.allow.length > 0 ? { allow: config.policyTags.allow } : {}),
    deny: config.policyTags.deny,
  },
  ...(config.region === undefined ? {} : { regions: [config.region] }),
  globalSatisfiesRegion: config.regionAllowsGlobal,
})

/** Where all that came furthest fell for one reason that has a code of its own, that code says more than `no_route`. */
const codeOf = ({ code, cause }: Extract<Resolution, { ok: false }>): ReasonCode =>
  code === "no_route" && isReasonCode(cause.reason) ? cause.reason : code

export const routeFailure = (resolution: Extract<Resolution, { ok: false }>): Failure => {
  const { cause } = resolution
  const code = codeOf(resolution)
  const details: JsonObject = {
    reason: cause.reason,
    rejections: cause.rejections.map(({ driver, phase, reason, fix }) => ({
      driver,
      phase,
      reason,
      ...(fix === undefined ? {} : { fix }),
    })),
    ...(cause.fields === undefined ? {} : { fields: [...cause.fields] }),
    ...(cause.driver === undefined ? {} : { driver: cause.driver }),
    ...(cause.login === undefined ? {} : { login: cause.login }),
    ...(cause.pendingSetup === undefined ? {} : { pending: [...cause.pendingSetup] }),
  }
  return { ok: false, code, message: cause.message, details, ...(cause.fix === undefined ? {} : { hint: cause.fix }) }
}

/** A driver that would serve the tool, had its manifest loaded: the file to mend says more than that there is none. */
const brokenDriver = ({ registry }: HostCore, call: Authorized, resolution: Resolution): Failure | undefined => {
  if (resolution.ok || !["no_candidates", "not_a_candidate"].includes(resolution.cause.reason)) return undefined
  const broken = registry.failed.find(
    ({ kind, claims }) =>
      (kind === "driver" || kind === "cli") &&
      claims.tools.includes(call.tool.id) &&
      (call.pin === undefined || claims.id === call.pin.replace(/@\d+$/, "")),
  )
  return broken === undefined ? undefined : brokenManifest(broken)
}

export interface Routing {
  readonly resolution: Resolution
  readonly broken?: Failure
  readonly availability: ReadonlyMap<string, DriverAvailability>
}

export const findRoute = async (core: HostCore, call: Authorized): Promise<Routing> => {
  const drivers = core.registry.driversFor(call.tool)
  const availability = new Map(
    await Promise.all(drivers.map(async (driver) => [driver.key, await availabilityOf(core, driver)] as const)),
  )
  const resolution = resolve({
    tool: call.tool,
    drivers,
    call: {
      input: call.input,
      ...(call.pin === undefined ? {} : { pin: call.pin }),
      ...(call.regions === undefined ? {} : { regions: call.regions }),
    },
    policy: policyOf(core),
    availability,
    health: core.health(),
    auth: authStates(drivers),
    now: Date.now(),
  })
  const broken = brokenDriver(core, call, resolution)
  return { resolution, availability, ...(broken === undefined ? {} : { broken }) }
}

/** The chosen driver with its program; a driver without one was not available, so it cannot have been chosen. */
export const route = (call: Authorized, { resolution, availability, broken }: Routing): Step<Routed> => {
  if (!resolution.ok) return broken ?? routeFailure(resolution)
  const found = availability.get(resolution.driver.key)
  if (found?.available !== true || found.program === undefined) {
    return {
      ok: false,
      code: "tool_unavailable",
      message: `the program behind ${resolution.driver.key} is not there`,
      details: { driver: resolution.driver.key },
    }
  }
  return {
    ok: true,
    value: {
      ...call,
      route: resolution,
      driver: resolution.driver,
      program: found.program,
      ...(found.version === undefined ? {} : { programVersion: found.version }),
    },
  }
}
