/**
 * Tokens refreshed, once however many ask, and logins found to have ended.
 *
 * Guarantees: of all calls of all processes that find the same tokens old, one refreshes; the others wait for it and use
 * what it left. What is new is durable before anybody is told of it. A refresh goes on when the call that asked for it is
 * cancelled: what the other side gave out must not be lost. Only a refusal, with no proof against it, ends a login; what
 * could not be asked changes nothing, and is left alone for a while.
 */
import { isCoolingDown } from "./standing.ts"
import type { FlowFailed, RefreshEnd, RefreshFlow } from "./flow.ts"
import { loginLimits } from "./limits.ts"
import type { LoginOwner } from "./owner.ts"
import { capturedTimes, keptScope, type LoginParts, openDesk, type OwnDesk } from "./parts.ts"
import { prove } from "./proof.ts"

/** `gone`: nobody is signed in any more. `unreachable`: as before, and nothing is known of it. */
export type Refreshed =
  | { readonly end: "refreshed" }
  | { readonly end: "gone" | "unreachable"; readonly message: string }

const refreshFlow = async ({ methods }: LoginParts, { driver }: LoginOwner): Promise<RefreshFlow | undefined> => {
  for (const method of methods) {
    const flow = method.refreshOf(driver)
    if (flow !== undefined && (await method.has?.(driver, "refresh")) !== false) return flow
  }
  return undefined
}

export const canRefresh = async (parts: LoginParts, owner: LoginOwner): Promise<boolean> =>
  (await refreshFlow(parts, owner)) !== undefined

/** What its refreshes make is held in memory, and this process has none of it. */
export const lacksInMemory = async (parts: LoginParts, owner: LoginOwner): Promise<boolean> => {
  const slug = (await refreshFlow(parts, owner))?.inMemory
  return slug !== undefined && !(await parts.vault.holds(slug, keptScope(parts.ledger, owner)))
}

const runFlow = async (flow: RefreshFlow, desk: OwnDesk): Promise<RefreshEnd> => {
  desk.tell({ at: "flow", method: flow.method })
  try {
    return await flow.run(desk)
  } catch (error) {
    const what = error instanceof Error ? error.name : "unknown"
    return { ok: false, why: "broken", message: `the refresh itself failed (${what})` }
  }
}

/** A refusal counts where nothing proves the contrary. */
const isRefused = async (desk: OwnDesk, { why }: FlowFailed): Promise<boolean> => {
  if (why !== "refused") return false
  const proofs = desk.driver.contract.auth?.login?.completesWhen ?? []
  return proofs.length === 0 || (await prove(desk, proofs)).holds === "no"
}

const shortened = (message: string): string => message.toWellFormed().slice(0, loginLimits.failureChars.value)

/** With the turn, and a refresh that is wanted. */
const refreshNow = async (parts: LoginParts, owner: LoginOwner, flow: RefreshFlow): Promise<Refreshed> => {
  const { ledger, now, closing } = parts
  const secrets = await parts.secretsOf(owner)
  if (!secrets.ok) return { end: "unreachable", message: secrets.message }
  const ms = loginLimits.refreshMs.value
  const signal = AbortSignal.any([closing, AbortSignal.timeout(ms)])
  await using desk = openDesk(parts, owner, secrets.value, { signal, deadlineMs: Date.now() + ms })
  const end = await runFlow(flow, desk)
  if (end.ok) {
    const { ok: _ok, ...told } = end
    const tokens = told.expiresMs === undefined ? { ...told, ...(await capturedTimes(parts, owner)) } : told
    const moved = await ledger.move(owner, ["refreshed"], (facts) => {
      const { failure: _none, refreshMs: _refresh, expiresMs: _expires, ...rest } = facts
      return { ...rest, ...tokens, freshness: facts.freshness + 1, refreshed: now() }
    })
    return moved === undefined ? { end: "gone", message: "it was signed out meanwhile" } : { end: "refreshed" }
  }
  const refused = await isRefused(desk, end)
  const message = shortened(end.message)
  const failure = { at: now(), of: "refresh", message, coolDownMs: loginLimits.coolDownMs.value } as const
  await ledger.move(owner, [refused ? "refresh-refused" : "refresh-unreachable"], (facts) => ({ ...facts, failure }))
  return { end: refused ? "gone" : "unreachable", message }
}

const inTurn = async (parts: LoginParts, owner: LoginOwner, freshness: number): Promise<Refreshed> => {
  const flow = await refreshFlow(parts, owner)
  if (flow === undefined) return { end: "gone", message: "its driver has no way to refresh it" }
  const { ledger, now, closing } = parts
  using turn = await ledger.turn(owner, { waitMs: loginLimits.refreshTurnMs.value, signal: closing })
  if (turn === undefined) return { end: "unreachable", message: "another refresh is under way for too long" }
  const seen = await ledger.settle(owner)
  if (seen.state !== "authed") return { end: "gone", message: seen.facts.failure?.message ?? "nobody is signed in" }
  if (seen.facts.freshness !== freshness && !(await lacksInMemory(parts, owner))) return { end: "refreshed" }
  if (isCoolingDown(seen.facts, now()))
    return { end: "unreachable", message: seen.facts.failure?.message ?? "the last refresh failed a moment ago" }
  return await refreshNow(parts, owner, flow)
}

export interface Refreshes {
  /** Tokens newer than those of `freshness`. */
  after(owner: LoginOwner, freshness: number): Promise<Refreshed>
  /** Those under way are done. */
  settled(): Promise<void>
}

/** Calls of this process share one refresh; those of others wait for its turn. */
export const createRefreshes = (parts: LoginParts): Refreshes => {
  const underWay = new Map<string, Promise<Refreshed>>()
  return {
    after: (owner, freshness) => {
      const { driver, workspace, user } = parts.ledger.keyOf(owner)
      const key = JSON.stringify([driver, workspace, user, freshness])
      const known = underWay.get(key)
      if (known !== undefined) return known
      const made = inTurn(parts, owner, freshness).finally(() => underWay.delete(key))
      underWay.set(key, made)
      return made
    },
    settled: async () => void (await Promise.allSettled(underWay.values())),
  }
}
