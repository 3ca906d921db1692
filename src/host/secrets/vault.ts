/**
 * The vault's interface: what any store of secrets must do for this host. Types, and which of several a call means.
 *
 * A secret is named by its slug and belongs to a scope: a user, a workspace, a driver, any of them or none. One that is
 * scoped to a user is of no use to another; the same for workspaces and drivers. Of several that fit, the one that says
 * most is meant, a driver's before a workspace's before a user's.
 */
import { shown } from "../../manifest/values/diagnostics.ts"
import { isOfTenant } from "../access/caller.ts"
import type { Failure } from "../failure.ts"
import { vaultLimits } from "../limits.ts"
import type { Secret } from "./secret.ts"

export interface SecretScope {
  readonly user?: string
  /** the host's own id of a workspace */
  readonly workspace?: string
  /** `id@major` with the origin of its manifest, so that a manifest elsewhere that claims the id gets nothing */
  readonly driver?: string
}

/** Who asks: everything that a scope may speak of. */
export type SecretUse = Required<SecretScope>

export interface SecretName {
  readonly slug: string
  readonly scope: SecretScope
  /** when it was set last, ISO; absent where the store does not tell */
  readonly set?: string
}

export type VaultAnswer<T> = { readonly ok: true; readonly value: T } | Failure

export interface Vault {
  /** undefined: there is none of that name and scope */
  get(slug: string, scope: SecretScope): Promise<VaultAnswer<Secret | undefined>>
  set(slug: string, scope: SecretScope, value: Secret): Promise<VaultAnswer<undefined>>
  /** whether there was one */
  delete(slug: string, scope: SecretScope): Promise<VaultAnswer<boolean>>
  /** names and scopes, never values */
  list(): Promise<VaultAnswer<readonly SecretName[]>>
  /** new keys for all that is there */
  rotate(): Promise<VaultAnswer<undefined>>
}

const FIELDS = ["driver", "workspace", "user"] as const

export const sameScope = (a: SecretScope, b: SecretScope): boolean => FIELDS.every((field) => a[field] === b[field])

/** What is for everybody is for this host's own users. */
const covers = (scope: SecretScope, use: SecretUse): boolean =>
  (scope.user !== undefined || !isOfTenant(use.user)) &&
  FIELDS.every((field) => scope[field] === undefined || scope[field] === use[field])

/** Of two that fit: as many fields as possible, the earlier field before the later. */
const weight = (scope: SecretScope): number =>
  FIELDS.reduce((sum, field, index) => sum + (scope[field] === undefined ? 0 : 8 + (4 >> index)), 0)

/** The scope of the secret that a use means; undefined where none fits. */
export const meant = (names: readonly SecretName[], slug: string, use: SecretUse): SecretScope | undefined =>
  names
    .filter((name) => name.slug === slug && covers(name.scope, use))
    .map(({ scope }) => scope)
    .sort((a, b) => weight(b) - weight(a))[0]

const SLUG = /^(?:[a-z][a-z0-9-]*[a-z0-9]\/)?[a-z][a-z0-9-]*[a-z0-9]$/
export const isSlug = (text: string): boolean => text.length >= 2 && text.length <= 80 && SLUG.test(text)

const unfit = (message: string, hint: string): Failure => ({
  ok: false,
  code: "input_invalid",
  message,
  hint,
  details: {},
})

/** Why no vault keeps this under that name; undefined where it may. */
export const valueFault = (slug: string, value: Secret): Failure | undefined => {
  if (!isSlug(slug))
    return unfit(
      `\`${shown(slug, 80)}\` is not a secret's name`,
      "write lower-case letters, digits and hyphens, perhaps behind a group, as in github/token",
    )
  const bytes = Buffer.byteLength(value.reveal())
  if (bytes === 0 || bytes > vaultLimits.valueBytes.value)
    return unfit(
      `the value of ${slug} has ${bytes} bytes; it may have 1 to ${vaultLimits.valueBytes.value}`,
      "give the value on stdin, or at the prompt",
    )
  if (value.reveal().includes("\0")) return unfit(`the value of ${slug} holds a NUL character`, "give it as text")
  return undefined
}
