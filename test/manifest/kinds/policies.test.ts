import { describe, expect, it } from "vitest"
import type { GovernanceRule, GrantSet } from "../../../src/manifest/types.ts"
import { asPolicy, errors, load, warnings } from "../from-text.ts"

const rule = (extra = "", match = "action: a.b", decision = "deny"): string =>
  `schema: agentgovernance/v1\ndoctype: policy\nslug: s\nversion: 1.0.0\nmatch: { ${match} }\ndecision: ${decision}\n${extra}`
const asRule = (front: string): GovernanceRule => {
  const policy = asPolicy(load("POLICY.md", front, "strict"))
  if (policy.dialect !== "governance") throw new Error("not a rule")
  return policy.rule
}
const grant = (extra: string): string =>
  `schema: policy/v1\ngrants: [{ principal: "user://ana", actions: [{ action: "a:b" }]${extra} }]`
const asGrants = (front: string): GrantSet => {
  const policy = asPolicy(load("POLICY.md", front))
  if (policy.dialect !== "grants") throw new Error("no grants")
  return policy.grants
}

describe("a rule of AIP-7", () => {
  it("comes out with every default filled in", () => {
    expect(asRule(rule())).toEqual({
      slug: "s",
      version: "1.0.0",
      match: { action: "a.b", riskLevelMin: 0 },
      decision: "deny",
      signers: [],
      quorum: 1,
      autonomy: 2,
    })
  })
  it("comes out typed in full", () => {
    const extra =
      "signers: [{ role: owner }, { userId: ana }]\nquorum: 2\nautonomy: 4\nbudget: { max_per_hour: 1, max_per_day: 2, max_amount_cents: 3 }"
    expect(asRule(rule(extra, 'action: "a.*", subject: "/x/*", risk_level_min: 3', "require-approval"))).toEqual({
      slug: "s",
      version: "1.0.0",
      match: { action: "a.*", subject: "/x/*", riskLevelMin: 3 },
      decision: "require-approval",
      signers: [
        { by: "role", role: "owner" },
        { by: "user", user: "ana" },
      ],
      quorum: 2,
      autonomy: 4,
      budget: { maxPerHour: 1, maxPerDay: 2, maxAmountCents: 3, currency: "USD" },
    })
  })
  it("says of an approval that can never be given that it cannot", () => {
    const result = (signers: string): string[] =>
      warnings(load("POLICY.md", rule(`signers: ${signers}\nquorum: 2`, "action: a", "require-approval")))
    expect(result("[{ userId: ana }]")).toEqual(["quorum-unreachable @ quorum"])
    expect(result("[{ userId: ana }, { userId: ana }]")).toEqual([
      "signer-twice @ signers[1]",
      "quorum-unreachable @ quorum",
    ])
    expect(result("[{ role: owner }]")).toEqual([])
  })
  it.each([
    ["a decision that is none", rule("", "action: a", "perhaps"), "not-one-of @ decision"],
    ["a signer that is two", rule("signers: [{ role: a, userId: b }]"), "out-of-range @ signers[0]"],
    ["a quorum of nobody", rule("quorum: 0"), "out-of-range @ quorum"],
    ["an autonomy off the ladder", rule("autonomy: 5"), "out-of-range @ autonomy"],
    ["an action with a blank", rule("", 'action: "a b"'), "bad-value @ match.action"],
  ])("is refused with %s", (_what, front, expected) => {
    expect(errors(load("POLICY.md", front))).toEqual([expected])
  })
})

describe("grants of AIP-38", () => {
  it("come out with the defaults that deny", () => {
    expect(asGrants("schema: policy/v1")).toEqual({
      default: "deny",
      grants: [],
      limits: [],
      requirements: [],
      defaults: {},
    })
  })
  it.each([
    ['"*"', { kind: "anyone" }],
    ["user://current", { kind: "scheme", scheme: "user", name: "current" }],
    ["role://owner", { kind: "scheme", scheme: "role", name: "owner" }],
    ["{ ref: team/ana }", { kind: "ref", ref: "team/ana" }],
    ["{ file: ./ana.md }", { kind: "file", file: "./ana.md" }],
    ["{ name: Ana, email: ana@x.test }", { kind: "person", name: "Ana", email: "ana@x.test" }],
    ["{ pet: cat }", { kind: "unknown" }],
  ])("name the principal %s", (written, principal) => {
    const front = grant("").replace('"user://ana"', written)
    expect(asGrants(front).grants[0]?.principal).toEqual(principal)
    expect(warnings(load("POLICY.md", front))).toEqual(
      principal.kind === "unknown" ? ["principal-unknown @ grants[0].principal"] : [],
    )
  })
  it.each([
    [
      "{ kind: during-business-hours, timezone: Europe/Berlin }",
      { kind: "during-business-hours", timezone: "Europe/Berlin" },
    ],
    ["{ kind: ip-range, cidr: 10.0.0.0/8 }", { kind: "ip-range", address: "10.0.0.0", prefix: 8 }],
    ['{ kind: ip-range, cidr: "2001:db8::/32" }', { kind: "ip-range", address: "2001:db8::", prefix: 32 }],
    ["{ kind: ip-range, cidr: 10.0.0.1 }", { kind: "ip-range", address: "10.0.0.1", prefix: 32 }],
    ["{ kind: mfa-recent, within_seconds: 300 }", { kind: "mfa-recent", withinSeconds: 300 }],
    ["{ kind: approval-from, role: owner, count: 2 }", { kind: "approval-from", role: "owner", count: 2 }],
    ["{ kind: signed-by, role: owner }", { kind: "signed-by", role: "owner" }],
  ])("read the condition %s", (written, condition) => {
    const front = grant(`, conditions: [${written}]`)
    expect(asGrants(front).grants[0]?.conditions).toEqual([condition])
    expect(warnings(load("POLICY.md", front))).toEqual([])
  })
  it.each([
    ["condition-unknown", "{ kind: full-moon }"],
    ["condition-unreadable", "{ kind: during-business-hours, timezone: Atlantis/Deep }"],
    ["condition-unreadable", "{ kind: during-business-hours }"],
    ["condition-unreadable", "{ kind: ip-range, cidr: 10.0.0.0/33 }"],
    ["condition-unreadable", "{ kind: ip-range, cidr: 010.0.0.1 }"],
    ["condition-unreadable", "{ kind: ip-range, cidr: everywhere }"],
    ["condition-unreadable", "{ kind: mfa-recent, within_seconds: -1 }"],
    ["condition-unreadable", "{ kind: mfa-recent, within_seconds: 1.5 }"],
    ["condition-unreadable", "{ kind: approval-from, role: owner, count: 0 }"],
    ["condition-unreadable", '{ kind: signed-by, role: "" }'],
  ])("keep a condition that cannot be checked as one that never holds (%s: %s)", (name, written) => {
    const front = grant(`, conditions: [${written}]`)
    expect(asGrants(front).grants[0]?.conditions).toMatchObject([{ kind: "unknown" }])
    expect(warnings(load("POLICY.md", front))).toEqual([`${name} @ grants[0].conditions[0]`])
  })
  it.each([
    ["a start and a time", ', ttl_seconds: 60, granted_at: "2026-01-01T00:00:00Z"', Date.UTC(2026, 0, 1, 0, 1), []],
    ["no time", ', granted_at: "2026-01-01T00:00:00Z"', undefined, []],
    ["no start", ", ttl_seconds: 60", 0, ["grant-without-start @ grants[0].granted_at"]],
    [
      "a start that is a day",
      ', ttl_seconds: 60, granted_at: "2026-01-01"',
      0,
      ["grant-start-unreadable @ grants[0].granted_at"],
    ],
    [
      "a start that never was",
      ', ttl_seconds: 60, granted_at: "2026-13-41T00:00:00Z"',
      0,
      ["grant-start-unreadable @ grants[0].granted_at"],
    ],
    [
      "a start in words",
      ', ttl_seconds: 60, granted_at: "1 Jan 2999 UTC"',
      0,
      ["grant-start-unreadable @ grants[0].granted_at"],
    ],
  ])("end as they say with %s", (_what, extra, endsAt, said) => {
    expect(asGrants(grant(extra)).grants[0]?.endsAt).toBe(endsAt)
    expect(warnings(load("POLICY.md", grant(extra)))).toEqual(said)
  })
  it("keep limits that are known and requirements under their names", () => {
    const front =
      "schema: policy/v1\nlimits: [{ kind: rate-tool-calls, value: 60, per: minute, applies_to: [a] }, { kind: max-fun, value: 1 }]\nrequirements: [{ kind: notarised, applies_to: ['a:b'] }]"
    expect(asGrants(front)).toMatchObject({
      limits: [{ kind: "rate-tool-calls", value: 60, per: "minute", appliesTo: ["a"] }],
      requirements: [{ kind: "notarised", appliesTo: ["a:b"] }],
    })
  })
})
