import { describe, expect, it } from "vitest"
import { createSyntheticAddresses, isSynthetic, syntheticCap } from "../../../src/egress-proxy/dns/synthetic.ts"

describe("synthetic addresses", () => {
  it("are stable for a name and lead back to it, also in mapped spelling", () => {
    const addresses = createSyntheticAddresses()
    const first = addresses.addressFor("a.test") as string
    const second = addresses.addressFor("b.test")
    expect(first).toBe("198.18.0.2")
    expect(second).not.toBe(first)
    expect(addresses.addressFor("a.test")).toBe(first)
    expect(addresses.nameFor(first)).toBe("a.test")
    expect(addresses.nameFor(`::ffff:${first}`)).toBe("a.test")
  })

  it("are all different, in the range, and never a reserved one", () => {
    const addresses = createSyntheticAddresses({ cap: 200_000 })
    const seen = new Set<string>()
    for (let count = 0; ; count += 1) {
      const address = addresses.addressFor(`n${count}.test`)
      if (address === undefined) break
      seen.add(address)
    }
    expect(seen.size).toBe(512 * 254 - 1)
    expect([...seen].every((address) => /^198\.1[89]\.\d+\.(?!0$|255$)\d+$/.test(address))).toBe(true)
    expect(seen.has("198.18.0.1")).toBe(false)
    expect(seen.has("198.19.255.254")).toBe(true)
  })

  it("end at the cap, and known names keep theirs", () => {
    const addresses = createSyntheticAddresses({ cap: 2 })
    const first = addresses.addressFor("a.test")
    addresses.addressFor("b.test")
    expect(addresses.addressFor("c.test")).toBeUndefined()
    expect(addresses.addressFor("a.test")).toBe(first)
    expect(syntheticCap).toBe(4096)
  })

  it("of an earlier generation are stale, not another name", () => {
    const before = createSyntheticAddresses({ generation: 1 })
    const after = createSyntheticAddresses({ generation: 2 })
    const kept = before.addressFor("old.test") as string
    after.addressFor("new.test")
    expect(after.nameFor(kept)).toBeUndefined()
    expect(after.stale(kept)).toBe(true)
    expect(before.stale(kept)).toBe(false)
  })

  it("are not confused with real ones", () => {
    expect(createSyntheticAddresses().stale("93.184.216.34")).toBe(false)
    expect([isSynthetic("198.17.255.255"), isSynthetic("198.20.0.0"), isSynthetic("198.19.0.1")]).toEqual([
      false,
      false,
      true,
    ])
  })
})
