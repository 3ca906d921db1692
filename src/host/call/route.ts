/**
 * Step 3: which driver serves the call.
 *
 * Guarantees: only drivers that this host can run and seal, and whose program was found in the right version, are left;
 * a refusal tells of every driver where and why it fell (`details.route`), with what to do about it.
 */
import { isOperator } from "../access/caller.ts"
import type { DriverAvailability } from "../drivers/kind.ts"
import { kindOf, unserved } from "../drivers/kinds.ts"
import type { Failure } from "../failure.ts"
import { brokenManifest } from "../registry/broken.ts"
import { hostLimits } from "../limits.ts"
import type { RegisteredDriver } from "../registry/types.ts"
import { resolve } from "../resolver/resolve.ts"
import type { Resolution, ResolveInput, RoutePolicy } from "../resolver/types.ts"
import type { RoutePhase } from "../types.ts"
import type { HostCore } from "./core.ts"
import type { Barred } from "../access/decide.ts"
import { barredDrivers } from "./admission/required.ts"
import { unenforceable } from "./sealing/enforceable.ts"
import { authStates, lackedBy, loginDetails } from "./sign-in.ts"
import type { Authorized, Routed, Step } from "./steps.ts"

export const availabilityOf = async (core: HostCore, driver: RegisteredDriver): Promise<DriverAvailability> => {
  if (driver.refusal !== undefined) return { available: false, ...driver.refusal }
  if (kindOf(driver.contract) === undefined) return unserved(driver.contract)
  const refused = unenforceable(driver.contract, core.config.backend)
  // An image that is refused is not looked for either.
  if (refused?.control !== "runner-image") {
    const found = await core.availability(driver)
    if (refused === undefined || !found.available) return found
  }
  return { available: false, code: "sandbox_unavailable", reason: refused.reason, fix: refused.fix }
}

const policyOf = ({ config }: HostCore): RoutePolicy => ({
  tags: {
    ...(config.policyTags.allow.length > 0 ? { allow: config.policyTags.allow } : {}),
    deny: config.policyTags.deny,
  },
  ...(config.region === undefined ? {} : { regions: [config.region] }),
  globalSatisfiesRegion: config.regionAllowsGlobal,
})

const routeFailure = ({ code, cause, rows }: Extract<Resolution, { ok: false }>): Failure => ({
  ok: false,
  code,
  message: cause.message,
  ...(cause.fix === undefined ? {} : { hint: cause.fix }),
  details: {
    reason: cause.reason,
    route: rows.slice(0, hostLimits.routeRows.value).map((row) => ({ ...row })),
    ...(rows.length > hostLimits.routeRows.value ? { more: rows.length - hostLimits.routeRows.value } : {}),
    ...(cause.fields === undefined ? {} : { fields: [...cause.fields] }),
    ...(cause.driver === undefined ? {} : { driver: cause.driver }),
    ...(cause.login === undefined ? {} : { login: loginDetails(cause.login) }),
    ...(cause.pendingSetup === undefined ? {} : { pending: [...cause.pendingSetup] }),
  },
})

/** A driver that would serve the tool, had its manifest loaded: to its operator the file says more than that there is none. */
const brokenDriver = ({ registry }: HostCore, call: Asked, resolution: Resolution): Failure | undefined => {
  if (!isOperator(call.caller)) return undefined
  if (resolution.ok || !["no_candidates", "not_a_candidate"].includes(resolution.cause.reason)) return undefined
  const broken = registry.failed.find(
    ({ kind, claims }) =>
      (kind === "driver" || kind === "cli") &&
      claims.tools.includes(call.tool.id) &&
      (call.pin === undefined || claims.id === call.pin.replace(/@\d+$/, "")),
  )
  if (broken === undefined) return undefined
  const { message, hint, details } = brokenManifest(broken)
  const failure = routeFailure(resolution)
  return {
    ...failure,
    message,
    details: { ...failure.details, ...details, reason: "manifest_invalid" },
    ...(hint === undefined ? {} : { hint }),
  }
}

/** As much of a call as its route depends on. */
type Asked = Pick<Authorized, "tool" | "input" | "context" | "pin" | "regions" | "anyInput" | "caller"> &
  Partial<Pick<Authorized, "folder" | "user">>

/** A driver that the call does not come to is not asked about for it. */
const couldServe = (phase: RoutePhase): boolean => phase === "selected" || phase === "rank"

/** Whether somebody is signed in could not be found out: what hinders that is told, not that a login is needed. */
const unknownLogin = (
  { code, cause }: Extract<Resolution, { ok: false }>,
  auth: Awaited<ReturnType<typeof authStates>>,
): Failure | undefined =>
  code === "auth_required" && cause.driver !== undefined ? auth.get(cause.driver)?.fault : undefined

/** No driver is left, and rules kept some of them from the call: the receipt names them. */
const barredRoute = (
  resolution: Extract<Resolution, { ok: false }>,
  barred: ReadonlyMap<string, Barred>,
): Failure | undefined =>
  barred.size === 0
    ? undefined
    : {
        ...routeFailure(resolution),
        evidence: { barred: [...barred].map(([driver, { policy, reason }]) => ({ driver, policy, reason })) },
      }

interface Routing {
  readonly resolution: Resolution
  readonly broken?: Failure
  readonly availability: ReadonlyMap<string, DriverAvailability>
}

export const findRoute = async (
  core: HostCore,
  call: Asked,
  drivers: readonly RegisteredDriver[] = core.registry.driversFor(call.tool),
  /** nothing is to be run: strangers' services hear nothing of that */
  onlyLooks = false,
): Promise<Routing> => {
  const availability = new Map(
    await Promise.all(drivers.map(async (driver) => [driver.key, await availabilityOf(core, driver)] as const)),
  )
  const there = drivers.flatMap((driver) => {
    const found = availability.get(driver.key)
    return found?.available === true ? [{ driver, found }] : []
  })
  const lacks = await lackedBy(core, call, drivers)
  const auth = await authStates(core, call, drivers, lacks)
  const barred = barredDrivers(core, call, drivers)
  const asked: ResolveInput = {
    tool: call.tool,
    drivers,
    call: {
      input: call.input,
      context: call.context,
      ...(call.anyInput === true ? { anyInput: true } : {}),
      ...(call.pin === undefined ? {} : { pin: call.pin }),
      ...(call.regions === undefined ? {} : { regions: call.regions }),
    },
    policy: policyOf(core),
    availability,
    health: new Map(),
    auth,
    barred,
    now: Date.now(),
  }
  const serving = new Set(resolve(asked).rows.flatMap(({ phase, driver }) => (couldServe(phase) ? [driver] : [])))
  const mayAsk = ({ key, vouched }: RegisteredDriver): boolean => serving.has(key) && (vouched || !onlyLooks)
  const resolution = resolve({ ...asked, health: await core.health(there, mayAsk), now: Date.now() })
  const broken =
    brokenDriver(core, call, resolution) ??
    (resolution.ok ? undefined : (lacks.fault ?? unknownLogin(resolution, auth) ?? barredRoute(resolution, barred)))
  return { resolution, availability, ...(broken === undefined ? {} : { broken }) }
}

export const refusedRoute = ({ resolution, broken }: Routing): Failure | undefined =>
  resolution.ok ? undefined : (broken ?? routeFailure(resolution))

/** What its kind found of a driver that is there. */
export const foundOf = ({
  program,
  version,
  layers,
  module,
  image,
  builtins,
  install,
}: Extract<DriverAvailability, { available: true }>): Pick<
  Routed,
  "program" | "programVersion" | "layers" | "module" | "image" | "builtins" | "install"
> => ({
  ...(program === undefined ? {} : { program }),
  ...(version === undefined ? {} : { programVersion: version }),
  ...(layers === undefined ? {} : { layers }),
  ...(module === undefined ? {} : { module }),
  ...(image === undefined ? {} : { image }),
  ...(builtins === undefined ? {} : { builtins }),
  ...(install === undefined ? {} : { install }),
})

/** The chosen driver with what was found of it; one of which nothing was found cannot have been chosen. */
export const route = (call: Authorized, { resolution, availability, broken }: Routing): Step<Routed> => {
  if (!resolution.ok) return broken ?? routeFailure(resolution)
  const found = availability.get(resolution.driver.key)
  if (found?.available !== true) {
    return {
      ok: false,
      code: "tool_unavailable",
      message: `${resolution.driver.key} is not there`,
      details: { driver: resolution.driver.key },
    }
  }
  return {
    ok: true,
    value: {
      ...call,
      route: resolution,
      driver: resolution.driver,
      ...foundOf(found),
    },
  }
}
