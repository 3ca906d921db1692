/**
 * What a call found of its login, taken to the table.
 *
 * Guarantees: a sign that may mean something else (C-40) counts only where the driver's own proof says the same; where
 * nothing can be proven it does not. A login that can be refreshed is refreshed before anybody is signed out. Secrets
 * that expired count again once one of them is set anew (C-18).
 */
import type { Failure } from "../failure.ts"
import type { LoginOwner } from "./owner.ts"
import { loginLimits } from "./limits.ts"
import { isByKeys, type LoginParts, openDesk } from "./parts.ts"
import { type Proven, prove } from "./proof.ts"
import { canRefresh, type Refreshed, type Refreshes } from "./refresh.ts"

/** `expired`: by the driver's own sign. `perhaps`: by one that has other causes too. */
export type ExpirySign = NonNullable<Failure["expiry"]>

/** `unclear`: the sign meant something else, or nobody knows. */
export type AfterExpiry = Refreshed | { readonly end: "unclear" }

const provenNow = async (parts: LoginParts, owner: LoginOwner): Promise<Proven> => {
  const proofs = owner.driver.contract.auth?.login?.completesWhen ?? []
  const secrets = await parts.secretsOf(owner)
  if (proofs.length === 0 || !secrets.ok) return { holds: "unclear", message: "nothing proves it" }
  const ms = loginLimits.proofMs.value
  const signal = AbortSignal.any([parts.closing, AbortSignal.timeout(ms)])
  await using desk = openDesk(parts, owner, secrets.value, { signal, deadlineMs: Date.now() + ms })
  return await prove(desk, proofs)
}

/** A driver without a login: its secrets are what expired. */
const expireSecrets = async (parts: LoginParts, owner: LoginOwner): Promise<AfterExpiry> => {
  const secrets = await parts.secretsOf(owner)
  if (!secrets.ok) return { end: "unclear" }
  const expiredSecrets = secrets.value.fingerprint
  const seen = await parts.ledger.see(owner)
  if (seen.facts.expiredSecrets !== expiredSecrets) {
    const resolved = seen.state === "unauthed" ? (["secrets-resolved"] as const) : []
    await parts.ledger.move(owner, [...resolved, "expiry-detected", "expiry-settled"], (facts) => ({
      ...facts,
      expiredSecrets,
    }))
  }
  return { end: "gone", message: "its secrets are not taken any more" }
}

/** `freshness`: that of the tokens which the call ran with. */
export const afterExpiry = async (
  parts: LoginParts,
  refreshes: Refreshes,
  owner: LoginOwner,
  { sign, freshness }: { readonly sign: ExpirySign; readonly freshness: number },
): Promise<AfterExpiry> => {
  const { auth } = owner.driver.contract
  if (auth === undefined) return { end: "unclear" }
  const seen = await parts.ledger.see(owner)
  const refreshable = await canRefresh(parts, owner)
  if ((seen.state !== "authed" || !refreshable) && (await isByKeys(parts, owner)))
    return sign === "expired" ? await expireSecrets(parts, owner) : { end: "unclear" }
  if (seen.state !== "authed") return { end: "gone", message: "nobody is signed in any more" }
  if (seen.facts.freshness !== freshness) return { end: "refreshed" }
  if (sign === "perhaps" && (await provenNow(parts, owner)).holds !== "no") return { end: "unclear" }
  if (refreshable) return await refreshes.after(owner, freshness)
  using turn = await parts.ledger.turn(owner, { waitMs: loginLimits.refreshTurnMs.value, signal: parts.closing })
  if (turn === undefined) return { end: "unclear" }
  const now = await parts.ledger.settle(owner)
  if (now.facts.freshness !== freshness) return { end: "refreshed" }
  await parts.ledger.move(owner, ["expiry-detected", "expiry-settled"])
  return { end: "gone", message: "its login expired" }
}
