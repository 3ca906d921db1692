/**
 * A vault beside which this process holds secrets that may not be kept: access tokens that are made anew from what is.
 *
 * Guarantees: what is held is in this process' memory alone, is found, listed and deleted as what the vault has, and gives
 * way to what is set there under its name. It is worth what it was made of: where the vault has another value of that by now,
 * or none, because another process logged in anew or out, it is forgotten. It ends with the process.
 */
import type { Secret } from "./secret.ts"
import { sameScope, type SecretScope, type Vault, type VaultAnswer } from "./vault.ts"

/** What the vault keeps, of the same scope, as it was when something was made of it. */
export interface MadeOf {
  readonly slug: string
  readonly value: Secret
}

export interface HoldingVault extends Vault {
  hold(slug: string, scope: SecretScope, value: Secret, madeOf: MadeOf): void
  holds(slug: string, scope: SecretScope): Promise<boolean>
}

interface Held {
  readonly slug: string
  readonly scope: SecretScope
  readonly value: Secret
  readonly madeOf: MadeOf
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
  /** While the vault cannot be opened nobody knows what it is worth. */
  const good = async (one: Held | undefined): Promise<VaultAnswer<Held | undefined>> => {
    if (one === undefined) return { ok: true, value: undefined }
    const now = await vault.get(one.madeOf.slug, one.scope)
    if (!now.ok) return now
    if (now.value?.reveal() === one.madeOf.value.reveal()) return { ok: true, value: one }
    held = held.filter((other) => other !== one)
    return { ok: true, value: undefined }
  }
  return {
    hold(slug, scope, value, madeOf) {
      forget(slug, scope)
      held = [...held, { slug, scope, value, madeOf, set: new Date().toISOString() }]
    },
    async holds(slug, scope) {
      const found = await good(find(slug, scope))
      return !found.ok || found.value !== undefined
    },
    async get(slug, scope) {
      const found = await good(find(slug, scope))
      if (!found.ok) return found
      return found.value === undefined ? await vault.get(slug, scope) : { ok: true, value: found.value.value }
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
      const left: Held[] = []
      for (const one of held) {
        const found = await good(one)
        if (!found.ok) return found
        if (found.value !== undefined) left.push(one)
      }
      const kept = listed.value.filter((name) => find(name.slug, name.scope) === undefined)
      return { ok: true, value: [...kept, ...left.map(({ slug, scope, set }) => ({ slug, scope, set }))] }
    },
    rotate: () => vault.rotate(),
  }
}
