/**
 * The turns of one attempt's requests to its service.
 *
 * Guarantees: a turn is waited for on the machine's own clock, no longer than its limit and the attempt's time, and not at
 * all once nobody waits for the call; beyond that the call is `rate_limited`, with the time. Calls of one user, or of all
 * where the driver has no login, by one driver share a pace, in every process on the data folder.
 * A rate is a hint (AIP-31): where the store cannot be had, requests are sent, and the receipt says so.
 */
import { setTimeout as pause } from "node:timers/promises"
import type { JsonObject } from "../../../manifest/types.ts"
import type { Pace } from "../../drivers/kind.ts"
import type { Failure } from "../../failure.ts"
import { hostLimits } from "../../limits.ts"
import { driverScope } from "../../secrets/scopes.ts"
import { now } from "../../store/instant.ts"
import { type PaceWait, singleHost, StoreUnavailable } from "../../store/store.ts"
import type { HostCore } from "../core.ts"
import type { Sealed } from "../steps.ts"

interface PaceOptions {
  readonly signal: AbortSignal
  /** what is left of the attempt's time */
  readonly leftMs: () => number
  readonly note: (facts: JsonObject) => void
}

const tooLong = (driver: string, { waitMs, why }: PaceWait): Failure => ({
  ok: false,
  code: "rate_limited",
  message:
    why === "asked"
      ? `the service behind ${driver} asked to be left alone`
      : `${driver} is asked no more often than its \`rate_limit\` says`,
  hint: `try again in ${Math.ceil(waitMs / 1000)} s`,
  details: { retry_after_ms: waitMs, reason: why === "asked" ? "retry_after" : "rate_limit", sent: false },
})

export const createPace = (
  core: Pick<HostCore, "store" | "catalogue">,
  { driver, user }: Pick<Sealed, "driver" | "user">,
  { signal, leftMs, note }: PaceOptions,
): Pace => {
  const whose = driver.contract.auth === undefined ? "" : ` ${user}`
  const of = { tenant: singleHost.tenant, subject: `${driverScope(core.catalogue, driver)}${whose}` }
  const unlessUnavailable = async <T>(work: Promise<T>): Promise<T | undefined> => {
    try {
      return await work
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      note({ pace: "not known" })
      return undefined
    }
  }
  return {
    async turn(rate) {
      const perMinute = rate?.requestsPerMinute
      const wait = await unlessUnavailable(
        (async () =>
          (await core.store()).turn({
            ...of,
            at: now(),
            ...(perMinute === undefined ? {} : { rate: { perMinute, burst: rate?.burst ?? 1 } }),
            patienceMs: Math.max(0, Math.min(hostLimits.paceWaitMs.value, leftMs() - 1)),
          }))(),
      )
      if (wait === undefined) return undefined
      if (!wait.given) return tooLong(driver.key, wait)
      if (wait.waitMs === 0) return undefined
      note({ paced_ms: wait.waitMs })
      return pause(wait.waitMs, undefined, { signal }).then(
        () => undefined,
        () => tooLong(driver.key, wait),
      )
    },
    async leaveAlone(ms) {
      if (ms > 0) await unlessUnavailable((async () => (await core.store()).pause({ ...of, at: now(), forMs: ms }))())
    },
  }
}
