/**
 * Step 4: the login state of the chosen driver, and, for the resolver, of every driver.
 *
 * Guarantees: a driver without an `auth` block and set-up steps needs nothing. One with secrets in `state.env` and no
 * login is signed in iff each of them resolves (C-18); one with a login, or with set-up steps, only once that was done and
 * proven. What is due is refreshed before the call; a login that another one has under way is waited for where a person is
 * there, and else refused at once. Secrets are bound here, once it is clear that the call may have them.
 */
import { subjectOf } from "../access/caller.ts"
import type { JsonObject, JsonValue, LoginProof, LoginSpec, SecretEntry } from "../../manifest/types.ts"
import { workspaceId } from "../data/workspaces.ts"
import type { Failure } from "../failure.ts"
import { type LoginStatus, needsLogin } from "../login/logins.ts"
import type { LoginOwner } from "../login/owner.ts"
import type { RegisteredDriver } from "../registry/types.ts"
import type { AuthStatus } from "../resolver/types.ts"
import { bindSecrets, type Binding, scopeFor, settingFix } from "../secrets/bind.ts"
import { grantedBy, type SecretNeed, secretNeeds } from "../secrets/needs.ts"
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

/** Who asks, as far as it is known: without a folder, in no workspace of anybody's. */
type Asking = Pick<Routed, "tool" | "caller"> & Partial<Pick<Routed, "folder" | "user">>

/** Secrets that a driver names and that have no value for who calls. */
type Lacks = (driver: RegisteredDriver) => AuthStatus["missing"]

export const ownerOf = (
  core: HostCore,
  { caller, folder, user = subjectOf(caller) }: Asking,
  driver: RegisteredDriver,
): LoginOwner => ({
  driver,
  workspace: folder === undefined ? "" : workspaceId(core.data, folder.identity),
  user,
  actor: caller.actor,
  roles: caller.roles,
})

export const authStates = async (
  core: HostCore,
  asking: Asking,
  drivers: readonly RegisteredDriver[],
  lacks: Lacks,
): Promise<ReadonlyMap<string, AuthStatus & { readonly fault?: Failure }>> =>
  new Map(
    await Promise.all(
      drivers.map(async (driver) => [driver.key, await authState(core, asking, driver, lacks)] as const),
    ),
  )

const authState = async (
  core: HostCore,
  asking: Asking,
  driver: RegisteredDriver,
  lacks: Lacks,
): Promise<AuthStatus & { readonly fault?: Failure }> => {
  if (!needsLogin(driver)) return { state: "authed" }
  const missing = lacks(driver)
  const owner = ownerOf(core, asking, driver)
  const isByKeys = await core.logins.isByKeys(owner)
  // Of a driver that has secrets alone, those that are not there say all; nothing has to be looked up.
  if (isByKeys && driver.contract.setup.length === 0 && missing !== undefined) return { state: "unauthed", missing }
  const { state, openSetup, why, fault } = await core.logins.status(owner)
  return {
    state,
    ...(openSetup.length === 0 ? {} : { pendingSetup: openSetup }),
    ...(missing === undefined || !isByKeys ? {} : { missing }),
    ...(why === undefined ? {} : { why }),
    ...(fault === undefined ? {} : { fault }),
  }
}

const bindingOf = (
  core: HostCore,
  { tool, caller, folder, user = subjectOf(caller) }: Asking,
  driver: RegisteredDriver,
): Binding => ({
  use: useOf(core, driver, folder?.identity, user),
  driver: driver.key,
  vouched: driver.vouched,
  tool,
  caller: { user, roles: caller.roles },
})

/** What a folder says of secrets that nobody vouches for does not decide what a vouched driver is given, nor how. */
export const inventoryFor = (
  { registry }: Pick<HostCore, "registry">,
  { vouched }: RegisteredDriver,
): readonly SecretEntry[] => (vouched ? registry.vouchedSecrets : registry.secrets)

/**
 * What the vault holds, where any of these needs a secret; else it is not opened. A vault that cannot be opened holds
 * nothing, and whoever needs it is told why when it is asked.
 */
export const lackedBy = async (
  core: HostCore,
  call: Asking,
  drivers: readonly RegisteredDriver[],
): Promise<Lacks & { readonly fault?: Failure }> => {
  // What the rules of a secret deny is told when the call is bound; the vault is not asked about it (AIP-19).
  const needsOf = (driver: RegisteredDriver): readonly SecretNeed[] =>
    secretNeeds(driver.contract, { requires: { secrets: [], tools: [] } }, inventoryFor(core, driver)).filter(
      (need) =>
        need.optional !== true && grantedBy(need, call.tool, bindingOf(core, call, driver).caller) !== undefined,
    )
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

/** What a person types to sign in for this call. */
const loginCommand = ({ driver, workspace, user, caller }: Routed): string => {
  const quoted = /^[\w./@-]+$/.test(workspace) ? workspace : `'${workspace.replaceAll("'", "'\\''")}'`
  return `caisson login ${driver.key} --workspace ${quoted}${user === caller.actor ? "" : ` --user ${user}`}`
}

const reasonsOf: Readonly<Partial<Record<LoginStatus["state"], string>>> = {
  "logging-in": "has a login under way",
  expired: "has a login that expired",
}

/** Nobody is signed in: what somebody has to do about it. */
export const signInNeeded = (routed: Routed, { state, openSetup, why }: LoginStatus): Failure => {
  const { key, contract } = routed.driver
  const command = loginCommand(routed)
  if (openSetup.length > 0)
    return {
      ok: false,
      code: "setup_required",
      message: `${key} has set-up steps that were not done: ${openSetup.join(", ")}`,
      hint: `run \`${command}\``,
      details: {
        driver: key,
        pending: [...openSetup],
        steps: contract.setup
          .filter(({ id }) => openSetup.includes(id))
          .map(({ id, kind, description }) => ({ id, kind, ...(description === undefined ? {} : { description }) })),
        command,
      },
    }
  return {
    ok: false,
    code: "auth_required",
    message: `${key} ${reasonsOf[state] ?? "needs a login"}${why === undefined ? "" : `: ${why}`}`,
    hint: state === "logging-in" ? "wait for it, then run the call again" : `run \`${command}\``,
    details: {
      driver: key,
      state,
      ...(contract.auth?.login === undefined ? {} : { login: loginDetails(contract.auth.login) }),
      env: [...(contract.auth?.state.env ?? [])],
      command,
    },
  }
}

/** `only`: nothing is to be run, so that nothing is refreshed or waited for. */
export const signIn = async (core: HostCore, routed: Routed, only: "look" | "use" = "use"): Promise<Step<SignedIn>> => {
  const { driver, tool, signal, ask } = routed
  const { contract } = driver
  const owner = ownerOf(core, routed, driver)
  let freshness: number | undefined
  if (needsLogin(driver) && (contract.setup.length > 0 || !(await core.logins.isByKeys(owner)))) {
    const status = await (only === "look"
      ? core.logins.status(owner)
      : core.logins.ready(owner, { waits: ask !== undefined, signal }))
    if (status.state !== "authed") return status.fault ?? signInNeeded(routed, status)
    freshness = status.facts.freshness
  }
  const needs = secretNeeds(contract, tool, inventoryFor(core, driver))
  const secrets = await bindSecrets(core.vault, needs, bindingOf(core, routed, driver))
  if (!secrets.ok) return secrets
  if (freshness === undefined && (contract.auth?.state.env.length ?? 0) > 0) {
    const status = await core.logins.status(owner)
    if (status.state !== "authed") return status.fault ?? signInNeeded(routed, status)
    freshness = status.facts.freshness
  }
  const authState = contract.auth === undefined ? "not-needed" : "authed"
  return {
    ok: true,
    value: { ...routed, authState, secrets: secrets.value, ...(freshness === undefined ? {} : { freshness }) },
  }
}
