/**
 * What a call found of its login, taken to the table.
 *
 * Guarantees: a sign that may mean something else (C-40) counts only where the driver's own proof says the same; where
 * nothing can be proven it does not. A login that can be refreshed is refreshed before anybody is signed out; one that is
 * refused right after that is ended, unless its own proof finds it good: whoever is told to log in can. Secrets that
 * expired count again once one of them is set anew (C-18).
 */
import type { Failure } from "../failure.ts"
import type { LoginOwner } from "./owner.ts"
import { loginLimits } from "./limits.ts"
import { isByKeys, type LoginParts, openDesk } from "./parts.ts"
import { type Proven, prove } from "./proof.ts"
import { canRefresh, type Refreshed, type Refreshes } from "./refresh.ts"

/** `expired`: by the driver's own sign. `perhaps`: by one that has other causes too. */
type ExpirySign = NonNullable<Failure["expiry"]>

/**
 * `unclear`: the sign meant something else, or nobody knows. `proven`: the call is refused with a login that was refreshed for
 * it and that its driver's own proof finds good.
 */
export type AfterExpiry = Refreshed | { readonly end: "unclear" | "proven" }

/** What a call found; `freshness`: that of the tokens which it ran with. */
export interface FoundExpired {
  readonly sign: ExpirySign
  readonly freshness: number
  /** they were refreshed for this very call: another refresh would bring nothing else */
  readonly again?: boolean
}

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

/** Nobody is signed in any more, unless somebody refreshed it meanwhile. */
const signOut = async (
  parts: LoginParts,
  owner: LoginOwner,
  freshness: number,
  message: string,
): Promise<AfterExpiry> => {
  using turn = await parts.ledger.turn(owner, { waitMs: loginLimits.refreshTurnMs.value, signal: parts.closing })
  if (turn === undefined) return { end: "unclear" }
  const now = await parts.ledger.settle(owner)
  if (now.facts.freshness !== freshness) return { end: "refreshed" }
  await parts.ledger.move(owner, ["expiry-detected", "expiry-settled"])
  return { end: "gone", message }
}

/** What was refreshed a moment ago is refused: only a proof can tell the login from what the call asked for. */
const afterRefresh = async (parts: LoginParts, owner: LoginOwner, freshness: number): Promise<AfterExpiry> => {
  const proofs = owner.driver.contract.auth?.login?.completesWhen ?? []
  const proven = proofs.length === 0 ? undefined : await provenNow(parts, owner)
  if (proven?.holds === "yes") return { end: "proven" }
  if (proven?.holds === "unclear") return { end: "unclear" }
  return await signOut(parts, owner, freshness, "its login is not taken, although it was refreshed")
}

export const afterExpiry = async (
  parts: LoginParts,
  refreshes: Refreshes,
  owner: LoginOwner,
  { sign, freshness, again = false }: FoundExpired,
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
  if (again && (await isByKeys(parts, owner))) return await expireSecrets(parts, owner)
  if (again) return await afterRefresh(parts, owner, freshness)
  if (refreshable) return await refreshes.after(owner, freshness)
  return await signOut(parts, owner, freshness, "its login expired")
}
