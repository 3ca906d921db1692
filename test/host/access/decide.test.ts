import { describe, expect, it } from "vitest"
import { type Caller, processCaller } from "../../../src/host/access/caller.ts"
import { type CallFacts, decide, mayApprove } from "../../../src/host/access/decide.ts"
import type { AccessPolicy } from "../../../src/host/access/policy.ts"
import { scopes } from "../call/values.ts"
import { actionOf, policyOf, ruleOf, toolOf } from "./values.ts"

const ana: Caller = {
  user: "ana",
  actor: "ana",
  how: "token",
  workspaces: ["/srv/ana"],
  roles: ["caller"],
  mayApprove: true,
}
const operator = processCaller()
const open: AccessPolicy = { grants: [], rules: [], named: [], onMutate: "ask" }
const facts = (change: Partial<CallFacts> = {}): CallFacts => ({
  asked: "notes.append",
  tool: toolOf(),
  workspace: "/srv/ana/notes",
  named: "/srv/ana/notes",
  plan: false,
  approved: false,
  beforehand: false,
  now: 0,
  ...change,
})
const always = toolOf({ approval: { class: "always" } })

describe("decide", () => {
  it("lets a caller through who may, with what its effects need", () => {
    expect(decide(open, ana, facts())).toMatchObject({
      ok: true,
      approval: { class: "on-mutate", granted: false, mayGrant: true, onEffects: "ask" },
      access: { decision: "allow", reason: "no-policy", principal: "user://ana" },
    })
  })

  // Each case breaks its own rule and all that come after it: the first one decides.
  const closed: AccessPolicy = { ...open, grants: [policyOf()], rules: [ruleOf({ decision: "deny" })] }
  const elsewhere = facts({ tool: always, workspace: "/srv/bob", named: "/srv/ana/link" })
  const here = facts({ tool: always })
  const granted = policyOf({
    grants: [
      { id: "g", principal: { kind: "anyone" }, actions: [{ action: "notes.append" }], conditions: [], revoked: false },
    ],
  })
  const limited = policyOf({ ...granted.grants, limits: [{ kind: "rate-tool-calls", value: 1, appliesTo: [] }] })
  // biome-ignore format: a table reads by rows
  it.each<[string, AccessPolicy, Caller, CallFacts, object]>([
    ["who acts", closed, { ...ana, roles: [], user: "bob" }, elsewhere, { code: "unauthorised", message: "this caller may not make calls" }],
    ["for whom", closed, { ...ana, user: "bob" }, elsewhere, { code: "unauthorised", message: "this caller may not act for another user" }],
    ["the resource", closed, ana, elsewhere, { code: "not_found", message: "there is no folder /srv/ana/link to use as the workspace" }],
    ["the operator's roots", { ...closed, workspaces: ["/srv/bob"] }, ana, here, { code: "not_found" }],
    ["the permission", closed, ana, here, { code: "not_found", message: "there is no tool notes.append" }],
    ["the permission, as its operator hears it", closed, operator, here, { code: "unauthorised", details: { reason: "no-grant" } }],
    ["the rule that denies", { ...closed, grants: [granted] }, operator, here, { code: "policy_violation", details: { policy: "review" } }],
    ["what cannot be held", { ...open, grants: [limited] }, operator, here, { code: "unauthorised", message: expect.stringContaining("rate-tool-calls") }],
    ["approval", { ...open, grants: [granted] }, ana, here, { code: "approval_required" }],
    ["nothing", { ...open, grants: [granted] }, ana, { ...here, approved: true }, { ok: true, access: { grant: "g" } }],
  ])("looks at %s in its turn", (_, policy, caller, call, told) => {
    expect(decide(policy, caller, call)).toMatchObject(told)
  })

  it("answers for a tool that may not be used as for one that is not there, and keeps why for the receipt", () => {
    const refused = decide({ ...open, grants: [policyOf()] }, ana, facts({ asked: "notes.append@1" }))
    expect(refused).toMatchObject({
      code: "not_found",
      message: "there is no tool notes.append@1",
      details: { tool: "notes.append@1" },
      evidence: { access: { reason: "no-grant", policy: "@acme/team" } },
    })
    expect(refused).not.toHaveProperty("hint")
  })

  it("takes acting for another from those who may", () => {
    expect(decide(open, { ...ana, user: "bob", roles: ["caller", "act-for"] }, facts()).ok).toBe(true)
  })

  it("does not count the yes of a caller who may not approve", () => {
    expect(decide(open, ana, facts({ tool: always, approved: true })).ok).toBe(true)
    const child: Caller = { ...ana, mayApprove: false }
    expect(decide(open, child, facts({ tool: always, approved: true }))).toMatchObject({
      code: "approval_required",
      details: { approver: "another person" },
    })
    expect(decide(open, child, facts({ approved: true }))).toMatchObject({
      approval: { granted: false, mayGrant: false, onEffects: "ask" },
    })
  })
})

describe("rules", () => {
  const held = (rule: Parameters<typeof ruleOf>[0], call: Partial<CallFacts> = {}, caller = ana) =>
    decide(
      { ...open, rules: [ruleOf(rule)] },
      caller,
      facts({ tool: toolOf({ mutates: [], approval: { class: "auto" } }), ...call }),
    )

  // biome-ignore format: a table reads by rows
  it.each<[string, Parameters<typeof ruleOf>[0], string]>([
    ["every action", { match: { action: "*" } }, "approval_required"],
    ["the tool's id", { match: { action: "notes.*" } }, "approval_required"],
    ["another tool", { match: { action: "mail.*" } }, "ok"],
    ["a part in the middle", { match: { action: "n*.app*d" } }, "approval_required"],
    ["a part that is not there", { match: { action: "n*.apq*d" } }, "ok"],
    ["parts that would have to overlap", { match: { action: "notes.append*append" } }, "ok"],
    ["the tool as its subject", { match: { subject: "notes.append@1" } }, "approval_required"],
    ["another subject", { match: { subject: "mail.*" } }, "ok"],
    ["larger risks", { match: { riskLevelMin: 2 } }, "ok"],
    ["what it allows", { decision: "allow" }, "ok"],
    ["what it allows within a budget, which is not counted here", { decision: "allow", budget: { currency: "USD" } }, "approval_required"],
    ["what it allows at little autonomy", { decision: "allow", autonomy: 1 }, "approval_required"],
    ["what it escalates", { decision: "escalate" }, "approval_required"],
    ["a word that is not known", { decision: "perhaps" as never }, "approval_required"],
  ])("hold calls of a vouched folder by %s", (_, rule, told) => {
    const verdict = held(rule)
    expect(verdict.ok ? "ok" : verdict.code).toBe(told)
  })

  it("are named with what they say, in what is let through and in what is asked", () => {
    const quiet = ruleOf({ slug: "quiet", decision: "allow", match: { action: "notes.*" } })
    const strict = ruleOf({ slug: "strict", version: "2.0.0" })
    const large = ruleOf({ slug: "large", match: { riskLevelMin: 3 } })
    const policy = { ...open, rules: [quiet, strict, large], named: [] }
    expect(decide(policy, ana, facts())).toMatchObject({
      code: "approval_required",
      message: expect.stringContaining("the policy strict"),
      details: { policy: "strict@2.0.0" },
    })
    const allowed = decide(policy, ana, facts({ approved: true }))
    expect(allowed.ok && allowed.approval.rules).toEqual([
      { rule: "quiet@1.0.0", says: "allow" },
      { rule: "strict@2.0.0", says: "ask" },
    ])
  })

  it("match the action that a tool implements, in either spelling", () => {
    for (const action of ["notes:append", "notes.app*"])
      expect(
        held({ match: { action } }, { tool: toolOf({ id: "x", implements: "notes:append" }), action: actionOf() }),
      ).toMatchObject({
        code: "approval_required",
      })
  })

  it("are as strict as the strictest", () => {
    const rules = [ruleOf({ decision: "allow" }), ruleOf(), ruleOf({ slug: "never", decision: "deny" })]
    expect(decide({ ...open, rules }, operator, facts())).toMatchObject({
      code: "policy_violation",
      details: { policy: "never" },
    })
  })

  // biome-ignore format: a table reads by rows
  it.each<[string, Parameters<typeof ruleOf>[0], Partial<Caller>, boolean]>([
    ["anybody, where none are named", {}, {}, true],
    ["a signer by name", { signers: [{ by: "user", user: "ana" }] }, {}, true],
    ["somebody else", { signers: [{ by: "user", user: "bob" }] }, {}, false],
    ["somebody who acts for a signer", { signers: [{ by: "user", user: "bob" }] }, { user: "bob", roles: ["caller", "act-for"] }, false],
    ["a signer by role", { signers: [{ by: "role", role: "approver" }] }, { roles: ["caller", "approver"] }, true],
    ["the owner", { signers: [{ by: "role", role: "owner" }] }, { roles: ["caller", "operator"] }, true],
    ["one of two that are wanted", { quorum: 2 }, {}, false],
    ["one who may not approve", {}, { mayApprove: false }, false],
  ])("count the yes of %s", (_, rule, who, counts) => {
    const caller = { ...ana, ...who }
    expect(held(rule, { approved: true }, caller).ok).toBe(counts)
    expect(mayApprove({ ...open, rules: [ruleOf(rule)] }, caller, { tool: toolOf() })).toBe(counts)
  })
})

describe("approval", () => {
  it("takes what cannot be undone before the run, also for a plan, and effects after it", () => {
    const outside = toolOf({ mutates: scopes("external:mail") })
    for (const plan of [false, true])
      expect(decide({ ...open, onMutate: "auto" }, ana, facts({ tool: outside, plan }))).toMatchObject({
        code: "approval_required",
        details: { mutates: ["external:mail"] },
      })
    expect(decide(open, ana, facts({ tool: outside, beforehand: true }))).toMatchObject({
      approval: { granted: false, answers: { call: true }, onEffects: "ask" },
    })
  })
})
