/**
 * A driver's own `login` or `refresh` function, run sealed in the driver's home. Types alone; `call/running/outside/own-login.ts`
 * makes it.
 *
 * The function is called as AIP-30 has it, `({ context, signal })`, in a fresh process: with the driver's home of this
 * driver, workspace and user, the hosts that the driver declares and the operator allows, the secrets that it is bound to,
 * and an empty folder in the place of the workspace. What it leaves in the home, of what the driver declares to keep, is
 * durable before the answer. Its result is its own word: whether somebody is signed in is proven elsewhere.
 */
import type { RegisteredDriver } from "../registry/types.ts"
import type { SecretUse } from "../secrets/vault.ts"
import type { BoundSecret } from "../secrets/bind.ts"

export interface OwnLogin {
  readonly driver: RegisteredDriver
  readonly name: "login" | "refresh"
  /** the folder of this driver's state for this workspace and user */
  readonly home: string
  /** whose tokens are, where some are captured while it runs */
  readonly owner?: SecretUse
  readonly secrets?: readonly BoundSecret[]
  readonly timeoutMs: number
}

/** `LoginResult` or `RefreshResult` (AIP-30), read. */
export type OwnLoginResult =
  | { readonly ok: true; readonly nextRefreshMs?: number }
  | {
      readonly ok: false
      readonly reason: "user_cancelled" | "callback_failed" | "auth_expired" | "upstream_error"
      readonly message: string
    }

export type RanOwnLogin =
  | {
      readonly ran: true
      readonly result: OwnLoginResult
      /** declared hosts that could not be reached while it ran, and hosts that it was kept from */
      readonly unreachable: readonly string[]
      readonly denied: readonly string[]
    }
  /**
   * `absent`: the driver brings no such function. `broken`: it threw, answered with no result, or broke a limit.
   * `lost`: it ran, and what it left in the home could not be kept.
   */
  | {
      readonly ran: false
      readonly why: "absent" | "unavailable" | "unsealed" | "broken" | "timed-out" | "cancelled" | "lost"
      readonly message: string
      readonly fix: string
    }

export type RunOwnLogin = (login: OwnLogin, signal: AbortSignal) => Promise<RanOwnLogin>
