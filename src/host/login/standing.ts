/**
 * What a record means for a driver as its manifest is now. Pure.
 *
 * Guarantees: a record of a manifest that nobody vouches for and that was changed since, with what it led to (its module,
 * its AUTH.md), is no record: nothing of it is kept until it is proven again. Nor is one of a login to another service, or
 * for another audience, whoever vouches (AIP-50). Set-up steps that are open come before any login, also those that a later version of the
 * manifest added. When a refresh is due is told by the clock that cannot be set, where there is one.
 */
import { contentOf } from "../../manifest/read/catalogue.ts"
import { digestOf } from "../../manifest/values/digest.ts"
import type { DriverContract } from "../../manifest/types.ts"
import type { LoginState } from "../login-state.ts"
import type { RegisteredDriver } from "../registry/types.ts"
import { type Instant, isOver } from "../store/instant.ts"
import type { LoginFacts, LoginRecord } from "../store/store.ts"
import { loginLimits } from "./limits.ts"
import { after } from "./states.ts"

/** A record as it counts for a driver now. */
export interface Seen {
  readonly state: LoginState
  readonly facts: LoginFacts
  /** of the row in the store; 0: there is none */
  readonly generation: number
  /** there is a record, of another manifest than this one */
  readonly foreign: boolean
}

/** Whom the driver's tokens are from, and what for; undefined where its manifest does not say. */
const providerOf = ({ auth }: DriverContract): string | undefined => {
  if (auth?.provider === undefined) return undefined
  const { apiBase, audience = null, issuer = null, endpoints, clientId } = auth.provider
  return digestOf([apiBase, audience, issuer, { ...endpoints }, clientId])
}

const freshFacts = ({ key, contract }: RegisteredDriver, provider = providerOf(contract)): LoginFacts => ({
  name: key,
  manifest: contentOf(contract),
  ...(provider === undefined ? {} : { provider }),
  freshness: 0,
  setup: {},
})

export const openSteps = ({ setup }: DriverContract, facts: LoginFacts): DriverContract["setup"] =>
  setup.filter(({ id }) => !Object.hasOwn(facts.setup, id))

export const seenBy = (driver: RegisteredDriver, record: LoginRecord | undefined): Seen => {
  const fresh = freshFacts(driver)
  if (record === undefined)
    return { state: stateOf(driver, "unknown", fresh), facts: fresh, generation: 0, foreign: false }
  const { facts, state, generation } = record
  const isChanged = facts.manifest !== fresh.manifest && !driver.vouched
  const foreign = isChanged || facts.provider !== fresh.provider
  const known = foreign
    ? { ...fresh, freshness: facts.freshness }
    : { ...facts, name: fresh.name, manifest: fresh.manifest }
  return { state: stateOf(driver, foreign ? "unknown" : state, known), facts: known, generation, foreign }
}

/** What runs it was found to be there, or nobody would ask. */
const stateOf = ({ contract }: RegisteredDriver, state: LoginState, facts: LoginFacts): LoginState => {
  const isOpen = openSteps(contract, facts).length > 0
  const from = isOpen && state !== "logging-in" && state !== "setup_required" ? "unknown" : state
  if (from === "setup_required" && !isOpen) return after(from, "setup-done") ?? from
  return after(from, isOpen ? "check-ok-setup-open" : "check-ok") ?? from
}

/** A refresh that failed is left alone for a while. */
export const isCoolingDown = ({ failure }: LoginFacts, now: Instant): boolean =>
  failure?.of === "refresh" && !isOver(failure.at, failure.coolDownMs, now)

export const isRefreshDue = ({ auth }: DriverContract, facts: LoginFacts, now: Instant): boolean => {
  if (isCoolingDown(facts, now)) return false
  const { refreshMs, expiresMs, refreshed } = facts
  if (refreshMs !== undefined && now.wallMs >= refreshMs) return true
  if (expiresMs !== undefined && now.wallMs >= expiresMs - loginLimits.marginMs.value) return true
  const every = auth?.refresh?.everyMs
  return every !== undefined && refreshed !== undefined && isOver(refreshed, every, now)
}
