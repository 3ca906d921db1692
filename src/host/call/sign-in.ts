/**
 * Step 4: the login state of the chosen driver, and, for the resolver, of every driver.
 *
 * Guarantees: a driver without an `auth` block needs none. One with secrets in `state.env` and no login is signed in
 * iff each of them resolves (C-18); one with a login, or with set-up steps, is signed in only once that was done.
 * Secrets are bound here, once it is clear that the call may have them.
 * Assumes: no store of logins or finished set-ups yet, so none of the latter ever is.
 */
import type { DriverContract, JsonObject, JsonValue, LoginProof, LoginSpec, SecretEntry } from "../../manifest/types.ts"
import type { Failure } from "../failure.ts"
import type { RegisteredDriver } from "../registry/types.ts"
import type { AuthStatus } from "../resolver/types.ts"
import { bindSecrets, type Binding, scopeFor, settingFix } from "../secrets/bind.ts"
import { type SecretNeed, secretNeeds } from "../secrets/needs.ts"
import { useOf } from "../secrets/scopes.ts"
import type { HostCore } from "./core.ts"
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

/** Secrets that a driver names and that have no value for who calls. */
type Lacks = (driver: RegisteredDriver) => AuthStatus["missing"]

const authStatus = (driver: DriverContract, missing: AuthStatus["missing"]): AuthStatus => {
  if (driver.setup.length > 0) return { state: "setup_required", pendingSetup: driver.setup.map((step) => step.id) }
  if (driver.auth === undefined) return { state: "authed" }
  if (driver.auth.login === undefined && missing === undefined) return { state: "authed" }
  return { state: "unauthed", ...(missing === undefined ? {} : { missing }) }
}

export const authStates = (drivers: readonly RegisteredDriver[], lacks: Lacks): ReadonlyMap<string, AuthStatus> =>
  new Map(drivers.map((driver) => [driver.key, authStatus(driver.contract, lacks(driver))]))

/** Who asks for a driver's secrets; without a folder, in no workspace of anybody's. */
const bindingOf = (
  core: HostCore,
  {
    tool,
    caller,
    folder,
    user = caller.user,
  }: Pick<Routed, "tool" | "caller"> & Partial<Pick<Routed, "folder" | "user">>,
  driver: RegisteredDriver,
): Binding => ({
  use: useOf(core, driver, folder?.identity, user),
  driver: driver.key,
  vouched: driver.vouched,
  tool,
  caller: { user, roles: caller.roles },
})

/** What a folder says of secrets that nobody vouches for does not decide what a vouched driver is given, nor how. */
const inventoryFor = ({ registry }: HostCore, { vouched }: RegisteredDriver): readonly SecretEntry[] =>
  vouched ? registry.vouchedSecrets : registry.secrets

/**
 * What the vault holds, where any of these needs a secret; else it is not opened. A vault that cannot be opened holds
 * nothing, and whoever needs it is told why when it is asked.
 */
export const lackedBy = async (
  core: HostCore,
  call: Pick<Routed, "tool" | "caller"> & Partial<Pick<Routed, "folder" | "user">>,
  drivers: readonly RegisteredDriver[],
): Promise<Lacks & { readonly fault?: Failure }> => {
  const needsOf = (driver: RegisteredDriver): readonly SecretNeed[] =>
    secretNeeds(driver.contract, { requires: { secrets: [], tools: [] } }, inventoryFor(core, driver))
  const isAsked = drivers.some((driver) => needsOf(driver).length > 0)
  const listed = isAsked ? await core.vault.list() : { ok: true as const, value: [] }
  const names = listed.ok ? listed.value : []
  const lacks: Lacks = (driver) => {
    const binding = bindingOf(core, call, driver)
    const slugs = needsOf(driver).flatMap((need) => (scopeFor(names, need, binding) === undefined ? [need.slug] : []))
    return slugs.length === 0 ? undefined : { slugs, fix: settingFix(slugs, binding) }
  }
  return Object.assign(lacks, listed.ok ? {} : { fault: listed })
}

/** Secrets that the contract requires, whichever driver serves it, and that are not there; for a listing. */
export const missingSecrets = async (
  core: HostCore,
  call: Pick<Routed, "tool" | "caller">,
  driver: RegisteredDriver,
): Promise<Failure | undefined> => {
  const needs = secretNeeds({}, call.tool, inventoryFor(core, driver))
  const bound = await bindSecrets(core.vault, needs, bindingOf(core, call, driver))
  return bound.ok ? undefined : bound
}

export const signIn = async (core: HostCore, routed: Routed): Promise<Step<SignedIn>> => {
  const { driver, tool } = routed
  const { contract, key } = driver
  const status = authStatus(contract, undefined)
  if (status.state === "setup_required")
    return {
      ok: false,
      code: "setup_required",
      message: `${key} has set-up steps that were not done: ${status.pendingSetup?.join(", ") ?? ""}`,
      details: { driver: key, pending: [...(status.pendingSetup ?? [])] },
    }
  if (status.state !== "authed")
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
  const needs = secretNeeds(contract, tool, inventoryFor(core, driver))
  const secrets = await bindSecrets(core.vault, needs, bindingOf(core, routed, driver))
  if (!secrets.ok) return secrets
  const authState = contract.auth === undefined ? "not-needed" : "authed"
  return { ok: true, value: { ...routed, authState, secrets: secrets.value } }
}
