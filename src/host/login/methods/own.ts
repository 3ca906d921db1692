/**
 * A driver's own `login` and `refresh` functions (AIP-30), which run sealed in the driver's home.
 *
 * Guarantees: what a function says of itself signs nobody in; that it says no is a refusal only where it says so in AIP-30's
 * words. A host that could not be reached is told as that, so that nobody is signed out for it. A driver whose module
 * brings no such function is not asked.
 */
import type { DriverAvailability } from "../../drivers/kind.ts"
import type { RegisteredDriver } from "../../registry/types.ts"
import type { FlowFailed, LoginDesk, LoginMethod } from "../flow.ts"
import type { RanOwnLogin } from "../run-own.ts"

const WHY = {
  user_cancelled: "cancelled",
  callback_failed: "refused",
  auth_expired: "refused",
  upstream_error: "unreachable",
} as const

const NOT_RUN = { cancelled: "cancelled", "timed-out": "timed-out" } as const

const endOf = (ran: RanOwnLogin, what: string): { ok: true; refreshMs?: number } | FlowFailed => {
  if (!ran.ran) {
    const why = ran.why === "cancelled" || ran.why === "timed-out" ? NOT_RUN[ran.why] : "broken"
    return { ok: false, why, message: `${what}: ${ran.message}`, fix: ran.fix }
  }
  const { result, unreachable, denied } = ran
  if (result.ok) return { ok: true, ...(result.nextRefreshMs === undefined ? {} : { refreshMs: result.nextRefreshMs }) }
  if (unreachable.length > 0 && result.reason !== "user_cancelled")
    return {
      ok: false,
      why: "unreachable",
      message: `${what} failed, and these hosts could not be reached: ${unreachable.join(", ")}`,
      fix: "try again when the network is there",
    }
  const kept = denied.length === 0 ? "" : `; its driver does not declare ${denied.join(", ")}`
  const said = result.message === "" ? "" : `: ${result.message}`
  return { ok: false, why: WHY[result.reason], message: `${what} says ${result.reason}${kept}${said}` }
}

const leftMs = ({ deadlineMs }: LoginDesk): number => Math.max(1, deadlineMs - Date.now())

export const ownMethod = (availability: (driver: RegisteredDriver) => Promise<DriverAvailability>): LoginMethod => {
  const may = ({ contract: { auth, code } }: RegisteredDriver): boolean => auth !== undefined && code !== undefined
  return {
    has: async (driver, name) => {
      const found = await availability(driver)
      return found.available && found.module?.own?.names.includes(name) === true
    },
    loginOf: (driver) =>
      may(driver)
        ? {
            method: "the driver's own function",
            needs: [],
            run: async (desk) => endOf(await desk.runOwn("login", leftMs(desk)), "the driver's own login"),
          }
        : undefined,
    refreshOf: (driver) =>
      may(driver)
        ? {
            method: "the driver's own function",
            run: async (desk) => endOf(await desk.runOwn("refresh", leftMs(desk)), "the driver's own refresh"),
          }
        : undefined,
  }
}
