/**
 * A call that was told that its login is good and does not reach so far (RFC 6750, `insufficient_scope`).
 *
 * Guarantees: what is missing is remembered for the next login, which a person begins; nothing is asked of anybody here. What
 * the last login asked for already is not asked for again, so that a service which is never content leads to no second
 * login. Nobody is signed out by it: calls that the login is enough for go on.
 */
import { loginWebLimits } from "../limits.ts"
import type { LoginOwner } from "./owner.ts"
import type { LoginParts } from "./parts.ts"

export interface Lack {
  readonly scopes: readonly string[]
  /** of the tokens that the call ran with */
  readonly freshness: number
}

/** `renewed`: there are other tokens by now. `wanted`: a login would ask for it. `in-vain`: one did. */
export type AfterLack = { readonly end: "renewed" | "wanted" | "in-vain" }

export const afterLack = async (
  { ledger }: Pick<LoginParts, "ledger">,
  owner: LoginOwner,
  { scopes, freshness }: Lack,
): Promise<AfterLack> => {
  const seen = await ledger.see(owner)
  if (seen.facts.freshness !== freshness) return { end: "renewed" }
  const asked = new Set(seen.facts.scopes)
  if (scopes.every((scope) => asked.has(scope))) return { end: "in-vain" }
  await ledger.move(owner, [], (facts) => ({
    ...facts,
    wanted: [...new Set([...(facts.wanted ?? []), ...scopes])].slice(0, loginWebLimits.scopes.value),
  }))
  return { end: "wanted" }
}
