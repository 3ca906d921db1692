/**
 * Where what is captured at a call's token endpoints is kept: for its driver, workspace and user.
 *
 * Guarantees: a call that captures nothing opens no vault; one whose vault cannot be opened ends before anything runs. When
 * the new tokens end is a fact of the login from then on.
 */
import type { TokenKeep } from "../../../egress-proxy/tokens/held.ts"
import { openTokenKeep } from "../../secrets/captured-tokens.ts"
import { useOf } from "../../secrets/scopes.ts"
import type { HostCore } from "../core.ts"
import { ownerOf } from "../sign-in.ts"
import type { Sealed, Step } from "../steps.ts"

export const ownTokens = async (core: HostCore, sealed: Sealed): Promise<Step<TokenKeep | undefined>> => {
  const { driver, folder, user, egress } = sealed
  if (egress?.capture === undefined) return { ok: true, value: undefined }
  const { data, vault, logins } = core
  const owner = ownerOf(core, sealed, driver)
  const onKept = async ({ expiresAt }: { readonly expiresAt?: number }): Promise<void> =>
    await logins.renewed(owner, expiresAt)
  return await openTokenKeep({ data, vault, onKept }, useOf(core, driver, folder.identity, user))
}
