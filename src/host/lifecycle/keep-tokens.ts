/**
 * Tokens for the daemon's API: issued, listed, revoked by the operator, and told apart when one is shown.
 *
 * Guarantees: a token is shown once, when it is made; what is kept is its SHA-256. It carries a user, folders, roles and
 * an end. One made for an agent can neither approve nor operate, whatever roles it is asked to have. One that expired, was
 * revoked, or whose record was damaged opens nothing, and looks like one that never was. Issuing and revoking are lines of
 * the audit log.
 */
import { createHash, randomBytes } from "node:crypto"
import { realpathSync } from "node:fs"
import { type Caller, isOperator, isRole, OWN_TENANT, type Role, tenantOf } from "../access/caller.ts"
import { isUserId } from "../access/os-user.ts"
import { createUlids } from "../data/ulid.ts"
import { callErrorOf, type Failure } from "../failure.ts"
import { hostLimits } from "../limits.ts"
import type { EventDraft } from "../receipts/event.ts"
import { type Store, StoreUnavailable, type TokenRecord } from "../store/store.ts"
import type { CallError, IssuedToken, ListOptions, TokenListing, TokenOptions, TokensOfHost } from "../types.ts"

type Told<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: CallError }

const PREFIX = "csn_"
const TOKEN = /^csn_[A-Za-z0-9_-]{43}$/
const hashOf = (token: string): string => createHash("sha256").update(token).digest("hex")
const DAY = 24 * 3600 * 1000
/** What a token of an agent's can never be. */
const PERSONS: readonly Role[] = ["approver", "operator", "act-for"]

const refuse = (
  code: Failure["code"],
  message: string,
  hint?: string,
  field?: string,
): { ok: false; error: CallError } => ({
  ok: false,
  error: callErrorOf({
    ok: false,
    code,
    message,
    details: field === undefined ? {} : { field },
    ...(hint === undefined ? {} : { hint }),
  }),
})
const notYours = refuse("unauthorised", "tokens are the operator's to issue, list and revoke")

const realFolders = (named: TokenOptions["workspaces"]): "any" | readonly string[] | { readonly missing: string } => {
  if (named === undefined || named === "any") return named ?? []
  const real: string[] = []
  for (const folder of named)
    try {
      real.push(realpathSync(folder))
    } catch {
      return { missing: folder }
    }
  return real
}

const listing = ({ id, tenant, facts, madeMs, expiresMs, revokedMs }: TokenRecord): TokenListing => ({
  id,
  tenant,
  user: facts.user,
  label: facts.label,
  agent: facts.agent,
  workspaces: facts.workspaces,
  roles: facts.roles,
  made: new Date(madeMs).toISOString(),
  by: facts.by,
  ...(expiresMs === undefined ? {} : { expires: new Date(expiresMs).toISOString() }),
  ...(revokedMs === undefined ? {} : { revoked: new Date(revokedMs).toISOString() }),
})

interface Parts {
  readonly store: () => Promise<Store>
  readonly record: (draft: EventDraft) => Promise<unknown>
  readonly callerOf: (of: "token" | "tokens", options: ListOptions) => Caller
}

const line = (caller: Caller, action: string, id: string, facts: TokenRecord["facts"]): EventDraft => ({
  actor: { id: caller.actor, role: "operator" },
  action,
  subject: { kind: "token", ref: id },
  metadata: { user: facts.user, agent: facts.agent, roles: [...facts.roles], label: facts.label },
})

const guarded = async <T>(work: () => Promise<Told<T>>): Promise<Told<T>> => {
  try {
    return await work()
  } catch (error) {
    if (error instanceof StoreUnavailable) return refuse("internal", error.message, error.fix)
    throw error
  }
}

export const tokensOf = ({ store, record, callerOf }: Parts): TokensOfHost => {
  const nextId = createUlids()
  const issue = async (options: TokenOptions): Promise<Told<IssuedToken>> => {
    const caller = callerOf("token", options)
    if (!isOperator(caller)) return notYours
    const { user = caller.user, label = "", agent = true, roles: wanted, tenant = tenantOf(caller), days } = options
    if (!isUserId(user))
      return refuse("input_invalid", "`user` is not a user id", "use letters, digits, and . _ @ -", "user")
    if (!isUserId(tenant))
      return refuse("input_invalid", "`tenant` is not a name", "use letters, digits, and . _ @ -", "tenant")
    if (tenantOf(caller) !== OWN_TENANT && tenant !== tenantOf(caller)) return notYours
    const roles = wanted ?? (agent ? ["caller"] : ["caller", "approver"])
    const odd = roles.find((role) => !isRole(role))
    if (odd !== undefined)
      return refuse(
        "input_invalid",
        `there is no role ${odd.slice(0, 40)}`,
        "use caller, approver, operator, act-for or pin",
        "roles",
      )
    const persons = PERSONS.find((role) => agent && roles.includes(role))
    if (persons !== undefined)
      return refuse(
        "input_invalid",
        `a token for an agent cannot be ${persons}`,
        "make one for a person: --person",
        "roles",
      )
    if (tenant !== OWN_TENANT && roles.includes("operator"))
      return refuse("input_invalid", "only this host's own tenant has operators", "leave the role out", "roles")
    const workspaces = realFolders(options.workspaces)
    if (typeof workspaces === "object" && "missing" in workspaces)
      return refuse("not_found", `there is no folder ${workspaces.missing}`, "name a folder that exists", "workspaces")
    if (workspaces !== "any" && workspaces.length === 0)
      return refuse(
        "input_invalid",
        "a token needs the folders that it may be used on",
        "name one: --workspace DIR, or --any-workspace",
        "workspaces",
      )
    const last = hostLimits.tokenDays.value
    const lasting = days ?? last
    if (!(lasting > 0 && lasting <= last))
      return refuse("input_invalid", `a token lasts more than 0 and at most ${last} days`, undefined, "days")
    const token = PREFIX + randomBytes(32).toString("base64url")
    const madeMs = Date.now()
    const made: TokenRecord = {
      id: nextId(),
      tenant,
      hash: hashOf(token),
      facts: {
        user,
        label: label.slice(0, 200),
        agent,
        workspaces,
        roles,
        mayApprove: !agent && roles.includes("approver"),
        by: caller.actor,
      },
      madeMs,
      expiresMs: madeMs + lasting * DAY,
    }
    await record(line(caller, "token.issued", made.id, made.facts))
    await (await store()).issueToken(made)
    return { ok: true, value: { ...listing(made), token } }
  }
  return {
    issue: (options = {}) => guarded(() => issue(options)),
    list: (options = {}) =>
      guarded(async () => {
        const caller = callerOf("tokens", options)
        if (!isOperator(caller)) return notYours
        return { ok: true, value: (await (await store()).tokens(options.tenant ?? tenantOf(caller))).map(listing) }
      }),
    revoke: (id, options = {}) =>
      guarded(async () => {
        const caller = callerOf("tokens", options)
        if (!isOperator(caller)) return notYours
        const opened = await store()
        const tenant = options.tenant ?? tenantOf(caller)
        const found = (await opened.tokens(tenant)).find((one) => one.id === id)
        const revoked = found !== undefined && (await opened.revokeToken(tenant, id, Date.now()))
        if (found !== undefined && revoked) await record(line(caller, "token.revoked", id, found.facts))
        return revoked
          ? { ok: true, value: undefined }
          : refuse("not_found", "there is no such token that is still good", "`caisson tokens list` lists them")
      }),
    callerOf: async (token) => {
      if (!TOKEN.test(token)) return undefined
      const found = await (await store()).token(hashOf(token))
      if (found === undefined || found.revokedMs !== undefined) return undefined
      if (found.expiresMs !== undefined && found.expiresMs <= Date.now()) return undefined
      const { user, agent, workspaces, mayApprove } = found.facts
      const roles = found.facts.roles.filter(isRole).filter((role) => !(agent && PERSONS.includes(role)))
      return {
        ...(found.tenant === OWN_TENANT ? {} : { tenant: found.tenant }),
        user,
        actor: user,
        how: "token",
        workspaces,
        roles,
        mayApprove: mayApprove && !agent,
      }
    },
  }
}
