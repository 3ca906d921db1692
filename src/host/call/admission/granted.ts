/**
 * A yes that a person gave beforehand, found and used.
 *
 * Guarantees: a grant counts for its tenant, user, tool and workspace, and only where the yes of whoever made it would
 * count for this very call: a rule's signers hold for it as for any answer, and where a rule wants several of them, so many
 * people's grants are used together. One use is taken in one step, before
 * anything goes on that it lets through; a use that was taken is never given back. What ends first is used first.
 * Where the store cannot be had there is no grant.
 */
import { type Caller, isRole, tenantOf } from "../../access/caller.ts"
import { releasedBy, type UsedGrant } from "../../access/decide.ts"
import { accessPolicyOf } from "../../access/policy.ts"
import { workspaceId } from "../../data/workspaces.ts"
import { now } from "../../store/instant.ts"
import { type GrantRecord, StoreUnavailable } from "../../store/store.ts"
import type { HostCore } from "../core.ts"
import type { Admitted } from "../steps.ts"

/** Whoever made it, as they were then. */
export const giverOf = ({ tenant, user, facts: { by, roles } }: GrantRecord): Caller => ({
  tenant,
  user,
  actor: by,
  how: "process",
  workspaces: "any",
  roles: roles.filter(isRole),
  mayApprove: true,
})

/** One use of it, as it is told. */
export const useOf = ({ id, facts: { by }, used, uses }: GrantRecord): UsedGrant => ({ id, by, use: used, uses })

const take = async (core: HostCore, call: Admitted): Promise<UsedGrant | undefined> => {
  const { tool, action, caller, folder } = call
  // Where nothing was ever remembered there is no grant, and no store is made to look for one.
  if (!core.storeIsUsed()) return undefined
  const store = await core.store()
  const tenant = tenantOf(caller)
  const covering = {
    user: caller.user,
    tool: `${tool.id}@${tool.major}`,
    workspace: workspaceId(core.data, folder.identity),
  }
  const policy = accessPolicyOf(core.registry, core.config)
  const deed = { tool, ...(action === undefined ? {} : { action }) }
  const given = (await store.grants({ tenant, covering })).filter(({ facts }) => facts.request === undefined)
  let left = given.map((grant) => ({ grant, person: giverOf(grant) }))
  const used = new Map<string, UsedGrant>()
  for (;;) {
    const chosen = releasedBy(policy, caller, left, deed)
    if (chosen === undefined) return undefined
    const next = chosen.find(({ grant }) => !used.has(grant.id))
    if (next === undefined) {
      const [first, ...beside] = chosen.flatMap(({ grant }) => used.get(grant.id) ?? [])
      return first === undefined || beside.length === 0 ? first : { ...first, beside }
    }
    const taken = await store.useGrant(tenant, next.grant.id, now())
    if (taken === undefined) left = left.filter(({ grant }) => grant.id !== next.grant.id)
    else used.set(taken.id, useOf(taken))
  }
}

export const takeGrant = async (core: HostCore, call: Admitted): Promise<UsedGrant | undefined> => {
  if (call.signal.aborted) return undefined
  try {
    return await take(core, call)
  } catch (error) {
    if (error instanceof StoreUnavailable) return undefined
    throw error
  }
}
