/**
 * Step 4: the login state of the chosen driver, and, for the resolver, of every driver.
 *
 * Guarantees: a driver without an `auth` block needs none. One with secrets in `state.env` and no login is signed in
 * iff each of them resolves (C-18); one with a login, or with set-up steps, is signed in only once that was done.
 * Assumes: no store of secrets, logins or finished set-ups yet, so none of the latter ever is.
 */
import type {
  DriverContract,
  JsonObject,
  JsonValue,
  LoginProof,
  LoginSpec,
  ToolContract,
} from "../../manifest/types.ts"
import type { Failure } from "../failure.ts"
import type { RegisteredDriver } from "../registry/types.ts"
import type { AuthStatus } from "../resolver/types.ts"
import type { Routed, SignedIn, Step } from "./steps.ts"

/** A login as its manifest writes it, for whoever is to do it. */
export const loginDetails = ({ cmd, url, interactive, requiresCallbackUrl, completesWhen }: LoginSpec): JsonObject => ({
  ...(cmd === undefined ? {} : { cmd }),
  ...(url === undefined ? {} : { url }),
  ...(interactive ? { interactive } : {}),
  ...(requiresCallbackUrl ? { requires_callback_url: true } : {}),
  ...(completesWhen.length === 0 ? {} : { completes_when: Object.fromEntries(completesWhen.flatMap(proofDetails)) }),
})

const proofDetails = (proof: LoginProof): readonly (readonly [string, JsonValue])[] => {
  if (proof.by === "cmd") return Object.entries({ cmd: proof.cmd, exit_code: proof.exitCode })
  const { method, url, expectStatus } = proof.probe
  return [["http", { method, url, ...(expectStatus === undefined ? {} : { expect_status: expectStatus }) }]]
}

const authStatus = (driver: DriverContract): AuthStatus => {
  if (driver.setup.length > 0) return { state: "setup_required", pendingSetup: driver.setup.map((step) => step.id) }
  if (driver.auth === undefined) return { state: "authed" }
  const nothingNeeded = driver.auth.login === undefined && driver.auth.state.env.length === 0
  return { state: nothingNeeded ? "authed" : "unauthed" }
}

export const authStates = (drivers: readonly RegisteredDriver[]): ReadonlyMap<string, AuthStatus> =>
  new Map(drivers.map((driver) => [driver.key, authStatus(driver.contract)]))

/** Secrets that the contract requires, whichever driver serves it. */
export const missingSecrets = ({ requires: { secrets } }: ToolContract, driver: string): Failure | undefined =>
  secrets.length === 0
    ? undefined
    : {
        ok: false,
        code: "auth_required",
        message: `the tool needs secrets that this host does not hold: ${secrets.join(", ")}`,
        hint: "this host has no store of secrets yet",
        details: { driver, secrets: [...secrets] },
      }

export const signIn = (routed: Routed): Step<SignedIn> => {
  const { contract, key } = routed.driver
  const missing = missingSecrets(routed.tool, key)
  if (missing !== undefined) return missing
  const status = authStatus(contract)
  if (status.state === "authed")
    return { ok: true, value: { ...routed, authState: contract.auth === undefined ? "not-needed" : "authed" } }
  if (status.state === "setup_required")
    return {
      ok: false,
      code: "setup_required",
      message: `${key} has set-up steps that were not done: ${status.pendingSetup?.join(", ") ?? ""}`,
      details: { driver: key, pending: [...(status.pendingSetup ?? [])] },
    }
  return {
    ok: false,
    code: "auth_required",
    message: `${key} needs a login`,
    details: {
      driver: key,
      ...(contract.auth?.login === undefined ? {} : { login: loginDetails(contract.auth.login) }),
      env: [...(contract.auth?.state.env ?? [])],
    },
  }
}
