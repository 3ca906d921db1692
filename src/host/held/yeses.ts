/**
 * The yeses of people to one thing that is put to them: a call that may not run before, or effects that are held.
 *
 * Guarantees: a yes is to what its digest stands for and to nothing else, of one person once, until its time is over or it is
 * taken back. Whether they are enough is decided by the rules as they are now: who made the call is none of several, and
 * nobody is two people.
 */
import type { Caller } from "../access/caller.ts"
import { releasedBy } from "../access/decide.ts"
import type { Deed } from "../access/grants.ts"
import { accessPolicyOf } from "../access/policy.ts"
import type { HostCore } from "../call/core.ts"
import { type Ballot, yesesTo } from "../call/requested/redeem.ts"
import { createUlids } from "../data/ulid.ts"
import type { Failure } from "../failure.ts"
import { hostLimits } from "../limits.ts"
import { now } from "../store/instant.ts"
import type { GrantRecord, Store } from "../store/store.ts"

interface Vote extends Ballot {
  /** whose real path the workspace has */
  readonly path: string
  readonly expiresMs: number
  /** who asked for it */
  readonly maker: string
  readonly caller: Caller
  readonly reason?: string
}

interface Counted {
  /** this person's, unless it was there already */
  readonly yes?: GrantRecord
  /** those that release it together; absent: others are wanted still */
  readonly released?: readonly GrantRecord[]
}

const nextId = createUlids()

const yesOf = ({
  tenant,
  user,
  tool,
  workspace,
  path,
  expiresMs,
  request,
  caller,
  reason = "",
}: Vote): GrantRecord => ({
  id: nextId(),
  tenant,
  user,
  tool,
  workspace,
  uses: 1,
  used: 0,
  made: now(),
  expiresMs,
  facts: { by: caller.actor, roles: caller.roles, reason, path: path.toWellFormed(), request },
})

/** This person's yes beside those that are there, and whether that is enough. */
export const countYes = async (core: HostCore, store: Store, vote: Vote, deed: Deed): Promise<Counted | Failure> => {
  const { caller, maker } = vote
  const before = await yesesTo(store, vote)
  const isNew = !before.some(({ person }) => person.actor === caller.actor)
  const yes = yesOf(vote)
  const bounds = { count: hostLimits.grants.value, keepMs: hostLimits.grantKeepMs.value }
  if (isNew && !(await store.grant(yes, bounds)))
    return { ok: false, code: "limit_exceeded", message: "too many yeses wait to be used", details: {} }
  const people = await yesesTo(store, vote)
  const chosen = releasedBy(accessPolicyOf(core.registry, core.config), { ...caller, actor: maker }, people, deed)
  return {
    ...(isNew ? { yes } : {}),
    ...(chosen === undefined ? {} : { released: chosen.map(({ grant }) => grant) }),
  }
}

/** What a person hears whose yes is on record, and not enough. */
export const waiting = { approved: false, waits_for: "others whose approval it needs" } as const

export const approvedAlready: Failure = {
  ok: false,
  code: "conflict",
  message: "this caller approved it already",
  hint: "wait for the others whose approval it needs",
  details: {},
}

/** Nothing of it holds any more. */
export const takeBackAll = async (store: Store, ballot: Ballot): Promise<void> => {
  for (const { grant } of await yesesTo(store, ballot)) await store.revokeGrant(grant.tenant, grant.id, Date.now())
}
