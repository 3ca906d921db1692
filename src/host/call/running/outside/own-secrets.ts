/**
 * The secrets of a driver outside any call, for its own login, refresh and proof.
 *
 * Guarantees: the same ones that a call of this owner would be given, but for those that are meant for certain tools;
 * a driver that names none never opens the vault.
 */
import { digestOf } from "../../../../manifest/values/digest.ts"
import type { LoginOwner } from "../../../login/owner.ts"
import type { OwnSecrets } from "../../../login/parts.ts"
import { type BoundSecret, boundBy, scopeFor } from "../../../secrets/bind.ts"
import { grantedBy, secretNeeds } from "../../../secrets/needs.ts"
import { driverScope } from "../../../secrets/scopes.ts"
import { sameScope, type VaultAnswer } from "../../../secrets/vault.ts"
import type { HostCore } from "../../core.ts"
import { inventoryFor } from "../../sign-in.ts"

const noTool = { id: "", requires: { secrets: [], tools: [] } } as const

export const ownSecrets = async (
  core: Pick<HostCore, "registry" | "vault" | "catalogue">,
  { driver, workspace, user, roles }: LoginOwner,
): Promise<VaultAnswer<OwnSecrets>> => {
  const needs = secretNeeds(driver.contract, noTool, inventoryFor(core, driver))
  if (needs.length === 0) return { ok: true, value: { bound: [], named: [], lacks: [], fingerprint: "" } }
  const held = await core.vault.list()
  if (!held.ok) return held
  const use = { user, workspace, driver: driverScope(core.catalogue, driver) }
  const bound: BoundSecret[] = []
  const lacks: { readonly name: string; readonly slug: string }[] = []
  const marks: string[] = []
  for (const need of needs) {
    const scope = scopeFor(held.value, need, { use, vouched: driver.vouched })
    if (scope === undefined) {
      if (need.optional !== true) lacks.push({ name: need.name, slug: need.slug })
      continue
    }
    const set = held.value.find((name) => name.slug === need.slug && sameScope(name.scope, scope))?.set ?? ""
    marks.push(`${need.slug} ${set}`)
    const by = grantedBy(need, noTool, { user, roles })
    if (by === undefined) continue
    const found = await core.vault.get(need.slug, scope)
    if (!found.ok) return found
    if (found.value === undefined) continue
    const ways = boundBy(need, found.value, by)
    if (!ways.ok) return ways
    bound.push(...ways.value)
  }
  const named = needs.filter(({ optional }) => optional !== true).map(({ name, slug }) => ({ name, slug }))
  return { ok: true, value: { bound, named, lacks, fingerprint: digestOf(marks) } }
}
