import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { resolve } from "../../../src/host/resolver/resolve.ts"
import type { AuthStatus, ResolveInput } from "../../../src/host/resolver/types.ts"
import type { Availability } from "../../../src/host/types.ts"
import type { DriverKind } from "../../../src/manifest/types.ts"
import { sketch, toolOf } from "./contracts.ts"

const kinds: readonly DriverKind[] = ["builtin", "sdk", "http", "mcp", "cli"]
const auth = { state: { paths: [], env: ["API_KEY"] } }
const gone: Availability = { available: false, code: "tool_unavailable", reason: "it is not there", fix: "install it" }
const old: Availability = { available: false, code: "version_mismatch", reason: "it is too old", fix: "upgrade it" }

const outcome = (input: ResolveInput): string => {
  const result = resolve(input)
  return result.ok ? result.driver.key : `${result.code}/${result.cause.reason}`
}

describe("whatever the drivers", () => {
  const available = fc.constantFrom<Availability | undefined>({ available: true }, gone, old, undefined)
  const one = fc.record({
    id: fc.constantFrom("a", "b", "c", "d", "e"),
    major: fc.integer({ min: 1, max: 2 }),
    kind: fc.constantFrom(...kinds),
    cost: fc.option(fc.integer({ min: 0, max: 3 }), { nil: undefined }),
    drops: fc.subarray(["seed", "aspect"]),
    tags: fc.subarray(["x", "y"]),
    region: fc.subarray(["EU", "US", "global"], { minLength: 1 }),
    declared: fc.boolean(),
    login: fc.constantFrom<AuthStatus["state"] | "none">("none", "authed", "unauthed", "setup_required"),
    available,
    health: fc.option(fc.record({ ok: fc.boolean(), at: fc.integer({ min: 0, max: 9 }) }), { nil: undefined }),
  })
  const world = fc.record({
    drivers: fc.uniqueArray(one, { maxLength: 6, selector: (each) => `${each.id}@${each.major}` }),
    used: fc.subarray(["seed", "aspect"]),
    deny: fc.subarray(["x"]),
    allow: fc.subarray(["y"]),
    regions: fc.option(fc.constant(["EU"]), { nil: undefined }),
    pin: fc.option(fc.constantFrom("a", "b@2"), { nil: undefined }),
    fallback: fc.option(fc.constantFrom("a", "c"), { nil: undefined }),
    seed: fc.integer(),
  })
  type World = typeof world extends fc.Arbitrary<infer T> ? T : never

  const build = ({ drivers, used, deny, allow, regions, pin, fallback }: World): ResolveInput => {
    const keyOf = (each: World["drivers"][number]): string => `${each.id}@${each.major}`
    return {
      tool: toolOf(fallback === undefined ? {} : { defaultImplementation: fallback }),
      drivers: drivers.map((each) =>
        sketch(each.id, {
          kind: each.kind,
          ...(each.cost === undefined ? {} : { cost: each.cost }),
          entry: { dropInputs: each.drops },
          driver: {
            version: `${each.major}.0.0`,
            major: each.major,
            policyTags: each.tags,
            region: each.region,
            regionDeclared: each.declared,
            ...(each.login === "none" ? {} : { auth }),
          },
        }),
      ),
      call: {
        input: Object.fromEntries([["prompt", "x"], ...used.map((key) => [key, 1])]),
        ...(pin === undefined ? {} : { pin }),
      },
      policy: { tags: { allow, deny }, ...(regions === undefined ? {} : { regions }) },
      availability: new Map(
        drivers.flatMap((each) => (each.available === undefined ? [] : [[keyOf(each), each.available]])),
      ),
      health: new Map(drivers.flatMap((each) => (each.health === undefined ? [] : [[keyOf(each), each.health]]))),
      auth: new Map(drivers.flatMap((each) => (each.login === "none" ? [] : [[keyOf(each), { state: each.login }]]))),
    }
  }

  it("gives the same answer for every order of drivers", () => {
    fc.assert(
      fc.property(world, (each) => {
        const input = build(each)
        const drivers = input.drivers.toSorted(
          (a, b) =>
            ((a.key.charCodeAt(0) * 31 + a.contract.major) ^ each.seed) -
            ((b.key.charCodeAt(0) * 31 + b.contract.major) ^ each.seed),
        )
        const { rows, audit, ...other } = resolve({ ...input, drivers })
        const first = resolve(input)
        expect([outcome({ ...input, drivers }), rows, audit, other.ok]).toEqual([
          outcome(input),
          first.rows,
          first.audit,
          first.ok,
        ])
      }),
      { numRuns: 300 },
    )
  })

  it("never selects a driver that any phase forbids, and gives each driver one row", () => {
    fc.assert(
      fc.property(world, (each) => {
        const input = build(each)
        const result = resolve(input)
        expect(result.rows.map((row) => row.driver).toSorted()).toEqual(
          input.drivers.map((driver) => driver.key).toSorted(),
        )
        expect(result.rows.filter((row) => row.phase === "selected")).toHaveLength(result.ok ? 1 : 0)
        if (!result.ok) return
        const { contract, key } = result.driver
        expect(input.availability.get(key)?.available).toBe(true)
        expect(input.health.get(key)?.ok).not.toBe(false)
        if (contract.auth !== undefined) expect(input.auth.get(key)?.state).toBe("authed")
        expect(contract.policyTags.some((tag) => each.deny.some((denied) => denied === tag))).toBe(false)
        if (each.allow.length > 0) expect(contract.policyTags).toContain("y")
        if (each.regions !== undefined)
          expect([contract.regionDeclared, contract.region.includes("EU")]).toEqual([true, true])
        expect(result.implementation.dropInputs.some((field) => Object.hasOwn(input.call.input, field))).toBe(false)
        if (each.pin !== undefined) expect([key, contract.id]).toContain(each.pin)
      }),
      { numRuns: 300 },
    )
  })
})
