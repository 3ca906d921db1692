/**
 * The login state machine (AIP-29, AIP-30, C-18), as one table: for one driver of one origin, in one workspace, for one
 * user.
 *
 * Guarantees: pure. What the table does not name does not happen: `after` then answers nothing, and whoever asked keeps the
 * state that it had. `expired` is left at once. A refresh that could not be made for reasons of the network changes nothing;
 * only a refusal ends a login.
 * Does not: know clocks, commands or the store.
 */
import { type LoginState, loginStates } from "../login-state.ts"

/** What may be done for a driver in a state; `execute` is a call of one of its tools. */
type Operation = "check" | "install" | "setup" | "login" | "refresh" | "execute"

const loginEvents = [
  /** what it runs is there and of the right version; no set-up step is open */
  "check-ok",
  /** the same, and set-up steps are open */
  "check-ok-setup-open",
  "check-failed",
  /** each step was done or skipped */
  "setup-done",
  "login-started",
  /** `completes_when` held */
  "login-proven",
  "login-failed",
  "login-cancelled",
  "login-timed-out",
  /** whoever ran it is gone */
  "login-abandoned",
  "refreshed",
  /** the login is gone, as the other side says */
  "refresh-refused",
  /** nobody said anything of the login: the network, this machine, or a cancelled call */
  "refresh-unreachable",
  "expiry-detected",
  "expiry-settled",
  "logged-out",
  /** a driver without a login: each secret that it names is there, and is another than the one that expired (C-18) */
  "secrets-resolved",
  "secrets-missing",
] as const
export type LoginEvent = (typeof loginEvents)[number]

interface Row {
  readonly allows: readonly Operation[]
  readonly leaves: Readonly<Partial<Record<LoginEvent, LoginState>>>
}

const checked = {
  "check-ok": "unauthed",
  "check-ok-setup-open": "setup_required",
  "check-failed": "unavailable",
} as const

export const loginTable: Readonly<Record<LoginState, Row>> = Object.freeze({
  unknown: { allows: ["check"], leaves: checked },
  unavailable: { allows: ["check", "install"], leaves: checked },
  setup_required: { allows: ["setup"], leaves: { "setup-done": "unauthed" } },
  unauthed: { allows: ["login"], leaves: { "login-started": "logging-in", "secrets-resolved": "authed" } },
  "logging-in": {
    allows: [],
    leaves: {
      "login-proven": "authed",
      "login-failed": "unauthed",
      "login-cancelled": "unauthed",
      "login-timed-out": "unauthed",
      "login-abandoned": "unauthed",
    },
  },
  authed: {
    allows: ["execute", "refresh"],
    leaves: {
      refreshed: "authed",
      "refresh-unreachable": "authed",
      "refresh-refused": "unauthed",
      "expiry-detected": "expired",
      "logged-out": "unauthed",
      "secrets-missing": "unauthed",
    },
  },
  expired: { allows: [], leaves: { "expiry-settled": "unauthed" } },
})

/** The state after an event; undefined where the table has no such edge, and nothing changes. */
export const after = (state: LoginState, event: LoginEvent): LoginState | undefined => loginTable[state].leaves[event]

export const allows = (state: LoginState, operation: Operation): boolean => loginTable[state].allows.includes(operation)

/** Every event in its order, from a state; undefined where one of them is not in the table. */
export const afterAll = (state: LoginState, events: readonly LoginEvent[]): LoginState | undefined =>
  events.reduce<LoginState | undefined>((at, event) => (at === undefined ? undefined : after(at, event)), state)

/** For whoever goes through all of them. */
export const everyState: readonly LoginState[] = loginStates
export const everyEvent: readonly LoginEvent[] = loginEvents
