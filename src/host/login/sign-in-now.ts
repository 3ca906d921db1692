/**
 * A login from its beginning to its proof, with the owner's turn.
 *
 * Guarantees: whatever happens in between, the record leaves `logging-in`: to `authed` when the proof held, else to
 * `unauthed` with why. The flow's own word signs nobody in where the manifest has a proof.
 */
import type { LoginEnd, LoginFlow } from "./flow.ts"
import type { Person } from "../person.ts"
import { loginLimits } from "./limits.ts"
import type { LoginOwner } from "./owner.ts"
import { capturedTimes, type LoginParts, type OwnDesk, VaultShut } from "./parts.ts"
import { type Proven, prove } from "./proof.ts"
import type { Seen } from "./standing.ts"
import type { LoginEvent } from "./states.ts"

export type SignedInNow =
  | { readonly ok: true; readonly seen: Seen; readonly method: string }
  | {
      readonly ok: false
      readonly why: "failed" | "cancelled" | "timed-out" | "needs-person"
      readonly message: string
      readonly fix?: string
    }

const failed = (message: string, fix?: string): Extract<SignedInNow, { ok: false }> => ({
  ok: false,
  why: "failed",
  message,
  ...(fix === undefined ? {} : { fix }),
})

export const missingWays = (flow: LoginFlow, person: Person): readonly (keyof Person)[] =>
  flow.needs.filter((way) => person[way] === undefined)

interface Reached {
  readonly proven: Extract<Proven, { holds: "yes" }>
  readonly end: Extract<LoginEnd, { ok: true }>
  readonly method: string
}

/** Somebody may be signed in already: by a secret that was set, or by what an earlier login left. */
const already = async (desk: OwnDesk): Promise<Reached | undefined> => {
  const proofs = desk.driver.contract.auth?.login?.completesWhen ?? []
  // What is signed in already is not enough where more is wanted.
  if (proofs.length === 0 || desk.scopes.wanted.length > 0) return undefined
  const proven = await prove(desk, proofs)
  return proven.holds === "yes" ? { proven, end: { ok: true }, method: "none" } : undefined
}

const throughFlow = async (
  parts: LoginParts,
  owner: LoginOwner,
  flow: LoginFlow,
  desk: OwnDesk,
  reopened: () => Promise<OwnDesk>,
): Promise<Reached | Extract<SignedInNow, { ok: false }>> => {
  desk.tell({ at: "flow", method: flow.method })
  const end = await flow.run(desk)
  if (!end.ok) {
    const { why, message, fix } = end
    const told = fix === undefined ? {} : { fix }
    return {
      ok: false,
      why: why === "cancelled" || why === "timed-out" || why === "needs-person" ? why : "failed",
      message,
      ...told,
    }
  }
  const { auth } = owner.driver.contract
  // What the flow put into the vault is part of what is proven.
  const after = await reopened()
  if (auth?.login === undefined && after.lacks.length > 0)
    return failed(`these secrets are still missing: ${after.lacks.map(({ slug }) => slug).join(", ")}`)
  const proven = await prove(after, auth?.login?.completesWhen ?? [])
  if (proven.holds === "yes") return { proven, end, method: flow.method }
  return failed(
    `the login was gone through, and is not proven: ${proven.message}`,
    "log in again; if it stays, ask the driver's author about `completes_when`",
  )
}

const endings: Readonly<Record<Extract<SignedInNow, { ok: false }>["why"], LoginEvent>> = {
  failed: "login-failed",
  cancelled: "login-cancelled",
  "timed-out": "login-timed-out",
  "needs-person": "login-failed",
}

export const signInNow = async (
  parts: LoginParts,
  owner: LoginOwner,
  flow: LoginFlow,
  desk: OwnDesk,
  reopened: () => Promise<OwnDesk>,
): Promise<SignedInNow> => {
  const { ledger, now } = parts
  const before = await ledger.see(owner)
  const started = await ledger.move(owner, ["login-started"])
  if (started === undefined) return failed(`a login cannot begin while it is ${before.state}`)
  let outcome: Reached | Extract<SignedInNow, { ok: false }>
  try {
    outcome = (await already(desk)) ?? (await throughFlow(parts, owner, flow, desk, reopened))
  } catch (error) {
    outcome =
      error instanceof VaultShut
        ? failed(error.message, error.failure.hint)
        : failed(`the login itself failed (${error instanceof Error ? error.name : "unknown"})`)
  }
  if ("ok" in outcome) {
    const stopped = desk.signal.aborted && outcome.why === "failed"
    const why = stopped ? (Date.now() >= desk.deadlineMs ? "timed-out" : "cancelled") : outcome.why
    const message = outcome.message.toWellFormed().slice(0, loginLimits.failureChars.value)
    const failure = { at: now(), of: "login", message, coolDownMs: 0 } as const
    await ledger.move(owner, [endings[why]], (facts) => ({ ...facts, failure }))
    return { ...outcome, why }
  }
  const { proven, method } = outcome
  const end =
    outcome.end.expiresMs === undefined ? { ...outcome.end, ...(await capturedTimes(parts, owner)) } : outcome.end
  const account = proven.account ?? end.account
  const seen = await ledger.move(owner, ["login-proven"], (facts) => {
    const { failure: _f, account: _a, refreshMs: _r, expiresMs: _e, expiredSecrets: _s, ...kept } = facts
    const { scopes: _o, wanted: _w, ...rest } = kept
    const at = now()
    return {
      ...rest,
      ...(account === undefined ? {} : { account }),
      ...(end.expiresMs === undefined ? {} : { expiresMs: end.expiresMs }),
      ...(end.refreshMs === undefined ? {} : { refreshMs: end.refreshMs }),
      ...(end.scopes === undefined ? {} : { scopes: end.scopes }),
      freshness: facts.freshness + 1,
      proven: at,
      refreshed: at,
    }
  })
  return seen === undefined ? failed("the login was ended by somebody else meanwhile") : { ok: true, seen, method }
}
