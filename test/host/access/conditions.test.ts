import { describe, expect, it } from "vitest"
import { conditionHolds } from "../../../src/host/access/conditions.ts"
import type { GrantCondition } from "../../../src/manifest/types.ts"

const hours = (timezone: string): GrantCondition => ({ kind: "during-business-hours", timezone })
const range = (address: string, prefix: number): GrantCondition => ({ kind: "ip-range", address, prefix })

describe("a condition", () => {
  // biome-ignore format: a table reads by rows
  it.each<[string, string, string, boolean]>([
    ["begins at nine", "Europe/Berlin", "2026-11-19T08:00:00Z", true],
    ["has not begun before", "Europe/Berlin", "2026-11-19T07:59:59Z", false],
    ["goes on until five", "Europe/Berlin", "2026-11-19T15:59:59Z", true],
    ["is over at five", "Europe/Berlin", "2026-11-19T16:00:00Z", false],
    ["is an hour earlier in summer", "Europe/Berlin", "2026-07-16T07:00:00Z", true],
    ["is of its own place alone", "America/New_York", "2026-11-19T08:00:00Z", false],
    ["is not at midnight, which is no 24", "Europe/Berlin", "2026-11-18T23:00:00Z", false],
    ["is of Friday", "UTC", "2026-11-20T12:00:00Z", true],
    ["is not of Saturday", "UTC", "2026-11-21T12:00:00Z", false],
    ["is not of Sunday, which is Saturday elsewhere", "Pacific/Auckland", "2026-11-21T22:00:00Z", false],
    ["is of Monday there while it is Sunday here", "Pacific/Auckland", "2026-11-22T22:00:00Z", true],
  ])("on business hours %s", (_, timezone, at, holds) => {
    expect(conditionHolds(hours(timezone), {}, Date.parse(at))).toBe(holds)
  })

  // biome-ignore format: a table reads by rows
  it.each<[string, GrantCondition, string | undefined, boolean]>([
    ["in it", range("10.0.0.0", 8), "10.255.255.255", true],
    ["beside it", range("10.0.0.0", 8), "11.0.0.0", false],
    ["that is the one", range("192.0.2.7", 32), "192.0.2.7", true],
    ["next to the one", range("192.0.2.7", 32), "192.0.2.8", false],
    ["in it, as a listener for both families tells it", range("10.0.0.0", 8), "::ffff:10.1.2.3", true],
    ["of the other family", range("10.0.0.0", 8), "2001:db8::1", false],
    ["of the newer family", range("2001:db8::", 32), "2001:db8:ffff::1", true],
    ["beside that", range("2001:db8::", 32), "2001:db9::1", false],
    ["of any of the older family", range("0.0.0.0", 0), "203.0.113.9", true],
    ["that nobody can tell", range("0.0.0.0", 0), undefined, false],
    ["that is none", range("0.0.0.0", 0), "localhost", false],
  ])("on an address: one %s", (_, condition, address, holds) => {
    expect(conditionHolds(condition, address === undefined ? {} : { address }, 0)).toBe(holds)
  })

  it.each<GrantCondition>([
    { kind: "mfa-recent", withinSeconds: 60 },
    { kind: "approval-from", role: "owner", count: 1 },
    { kind: "signed-by", role: "owner" },
    { kind: "unknown", name: "full-moon" },
  ])("that nobody here can tell never holds: $kind", (condition) => {
    expect(conditionHolds(condition, { address: "127.0.0.1" }, Date.parse("2026-11-19T12:00:00Z"))).toBe(false)
  })
})
