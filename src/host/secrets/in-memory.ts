/**
 * A vault beside which this process holds secrets that may not be kept: access tokens that are made anew from what is.
 *
 * Guarantees: what is held is in this process' memory alone, is found, listed and deleted as what the vault has, and gives
 * way to what is set there under its name. It ends with the process.
 */
import type { Secret } from "./secret.ts"
import { sameScope, type SecretScope, type Vault } from "./vault.ts"

export interface HoldingVault extends Vault {
  hold(slug: string, scope: SecretScope, value: Secret): void
  holds(slug: string, scope: SecretScope): boolean
}

interface Held {
  readonly slug: string
  readonly scope: SecretScope
  readonly value: Secret
  readonly set: string
}

export const withMemory = (vault: Vault): HoldingVault => {
  let held: readonly Held[] = []
  const find = (slug: string, scope: SecretScope): Held | undefined =>
    held.find((one) => one.slug === slug && sameScope(one.scope, scope))
  const forget = (slug: string, scope: SecretScope): boolean => {
    const found = find(slug, scope)
    held = held.filter((one) => one !== found)
    return found !== undefined
  }
  return {
    hold(slug, scope, value) {
      forget(slug, scope)
      held = [...held, { slug, scope, value, set: new Date().toISOString() }]
    },
    holds: (slug, scope) => find(slug, scope) !== undefined,
    async get(slug, scope) {
      const found = find(slug, scope)
      return found === undefined ? await vault.get(slug, scope) : { ok: true, value: found.value }
    },
    async set(slug, scope, value) {
      const set = await vault.set(slug, scope, value)
      if (set.ok) forget(slug, scope)
      return set
    },
    async delete(slug, scope) {
      const was = forget(slug, scope)
      const deleted = await vault.delete(slug, scope)
      return deleted.ok ? { ok: true, value: deleted.value || was } : deleted
    },
    async list() {
      const listed = await vault.list()
      if (!listed.ok || held.length === 0) return listed
      const kept = listed.value.filter((name) => find(name.slug, name.scope) === undefined)
      return { ok: true, value: [...kept, ...held.map(({ slug, scope, set }) => ({ slug, scope, set }))] }
    },
    rotate: () => vault.rotate(),
  }
}
