/**
 * Who calls, apart from what is asked: an argument beside the request, never a part of it.
 *
 * Guarantees: pure. Nothing of a caller is read from a request; where no caller is named it is the process itself, whose
 * OS user owns the data folder. Assumes: whoever makes a `Caller` has authenticated it.
 */
import { isIP } from "node:net"
import { isAbsolute, resolve, sep } from "node:path"
import { unknownKey } from "../unknown-key.ts"
import { isUserId, osUser } from "./os-user.ts"

const ROLES = ["caller", "approver", "operator", "act-for", "pin"] as const
/**
 * `caller`: may make calls. `approver`: may decide on calls of others. `operator`: owns this host, and is told of
 * everything in it. `act-for`: may call in the name of another user. `pin`: may say which driver serves its calls.
 */
export type Role = (typeof ROLES)[number]
const WAYS = ["process", "socket", "token", "mcp"] as const

export interface Caller {
  /** whose data this is about; absent: this host's own */
  readonly tenant?: string
  /** whose logins, homes and grants apply */
  readonly user: string
  /** who was authenticated; another than `user` when acting for them */
  readonly actor: string
  /** the address at the other end of its connection; absent: there is none, or nobody can tell */
  readonly address?: string
  /** how it was authenticated */
  readonly how: (typeof WAYS)[number]
  /** real folders that it may name, and those below them */
  readonly workspaces: "any" | readonly string[]
  readonly roles: readonly Role[]
  /** does its own yes count for its calls */
  readonly mayApprove: boolean
}

/** Of a caller, what grants speak of. */
export type WhoActs = Pick<Caller, "tenant" | "user" | "actor" | "roles" | "address">

/** The OS user that runs this process, here for `user`. */
export const processCaller = (user?: string): Caller => {
  const actor = osUser()
  return { user: user ?? actor, actor, how: "process", workspaces: "any", roles: ROLES, mayApprove: true }
}

export const isRole = (text: string): text is Role => ROLES.some((role) => role === text)

/** The tenant of whoever owns the data folder. */
export const OWN_TENANT = "local"
export const tenantOf = ({ tenant = OWN_TENANT }: Pick<Caller, "tenant">): string => tenant

/**
 * Tenant and user as one word, under which a user's own things are kept: logins, homes, secrets, paces, servers. This
 * host's own users go by their names; `/` is in no name, so that no two people have the same word.
 */
export const subjectOf = ({ user, ...whose }: Pick<Caller, "tenant" | "user">): string =>
  tenantOf(whose) === OWN_TENANT && !user.includes("/") ? user : `${tenantOf(whose)}/${user}`
/** Is it a subject of another tenant than this host's own? What this host keeps for everybody is not for those. */
export const isOfTenant = (subject: string): boolean => subject.includes("/")

const KEYS: Readonly<Record<keyof Caller, true>> = {
  tenant: true,
  user: true,
  actor: true,
  address: true,
  how: true,
  workspaces: true,
  roles: true,
  mayApprove: true,
}
const isListOf = (value: unknown, fits: (one: unknown) => boolean): boolean => Array.isArray(value) && value.every(fits)

/** What is wrong with the shape of a caller; a wrong one is the embedding program's mistake. */
export const callerFault = (given: unknown): string | undefined => {
  if (typeof given !== "object" || given === null) return "`caller` is not an object"
  const odd = unknownKey(given, Object.keys(KEYS))
  if (odd !== undefined) return `\`caller\` ${odd.message} (${odd.fix})`
  const caller = given as Partial<Record<keyof Caller, unknown>>
  if (caller.tenant !== undefined && (typeof caller.tenant !== "string" || !isUserId(caller.tenant)))
    return "`caller.tenant` must be a name: letters, digits, and . _ @ -"
  if (typeof caller.user !== "string" || typeof caller.actor !== "string")
    return "`caller.user` and `caller.actor` must be text"
  if (caller.address !== undefined && (typeof caller.address !== "string" || isIP(caller.address) === 0))
    return "`caller.address` must be an IP address"
  if (!WAYS.some((way) => way === caller.how)) return `\`caller.how\` must be one of ${WAYS.join(", ")}`
  if (
    caller.workspaces !== "any" &&
    !isListOf(caller.workspaces, (path) => typeof path === "string" && isAbsolute(path))
  )
    return '`caller.workspaces` must be "any" or a list of absolute paths'
  if (!isListOf(caller.roles, (role) => ROLES.some((known) => known === role)))
    return `\`caller.roles\` must be a list of ${ROLES.join(", ")}`
  return typeof caller.mayApprove === "boolean" ? undefined : "`caller.mayApprove` must be true or false"
}

/** May it be told of what it may not use: who owns the host sees its files anyway. Of another tenant nobody does. */
export const isOperator = (caller: Pick<Caller, "tenant" | "roles">): boolean =>
  tenantOf(caller) === OWN_TENANT && caller.roles.includes("operator")

/** Is it who it acts for, or may it act for others? Asked wherever a user's own things are told or used. */
export const mayActForUser = ({ user, actor, roles }: WhoActs): boolean => user === actor || roles.includes("act-for")

/** May it say which driver serves a call, past the order of the host's own? */
export const mayPin = ({ roles }: Pick<Caller, "roles">): boolean => roles.includes("pin") || roles.includes("operator")

/** Is `inner` the folder `outer` or below it? Both are absolute and without `.` and `..`. */
export const isWithin = (inner: string, outer: string): boolean => {
  const below = outer.endsWith(sep) ? outer : outer + sep
  return inner + sep === below || inner.startsWith(below)
}

/** Do all lists of folders that bind a call hold this one? An absent list binds nothing. */
export const isAllowedFolder = (path: string, ...lists: readonly ("any" | readonly string[] | undefined)[]): boolean =>
  lists.every((list) => list === undefined || list === "any" || list.some((root) => isWithin(path, root)))

/** What a call was made on, as its caller named that (`""`: on no folder), is one that this caller may name too. */
export const mayName = ({ workspaces }: Pick<Caller, "workspaces">, named: string): boolean =>
  named === "" || isAllowedFolder(resolve(named), workspaces)

/** Whose a call is, and what it was made on. */
export interface CallsOwner {
  readonly tenant: string
  readonly user: string
  readonly workspace: string
}
/** May it be told of this call, and end it: its user's, on a folder of its own, or as an operator. */
export const mayReach = (caller: Caller, { tenant, user, workspace }: CallsOwner): boolean =>
  tenant === tenantOf(caller) &&
  (isOperator(caller) || (mayActForUser(caller) && user === caller.user && mayName(caller, workspace)))
