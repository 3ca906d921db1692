/**
 * Grants: a person's yes beforehand, to so many calls of one tool, until a moment: made, listed, revoked.
 *
 * Guarantees: only whose own yes counts may give one, for their own calls, or as an approver for another user's of the same
 * tenant; a token made for an agent never can. None reaches further than who gives it: the folder is one that they may use,
 * and `any` is for those who may use any. Whoever may not be told of a grant gets the answer for one that is not there.
 * Making and revoking are lines of the audit log, written before the store is, so that no grant is without its line.
 * Does not: decide whether a rule lets the giver's yes count for a call; that is asked anew at each call.
 */
import { type Caller, isAllowedFolder, isOperator, mayActForUser, tenantOf } from "../access/caller.ts"
import { isUserId } from "../access/os-user.ts"
import { findTool } from "../call/admission/find-tool.ts"
import { openWorkspace } from "../call/admission/workspace.ts"
import type { HostCore } from "../call/core.ts"
import { createUlids } from "../data/ulid.ts"
import { workspaceId } from "../data/workspaces.ts"
import { callErrorOf, type Failure } from "../failure.ts"
import { hostLimits } from "../limits.ts"
import type { EventDraft } from "../receipts/event.ts"
import { isGood } from "../store/grants.ts"
import { now } from "../store/instant.ts"
import { type GrantRecord, StoreUnavailable } from "../store/store.ts"
import type { CallError, GrantListing, GrantOptions, GrantsOfHost, ListOptions } from "../types.ts"

type Told<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: CallError }

const DAY = 24 * 3600 * 1000
const bounds = { count: hostLimits.grants.value, keepMs: hostLimits.grantKeepMs.value }

const refuse = (
  code: Failure["code"],
  message: string,
  hint?: string,
  field?: string,
): { readonly ok: false; readonly error: CallError } => ({
  ok: false,
  error: callErrorOf({
    ok: false,
    code,
    message,
    details: field === undefined ? {} : { field },
    ...(hint === undefined ? {} : { hint }),
  }),
})
const failed = (failure: Failure) => ({ ok: false as const, error: callErrorOf(failure) })
const noSuchGrant = refuse("not_found", "there is no such grant that is still good", "`caisson grants list` lists them")

const listing = (grant: GrantRecord): GrantListing => ({
  id: grant.id,
  tenant: grant.tenant,
  user: grant.user,
  tool: grant.tool,
  workspace: grant.workspace === undefined ? "any" : (grant.facts.path ?? ""),
  uses: grant.uses,
  used: grant.used,
  made: new Date(grant.made.wallMs).toISOString(),
  by: grant.facts.by,
  expires: new Date(grant.expiresMs).toISOString(),
  ...(grant.revokedMs === undefined ? {} : { revoked: new Date(grant.revokedMs).toISOString() }),
  reason: grant.facts.reason,
  good: isGood(grant, now()),
})

const line = (
  caller: Caller,
  action: string,
  { id, tenant, user, tool, facts, ...grant }: GrantRecord,
): EventDraft => ({
  actor: { id: caller.actor, role: isOperator(caller) ? "operator" : "approver" },
  action,
  subject: { kind: "grant", ref: id },
  metadata: {
    tenant,
    user_id: user,
    tool,
    workspace_id: facts.path ?? "any",
    uses: grant.uses,
    used: grant.used,
    expires: new Date(grant.expiresMs).toISOString(),
    reason: facts.reason,
  },
})

/** When it ends, or what is wrong with what was said of that. */
const endOf = (
  { until, days }: Pick<GrantOptions, "until" | "days">,
  fromMs: number,
): number | ReturnType<typeof refuse> => {
  if (until !== undefined && days !== undefined)
    return refuse("input_invalid", "`until` and `days` say the same thing twice", "give one of them", "until")
  const most = hostLimits.grantDays.value
  const endMs = until === undefined ? fromMs + (days ?? 1) * DAY : Date.parse(until)
  const field = until === undefined ? "days" : "until"
  if (!Number.isFinite(endMs))
    return refuse("input_invalid", `\`${field}\` is no moment`, "write 2027-01-31, or 2027-01-31T18:00:00Z", field)
  const ms = Math.floor(endMs)
  if (ms <= fromMs || ms > fromMs + most * DAY)
    return refuse("input_invalid", `a grant ends in the future, within ${most} days`, "name another end", field)
  return ms
}

/** Whose it is to be told of: who gave it, whose calls it is for, approvers of that folder, operators; in one tenant. */
const maySee = (caller: Caller, { tenant, user, facts: { by, path } }: GrantRecord): boolean =>
  tenant === tenantOf(caller) &&
  (isOperator(caller) ||
    (mayActForUser(caller) &&
      (user === caller.user ||
        by === caller.actor ||
        (caller.roles.includes("approver") &&
          (path === undefined ? caller.workspaces === "any" : isAllowedFolder(path, caller.workspaces))))))

const guarded = async <T>(work: () => Promise<Told<T>>): Promise<Told<T>> => {
  try {
    return await work()
  } catch (error) {
    if (error instanceof StoreUnavailable) return refuse("internal", error.message, error.fix)
    throw error
  }
}

export const grantsOf = (
  core: HostCore,
  callerOf: (of: "grant" | "list", options: ListOptions) => Caller,
): GrantsOfHost => {
  const nextId = createUlids()

  const placeFor = (
    caller: Caller,
    named: string | undefined,
  ): Told<Pick<GrantRecord, "workspace"> & { readonly path?: string }> => {
    if (named === undefined)
      return refuse(
        "input_invalid",
        "a grant needs the folder that its calls are on",
        "name one: --workspace DIR, or --any-workspace",
        "workspace",
      )
    if (named === "any")
      return caller.workspaces === "any"
        ? { ok: true, value: {} }
        : refuse("unauthorised", "only who may use any folder can give a grant for any", "name one of yours")
    const opened = openWorkspace(core, caller, named)
    if (!opened.ok) return failed(opened)
    using folder = opened.value.folder
    return { ok: true, value: { workspace: workspaceId(core.data, folder.identity), path: folder.path } }
  }

  const create = async (options: GrantOptions): Promise<Told<GrantListing>> => {
    const caller = callerOf("grant", options)
    const { tool: ref, user = caller.user, workspace, uses = 1, reason = "" } = options
    if (!caller.mayApprove || !mayActForUser(caller))
      return refuse("unauthorised", "this caller may not give a grant", "ask a person who may approve")
    if (!isUserId(user))
      return refuse("input_invalid", "`user` is not a user id", "use letters, digits, and . _ @ -", "user")
    if (user !== caller.user && !caller.roles.includes("approver"))
      return refuse("unauthorised", "only an approver may give a grant for another user's calls")
    const most = hostLimits.grantUses.value
    if (!(Number.isSafeInteger(uses) && uses >= 1 && uses <= most))
      return refuse("input_invalid", `a grant has 1 to ${most} uses`, "write a whole number", "uses")
    if (reason.length > hostLimits.reasonChars.value)
      return refuse(
        "input_invalid",
        `a reason has at most ${hostLimits.reasonChars.value} characters`,
        undefined,
        "reason",
      )
    const made = now()
    const expiresMs = endOf(options, made.wallMs)
    if (typeof expiresMs !== "number") return expiresMs
    const found = findTool(core, caller, String(ref))
    if (!found.ok) return failed(found)
    const { tool } = found.value
    const place = placeFor(caller, workspace)
    if (!place.ok) return place
    const { path, ...where } = place.value
    const grant: GrantRecord = {
      id: nextId(),
      tenant: tenantOf(caller),
      user,
      tool: `${tool.id}@${tool.major}`,
      ...where,
      uses,
      used: 0,
      made,
      expiresMs,
      facts: {
        by: caller.actor,
        roles: caller.roles,
        reason: reason.toWellFormed(),
        ...(path === undefined ? {} : { path: path.toWellFormed() }),
      },
    }
    const store = await core.store()
    await core.record(line(caller, "grant.created", grant))
    if (!(await store.grant(grant, bounds)))
      return refuse(
        "limit_exceeded",
        `there are ${bounds.count} grants that are good`,
        "revoke some, or wait until they end",
      )
    return { ok: true, value: listing(grant) }
  }

  return {
    create: (options) => guarded(() => create(options)),
    list: (options = {}) =>
      guarded(async () => {
        const caller = callerOf("list", options)
        const all = await (await core.store()).grants({ tenant: tenantOf(caller) })
        return { ok: true, value: all.filter((grant) => maySee(caller, grant)).map(listing) }
      }),
    revoke: (id, options = {}) =>
      guarded(async () => {
        const caller = callerOf("list", options)
        const tenant = tenantOf(caller)
        const store = await core.store()
        const found = (await store.grants({ tenant })).find((one) => one.id === String(id))
        if (found === undefined || !maySee(caller, found)) return noSuchGrant
        if (!caller.mayApprove && !isOperator(caller))
          return refuse("unauthorised", "this caller may not revoke a grant", "ask a person who may approve")
        if (!(await store.revokeGrant(tenant, found.id, Date.now()))) return noSuchGrant
        await core.record(line(caller, "grant.revoked", found))
        return { ok: true, value: undefined }
      }),
  }
}
