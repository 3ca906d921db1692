/** The vault as it is asked for: names and scopes. Values go in, and none comes out. */
import type { SecretName } from "../secrets/vault.ts"
import type { HostAnswer, ListOptions } from "./asking.ts"

/** Whose a secret is; default: the caller's own user, in every workspace, for every driver. */
export interface SecretOptions extends ListOptions {
  readonly user?: string
  /** for everybody */
  readonly shared?: boolean
  /** a folder: only in calls on it */
  readonly workspace?: string
  /** only for this driver */
  readonly driver?: string
}

export interface SecretListing extends SecretName {
  /** where the scope's workspace was when it was first named here */
  readonly folder?: string
}

export interface SecretsOfHost {
  set(slug: string, value: string, options?: SecretOptions): HostAnswer<undefined>
  /** whether there was one */
  remove(slug: string, options?: SecretOptions): HostAnswer<boolean>
  /** names and scopes, never values */
  list(options?: ListOptions): HostAnswer<readonly SecretListing[]>
  /** New keys. `oldKey`: the file of the key that the vault is under, where the operator replaced that. */
  rotate(options?: ListOptions & { readonly oldKey?: string }): HostAnswer<undefined>
}
