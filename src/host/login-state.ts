/** Where a login stands, for one driver, workspace and user. What leads from one to another is in `login/states.ts`. */
export const loginStates = [
  "unknown",
  "unavailable",
  "setup_required",
  "unauthed",
  "logging-in",
  "authed",
  "expired",
] as const

export type LoginState = (typeof loginStates)[number]
