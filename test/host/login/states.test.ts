import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { LoginState } from "../../../src/host/login-state.ts"
import {
  after,
  afterAll,
  allows,
  everyEvent,
  everyState,
  type LoginEvent,
  loginTable,
} from "../../../src/host/login/states.ts"

/** The table of the specs, written down a second time: what is not here must not be there. */
const edges: readonly (readonly [LoginState, LoginEvent, LoginState])[] = [
  ["unknown", "check-ok", "unauthed"],
  ["unknown", "check-ok-setup-open", "setup_required"],
  ["unknown", "check-failed", "unavailable"],
  ["unavailable", "check-ok", "unauthed"],
  ["unavailable", "check-ok-setup-open", "setup_required"],
  ["unavailable", "check-failed", "unavailable"],
  ["setup_required", "setup-done", "unauthed"],
  ["unauthed", "login-started", "logging-in"],
  ["unauthed", "secrets-resolved", "authed"],
  ["logging-in", "login-proven", "authed"],
  ["logging-in", "login-failed", "unauthed"],
  ["logging-in", "login-cancelled", "unauthed"],
  ["logging-in", "login-timed-out", "unauthed"],
  ["logging-in", "login-abandoned", "unauthed"],
  ["authed", "refreshed", "authed"],
  ["authed", "refresh-unreachable", "authed"],
  ["authed", "refresh-refused", "unauthed"],
  ["authed", "expiry-detected", "expired"],
  ["authed", "logged-out", "unauthed"],
  ["authed", "secrets-missing", "unauthed"],
  ["expired", "expiry-settled", "unauthed"],
]

describe("the login states", () => {
  it.each(edges)("from %s, %s leads to %s", (from, event, to) => expect(after(from, event)).toBe(to))

  it("know no other edge", () => {
    const known = new Set(edges.map(([from, event]) => `${from} ${event}`))
    const others = everyState.flatMap((from) =>
      everyEvent.filter((event) => !known.has(`${from} ${event}`)).map((event) => [from, event, after(from, event)]),
    )
    expect(others.filter(([, , to]) => to !== undefined)).toEqual([])
    expect(others).toHaveLength(everyState.length * everyEvent.length - edges.length)
  })

  it("let a call through when somebody is signed in, and in no other state", () => {
    expect(everyState.filter((state) => allows(state, "execute"))).toEqual(["authed"])
    expect(everyState.filter((state) => allows(state, "refresh"))).toEqual(["authed"])
    expect(everyState.filter((state) => allows(state, "login"))).toEqual(["unauthed"])
    expect(everyState.filter((state) => allows(state, "setup"))).toEqual(["setup_required"])
    expect(everyState.filter((state) => allows(state, "check"))).toEqual(["unknown", "unavailable"])
    expect(everyState.filter((state) => allows(state, "install"))).toEqual(["unavailable"])
  })

  it("are all reached from the first, and none is a dead end", () => {
    const reached = new Set<LoginState>(["unknown"])
    for (const state of reached)
      for (const to of Object.values(loginTable[state].leaves)) if (to !== undefined) reached.add(to)
    expect([...reached].sort()).toEqual([...everyState].sort())
    for (const state of everyState) expect(Object.values(loginTable[state].leaves)).not.toEqual([])
  })
})

/** What a driver's life is, told without states: what there is, and who is at it. */
interface Life {
  found: "not-yet" | "no" | "yes"
  setupOpen: boolean
  signedIn: boolean
  underWay: boolean
  expiring: boolean
}
const born: Life = { found: "not-yet", setupOpen: false, signedIn: false, underWay: false, expiring: false }

const stateOf = (life: Life): LoginState => {
  if (life.found === "not-yet") return "unknown"
  if (life.found === "no") return "unavailable"
  if (life.setupOpen) return "setup_required"
  if (life.underWay) return "logging-in"
  if (life.expiring) return "expired"
  return life.signedIn ? "authed" : "unauthed"
}

/** What an event does to a life; undefined where it cannot happen in it. */
const lived = (life: Life, event: LoginEvent): Life | undefined => {
  const unfound = life.found !== "yes"
  const idle = !unfound && !life.setupOpen && !life.underWay && !life.expiring
  const ends = { ...life, underWay: false, signedIn: false }
  switch (event) {
    case "check-ok":
      return unfound ? { ...life, found: "yes" } : undefined
    case "check-ok-setup-open":
      return unfound ? { ...life, found: "yes", setupOpen: true } : undefined
    case "check-failed":
      return unfound ? { ...life, found: "no" } : undefined
    case "setup-done":
      return life.setupOpen ? { ...life, setupOpen: false } : undefined
    case "login-started":
      return idle && !life.signedIn ? { ...life, underWay: true } : undefined
    case "secrets-resolved":
      return idle && !life.signedIn ? { ...life, signedIn: true } : undefined
    case "login-proven":
      return life.underWay ? { ...life, underWay: false, signedIn: true } : undefined
    case "login-failed":
    case "login-cancelled":
    case "login-timed-out":
    case "login-abandoned":
      return life.underWay ? ends : undefined
    case "refreshed":
    case "refresh-unreachable":
      return idle && life.signedIn ? life : undefined
    case "refresh-refused":
    case "logged-out":
    case "secrets-missing":
      return idle && life.signedIn ? ends : undefined
    case "expiry-detected":
      return idle && life.signedIn ? { ...life, signedIn: false, expiring: true } : undefined
    case "expiry-settled":
      return life.expiring ? { ...life, expiring: false } : undefined
  }
}

/** Mostly what can happen, so that histories get somewhere; now and then anything. */
const history = fc.array(fc.tuple(fc.boolean(), fc.nat(), fc.constantFrom(...everyEvent)), { maxLength: 60 })

describe("random histories", () => {
  it("leave every driver in the state that its life says, and what cannot happen changes nothing", () => {
    fc.assert(
      fc.property(history, (choices) => {
        let life = born
        let state: LoginState = "unknown"
        for (const [any, pick, odd] of choices) {
          const possible = everyEvent.filter((event) => lived(life, event) !== undefined)
          const event = any ? odd : (possible[pick % possible.length] ?? odd)
          const next = lived(life, event)
          expect(after(state, event) === undefined).toBe(next === undefined)
          state = after(state, event) ?? state
          life = next ?? life
          expect(state).toBe(stateOf(life))
        }
      }),
      { numRuns: 2_000 },
    )
  })

  it("reach a signed-in state by a proof or by secrets alone", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...everyEvent), { maxLength: 40 }), (events) => {
        const proofs = ["login-proven", "secrets-resolved"]
        const end = afterAll("unknown", events)
        if (end === "authed") expect(events.some((event) => proofs.includes(event))).toBe(true)
      }),
      { numRuns: 5_000 },
    )
    expect(afterAll("unknown", ["check-ok", "login-started", "login-proven"])).toBe("authed")
    expect(afterAll("authed", ["expiry-detected", "expiry-settled"])).toBe("unauthed")
    expect(afterAll("unknown", ["login-proven"])).toBeUndefined()
  })
})
