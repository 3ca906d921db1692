/**
 * `login`, `logout` and `auth`: a person's way to the login state machine.
 *
 * Guarantees: a caller logs in and out for its own user, or one that it may act for, in workspaces that are its own, and
 * with drivers of tools that it may use; any other driver is not there for it. What is refused is on record, as are all
 * logins, refreshes and logouts. Nothing that is answered holds a token.
 */
import { type Caller, isOperator, mayActForUser, subjectOf } from "../access/caller.ts"
import { toolsFor } from "../call/admission/find-tool.ts"
import { openWorkspace } from "../call/admission/workspace.ts"
import type { HostCore } from "../call/core.ts"
import { availabilityOf } from "../call/route.ts"
import { workspaceId } from "../data/workspaces.ts"
import { callErrorOf, type Failure } from "../failure.ts"
import { type LoginOutcome, type LoginStatus, needsLogin } from "../login/logins.ts"
import type { LoginOwner } from "../login/owner.ts"
import type { RegisteredDriver } from "../registry/types.ts"
import type { AuthListing, LoginDriverOptions, LoginReport, LogoutReport, WorkspaceOptions } from "../types.ts"

type Found = { readonly ok: true; readonly owner: LoginOwner; readonly workspace: string } | Failure

const noSuchDriver = (ref: string): Failure => ({
  ok: false,
  code: "not_found",
  message: `there is no driver ${ref.slice(0, 120)}`,
  hint: "`caisson drivers` lists what is registered",
  details: {},
})

const driversFor = (core: HostCore, caller: Caller): readonly RegisteredDriver[] => {
  if (isOperator(caller)) return core.registry.drivers
  const told = toolsFor(core, caller)
  return core.registry.drivers.filter(({ bindings }) => bindings.some(({ tool }) => told.includes(tool)))
}

const placeOf = (
  core: HostCore,
  caller: Caller,
  named: string | undefined,
): { readonly ok: true; readonly id: string; readonly path: string } | Failure => {
  const opened = openWorkspace(core, caller, named)
  if (!opened.ok) return opened
  using folder = opened.value.folder
  return { ok: true, id: workspaceId(core.data, folder.identity), path: folder.path }
}

const find = (core: HostCore, ref: string, caller: Caller, { workspace }: WorkspaceOptions): Found => {
  if (!mayActForUser(caller))
    return { ok: false, code: "unauthorised", message: "a caller logs in for its own user alone", details: {} }
  const driver = core.registry.driver(ref)
  if (driver === undefined || !driversFor(core, caller).includes(driver)) return noSuchDriver(ref)
  const place = placeOf(core, caller, workspace)
  if (!place.ok) return place
  const { actor, roles } = caller
  return {
    ok: true,
    owner: { driver, workspace: place.id, user: subjectOf(caller), actor, roles },
    workspace: place.path,
  }
}

const told = ({ state, facts, openSetup, why }: LoginStatus) => ({
  state,
  ...(facts.account === undefined ? {} : { account: facts.account }),
  ...(facts.expiresMs === undefined ? {} : { expires: new Date(facts.expiresMs).toISOString() }),
  ...(facts.proven === undefined ? {} : { proven: new Date(facts.proven.wallMs).toISOString() }),
  ...(facts.refreshed === undefined ? {} : { refreshed: new Date(facts.refreshed.wallMs).toISOString() }),
  ...(openSetup.length === 0 ? {} : { pending: openSetup }),
  ...(why === undefined ? {} : { why }),
})

const failureOf = (key: string, outcome: Extract<LoginOutcome, { ok: false }>): Failure => {
  const { status } = outcome
  const details = { driver: key, state: status.state }
  if (outcome.at === "vault")
    return {
      ...outcome.failure,
      message: `${key}: ${outcome.failure.message}`,
      details: { ...outcome.failure.details, ...details },
    }
  if (!("end" in outcome))
    return {
      ok: false,
      code: "auth_required",
      message: `${key}: ${outcome.message}`,
      ...(outcome.fix === undefined ? {} : { hint: outcome.fix }),
      details,
    }
  const { why, message, fix } = outcome.end
  const hint = fix === undefined ? {} : { hint: fix }
  if (outcome.at === "setup") {
    const { step } = outcome.end
    const code = why === "needs-person" ? "setup_required" : why === "cancelled" ? "cancelled" : "setup_failed"
    return {
      ok: false,
      code,
      message: `${key}: the set-up step ${step}: ${message}`,
      ...(code === "setup_required" ? { hint: "run the login at a terminal, or answer its questions on stdin" } : hint),
      details: { ...details, step, pending: [...status.openSetup] },
    }
  }
  return {
    ok: false,
    code: why === "needs-person" ? "auth_required" : "auth_failed",
    message: `${key}: ${message}`,
    ...(why === "needs-person" ? { hint: "run the login at a terminal, or answer its questions on stdin" } : hint),
    details: { ...details, why },
  }
}

const refused = async (
  core: HostCore,
  caller: Caller,
  ref: string,
  action: string,
  failure: Failure,
): Promise<Failure> => {
  await core.record({
    actor: { id: caller.actor },
    action,
    subject: { kind: "login", ref: ref.slice(0, 256).toWellFormed() || "none" },
    metadata: { code: failure.code, reason: failure.message, user_id: caller.user },
  })
  return failure
}

export const loginDriver = async (
  core: HostCore,
  ref: string,
  caller: Caller,
  {
    person = {},
    signal = new AbortController().signal,
    onProgress,
    waits = false,
    timeoutMs,
    ...where
  }: LoginDriverOptions,
): Promise<LoginReport> => {
  const ended = (failure: Failure): LoginReport => ({ ok: false, error: callErrorOf(failure) })
  const found = find(core, ref, caller, where)
  if (!found.ok) return ended(await refused(core, caller, ref, "login.denied", found))
  const { owner } = found
  const { key } = owner.driver
  if (!needsLogin(owner.driver)) return { ok: true, driver: key, state: "authed", already: true }
  const there = await availabilityOf(core, owner.driver)
  if (!there.available)
    return ended({
      ok: false,
      code: there.code,
      message: `${key}: ${there.reason}`,
      hint: there.fix,
      details: { driver: key },
    })
  const outcome = await core.logins.login(owner, {
    person,
    signal,
    waits,
    ...(onProgress === undefined ? {} : { tell: onProgress }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  })
  if (!outcome.ok) return ended(failureOf(key, outcome))
  const { status, method, already } = outcome
  return { ok: true, driver: key, ...told(status), already, ...(method === undefined ? {} : { method }) }
}

export const logoutDriver = async (
  core: HostCore,
  ref: string,
  caller: Caller,
  { signal = new AbortController().signal, ...where }: WorkspaceOptions & { readonly signal?: AbortSignal },
): Promise<LogoutReport> => {
  const found = find(core, ref, caller, where)
  if (!found.ok) return { ok: false, error: callErrorOf(await refused(core, caller, ref, "logout.denied", found)) }
  const { key } = found.owner.driver
  const done = await core.logins.logout(found.owner, { signal })
  if (!done.ok)
    return {
      ok: false,
      error: callErrorOf({
        ok: false,
        code: "conflict",
        message: `${key}: ${done.message}`,
        hint: "wait for it, then try again",
        details: {},
      }),
    }
  return { ok: true, driver: key, was: done.was, ...(done.revoked === undefined ? {} : { revoked: done.revoked }) }
}

const nextOf = ({ key }: RegisteredDriver, { state }: LoginStatus): string | undefined => {
  if (state === "authed") return undefined
  return state === "logging-in" ? "wait for the login that is under way" : `caisson login ${key}`
}

/** Drivers that need something of a person, as they stand for the caller's user in one workspace. */
export const listAuth = async (
  core: HostCore,
  caller: Caller,
  { workspace }: WorkspaceOptions,
): Promise<readonly AuthListing[] | Failure> => {
  const place = placeOf(core, caller, workspace)
  if (!place.ok) return place
  const { user, actor, roles } = caller
  const drivers = mayActForUser(caller) ? driversFor(core, caller).filter(needsLogin) : []
  return Promise.all(
    drivers.map(async (driver) => {
      const status = await core.logins.status({ driver, workspace: place.id, user: subjectOf(caller), actor, roles })
      const next = nextOf(driver, status)
      return {
        driver: driver.key,
        user,
        workspace: place.path,
        ...told(status),
        ...(next === undefined ? {} : { next }),
      }
    }),
  )
}
