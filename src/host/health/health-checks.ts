/**
 * Which drivers are well, as far as their checks tell: run when a route depends on one that is stale, and by themselves
 * while the host stays up.
 *
 * Guarantees: one check of a driver at a time, some few at once, each within its own time; a result is remembered in
 * the data folder, so that the next process, and other hosts, need not ask again. A clock that was set back makes results
 * stale, never young. Drivers without a check, and `noop`, cost nothing.
 */
import { createTurnstile } from "../../base/turnstile.ts"
import type { HealthCheck } from "../../manifest/types.ts"
import { hostLimits } from "../limits.ts"
import type { RegisteredDriver } from "../registry/types.ts"
import type { HealthStatus } from "../resolver/types.ts"
import { type Checkable, type Found } from "./check.ts"
import type { HealthRecords } from "./records.ts"

interface HealthChecksOptions {
  readonly run: (of: Checkable, check: HealthCheck) => Promise<Found>
  readonly records: HealthRecords
  readonly closing: AbortSignal
  readonly now?: () => number
  /** between 0 and 1 */
  readonly random?: () => number
}

interface HealthChecks {
  /** What is known of these, once what is stale was checked again; of those that may not be asked about, as it is known. */
  of(
    drivers: readonly Checkable[],
    mayAsk?: (driver: RegisteredDriver) => boolean,
  ): Promise<ReadonlyMap<string, HealthStatus>>
}

/** Not all drivers of a machine at the same moment. */
const JITTER = 0.1
/** What a timer takes. */
const LONGEST_MS = 2 ** 31 - 1

export const createHealthChecks = (options: HealthChecksOptions): HealthChecks => {
  const { run, records, closing, now = Date.now, random = Math.random } = options
  const turn = createTurnstile(hostLimits.concurrentProbes.value)
  const known = new Map<string, HealthStatus>()
  const underWay = new Map<string, Promise<void>>()
  const timers = new Map<string, NodeJS.Timeout>()
  closing.addEventListener("abort", () => timers.forEach((timer) => clearTimeout(timer)), { once: true })

  const nameOf = ({ key, contract }: RegisteredDriver): string => `${key} ${contract.source.digest}`
  const isFresh = (status: HealthStatus | undefined, { everyMs = hostLimits.healthStaleMs.value }: HealthCheck) => {
    const age = status === undefined ? -1 : now() - status.at
    return age >= 0 && age < everyMs
  }
  const again = (of: Checkable, check: HealthCheck): void => {
    if (check.everyMs === undefined || closing.aborted) return
    const name = nameOf(of.driver)
    const spread = 1 + JITTER * (2 * random() - 1)
    clearTimeout(timers.get(name))
    timers.set(name, setTimeout(() => void begin(of, check), Math.min(check.everyMs * spread, LONGEST_MS)).unref())
  }
  const check = async (of: Checkable, how: HealthCheck): Promise<void> => {
    const found = await turn.pass(() => run(of, how))
    // A host that closes says nothing of a driver.
    if (closing.aborted) return
    const reason = found.ok ? undefined : found.reason.slice(0, hostLimits.healthReasonChars.value)
    const status: HealthStatus = { ok: found.ok, at: now(), ...(reason === undefined ? {} : { reason }) }
    known.set(nameOf(of.driver), status)
    await records.set(of.driver, status)
    again(of, how)
  }
  const begin = (of: Checkable, how: HealthCheck): Promise<void> => {
    const name = nameOf(of.driver)
    const before = underWay.get(name)
    if (before !== undefined) return before
    const running = check(of, how).finally(() => underWay.delete(name))
    underWay.set(name, running)
    return running
  }
  const refresh = async (of: Checkable, how: HealthCheck, mayAsk: boolean): Promise<void> => {
    const name = nameOf(of.driver)
    if (isFresh(known.get(name), how)) return
    const stored = await records.get(of.driver)
    if (stored !== undefined && isFresh(stored, how)) {
      known.set(name, stored)
      if (mayAsk) again(of, how)
      return
    }
    if (mayAsk) await begin(of, how)
  }

  return {
    async of(drivers, mayAsk = () => true) {
      await Promise.all(
        drivers.map(async (of) => {
          const how = of.driver.contract.healthCheck
          if (how !== undefined && how.method !== "noop" && !closing.aborted) await refresh(of, how, mayAsk(of.driver))
        }),
      )
      return new Map(
        drivers.flatMap(({ driver }) => {
          const status = known.get(nameOf(driver))
          return status === undefined ? [] : [[driver.key, status] as const]
        }),
      )
    },
  }
}
