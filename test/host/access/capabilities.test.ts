import { describe, expect, it } from "vitest"
import { type Caller, processCaller } from "../../../src/host/access/caller.ts"
import { type Capability, reaching, revealing, ungranted } from "../../../src/host/access/capabilities.ts"
import { driverRefusal } from "../../../src/host/access/decide.ts"
import type { GovernanceRule, Grant, GrantsPolicy } from "../../../src/manifest/types.ts"
import { policyOf, ruleOf, toolOf } from "./values.ts"

const ana: Caller = { ...processCaller("ana"), actor: "ana", roles: ["caller"] }
const now = Date.parse("2026-01-02T00:00:00Z")
const grant = (action: string, scope?: string, change: Partial<Grant> = {}): Grant => ({
  id: "g",
  principal: { kind: "scheme", scheme: "user", name: "ana" },
  actions: [{ action, ...(scope === undefined ? {} : { scope }) }],
  conditions: [],
  revoked: false,
  ...change,
})
const refused = (policies: readonly GrantsPolicy[], needed: readonly Capability[], who: Caller = ana) =>
  ungranted(policies, who, needed, now)
const reach = reaching(["api.good.test"])

describe("a grant of hosts", () => {
  // biome-ignore format: a table reads by rows
  it.each<[string | undefined, string, boolean]>([
    [undefined, "api.good.test", true],
    ["*", "api.good.test", true],
    ["network:*", "api.good.test", true],
    ["network:api.good.test", "api.good.test", true],
    ["api.good.test", "api.good.test", true],
    ["network:*.good.test", "api.good.test", true],
    ["network:*.good.test", "*.cdn.good.test", true],
    ["network:*.good.test", "good.test", false],
    ["network:*.cdn.good.test", "*.good.test", false],
    ["network:api.good.test", "*.good.test", false],
    ["network:api.good.test", "api.good.test:80", true],
    ["network:api.good.test:443", "api.good.test", false],
    ["network:api.good.test", "tcp://api.good.test:5432", false],
    ["network:good.test", "evilgood.test", false],
    ["secret:api.good.test", "api.good.test", false],
    ["not a host", "api.good.test", false],
  ])("in the scope %s holds for %s: %s", (scope, host, holds) => {
    const found = refused([policyOf({ grants: [grant("sandbox:network-egress", scope)] })], reaching([host]))
    expect(found === undefined).toBe(holds)
    if (!holds) expect(found).toMatchObject({ reason: "no-grant", policy: "@acme/team", needs: host })
  })
  it("is asked of nobody before there is one, nor where every policy allows by default", () => {
    expect(refused([policyOf({ grants: [grant("notes:append"), grant("*")] })], reach)).toBeUndefined()
    const open = policyOf({ default: "allow", grants: [grant("sandbox:network-egress", "network:other.test")] })
    expect(refused([open], reach)).toBeUndefined()
  })
  it("adds up with those of other policies, and is wanted once any of them gives one", () => {
    const other = policyOf({ grants: [grant("sandbox:network-egress", "network:other.test")] }, "@acme/other")
    expect(refused([policyOf({ grants: [grant("notes:append")] }), other], reach)).toMatchObject({
      policy: "@acme/other",
    })
    expect(refused([policyOf({ grants: [grant("*")] }), other], reach)).toBeUndefined()
  })
  it.each<[string, Partial<Grant>, string]>([
    ["was revoked", { revoked: true }, "explicit-revoke"],
    ["has run out", { endsAt: now }, "ttl-expired"],
    ["is on a condition that nobody can tell", { conditions: [{ kind: "unknown", name: "moon" }] }, "condition-failed"],
    ["is another's", { principal: { kind: "scheme", scheme: "user", name: "bob" } }, "no-grant"],
  ])("holds for nobody where it %s", (_, change, reason) => {
    const policy = policyOf({ grants: [grant("sandbox:network-egress", undefined, change)] })
    expect(refused([policy], reach)).toMatchObject({ reason })
  })
})

it("a requirement that cannot be held refuses what it names, wherever the default stands", () => {
  const requirements = [{ kind: "mfa-recent", appliesTo: ["secrets:*"] }]
  const policy = policyOf({ default: "allow", requirements })
  expect(refused([policy], revealing(["key"]))).toMatchObject({ reason: "requirement-failed", unheld: "mfa-recent" })
  expect(refused([policy], reach)).toBeUndefined()
})

describe("a rule about hosts and secrets", () => {
  const said = (rule: GovernanceRule, needed: readonly Capability[], tool = toolOf()) =>
    driverRefusal({ grants: [], rules: [rule], named: [], onMutate: "ask" }, ana, { tool }, needed, now)
  const deny = (action: string, subject?: string, riskLevelMin: 0 | 1 | 2 | 3 = 0) =>
    ruleOf({ decision: "deny", match: { action, riskLevelMin, ...(subject === undefined ? {} : { subject }) } })
  // biome-ignore format: a table reads by rows
  it.each<[string, string | undefined, string, boolean]>([
    ["sandbox.network-egress", undefined, "api.good.test", true],
    ["sandbox:network-egress", undefined, "api.good.test", true],
    ["sandbox.*", "api.good.test", "api.good.test", true],
    ["sandbox.execute", undefined, "api.good.test", false],
    ["*", "api.good.test", "api.good.test", true],
    ["sandbox.*", "API.good.test", "api.good.test", true],
    ["sandbox.*", "network:api.good.test", "api.good.test:8443", true],
    ["sandbox.*", "*.good.test", "api.good.test", true],
    ["sandbox.*", "api.good.test", "*.good.test", true],
    ["sandbox.*", "*.cdn.good.test", "*.good.test", true],
    ["sandbox.*", "pay*.test", "*.good.test", true],
    ["sandbox.*", "pay*.test", "pay-me.test", true],
    ["sandbox.*", "other.test", "*.good.test", false],
    ["sandbox.*", "good.test", "*.good.test", false],
    ["sandbox.*", "api.good.test", "tcp://api.good.test:5432", true],
  ])("of %s, subject %s, denies a driver that reaches %s: %s", (action, subject, host, isDenied) => {
    expect(said(deny(action, subject), reaching([host]))?.policy).toBe(isDenied ? "review" : undefined)
  })
  it("is about the risk of what it speaks of, however harmless the tool says that it is", () => {
    expect(said(deny("sandbox.*", undefined, 2), reach)?.policy).toBe("review")
    expect(said(deny("sandbox.*", undefined, 3), reach)).toBeUndefined()
    expect(said(deny("secrets.*", undefined, 2), revealing(["key"]))).toBeUndefined()
    expect(said(deny("secrets.*", "secret:key", 1), revealing(["key"]))?.policy).toBe("review")
  })
  it("that wants a yes leaves a driver alone where the contract names what it needs, for somebody is asked then", () => {
    const rule = ruleOf({ match: { action: "sandbox.*" } })
    expect(said(rule, reach)?.reason).toContain("which the contract does not name")
    const named = toolOf({ requires: { network: ["api.good.test"], secrets: [], tools: [] } })
    expect(said(rule, reach, named)).toBeUndefined()
    const other = toolOf({ requires: { network: ["other.test"], secrets: [], tools: [] } })
    const narrow = ruleOf({ match: { action: "sandbox.*", subject: "api.good.test" } })
    expect(said(narrow, reach, other)?.policy).toBe("review")
  })
})
