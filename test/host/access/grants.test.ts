import { describe, expect, it } from "vitest"
import { type Caller, processCaller } from "../../../src/host/access/caller.ts"
import { evaluateGrants } from "../../../src/host/access/grants.ts"
import type { Grant, GrantSet, Principal } from "../../../src/manifest/types.ts"
import { actionOf, policyOf, toolOf } from "./values.ts"
import { scopes } from "../call/values.ts"

const ana: Caller = { ...processCaller("ana"), actor: "ana", roles: ["caller"] }
const owner: Caller = { ...ana, roles: ["caller", "operator"] }
const now = Date.parse("2026-01-02T00:00:00Z")
const principalOf = (text: string): Principal => {
  const [scheme = "", name] = text.split("://")
  if (text === "*") return { kind: "anyone" }
  return name === undefined ? { kind: "ref", ref: text } : { kind: "scheme", scheme: scheme as "user", name }
}
const grant = (change: Partial<Grant> = {}): Grant => ({
  id: "g",
  principal: principalOf("user://ana"),
  actions: [{ action: "notes:append" }],
  conditions: [],
  revoked: false,
  ...change,
})
const tool = toolOf({ implements: "notes:append" })
const action = actionOf()
const said = (grants: readonly Grant[], caller = ana, change: Partial<GrantSet> = {}, deed = { tool, action }) =>
  evaluateGrants([policyOf({ grants, ...change })], caller, deed, now)

describe("grants", () => {
  it("hold nobody back where there are none", () => {
    expect(evaluateGrants([], ana, { tool }, now)).toMatchObject({ decision: "allow", reason: "no-policy" })
  })

  // biome-ignore format: a table reads by rows
  it.each<[string, string, Caller, boolean]>([
    ["everybody", "*", ana, true],
    ["whoever calls", "user://current", ana, true],
    ["a user by name", "user://ana", ana, true],
    ["another user", "user://bob", ana, false],
    ["a user whose name begins the same", "user://an", ana, false],
    ["the operator", "operator://*", owner, true],
    ["the operator by name", "operator://ana", owner, true],
    ["another operator", "operator://bob", owner, false],
    ["the operator, when a caller asks", "operator://*", ana, false],
    ["the owner", "role://owner", owner, true],
    ["the owner, who acts for another", "role://owner", { ...owner, user: "bob" }, false],
    ["a role that is not known here", "role://editor", owner, false],
    ["an organisation", "org://acme", owner, false],
    ["a group", "group://staff", owner, false],
    ["a principal by reference", "./people.md", owner, false],
  ])("to %s", (_, principal, caller, holds) => {
    expect(said([grant({ principal: principalOf(principal) })], caller).decision).toBe(holds ? "allow" : "deny")
  })

  // biome-ignore format: a table reads by rows
  it.each<[string, string, boolean]>([
    ["its action", "notes:append", true],
    ["its action's major", "notes:append@1", true],
    ["another major of its action", "notes:append@2", false],
    ["its category", "notes:*", true],
    ["another category", "mail:*", false],
    ["every action", "*", true],
    ["the tool's id", "notes.append", true],
    ["the tool's id and major", "notes.append@1", true],
    ["another major of the tool", "notes.append@2", false],
    ["a wildcard in the middle", "notes:*end", false],
  ])("of %s", (_, pattern, holds) => {
    expect(said([grant({ actions: [{ action: pattern }] })]).decision).toBe(holds ? "allow" : "deny")
  })

  it("by wildcard never cover a tool that implements no action; its own id does", () => {
    const orphan = { tool: toolOf() }
    for (const [pattern, decision] of [
      ["*", "deny"],
      ["notes.append", "allow"],
    ] as const)
      expect(said([grant({ actions: [{ action: pattern }] })], ana, {}, orphan as never)).toMatchObject({ decision })
  })

  // biome-ignore format: a table reads by rows
  it.each<[string, string, boolean]>([
    ["as the tool declares", "workspace:/notes/*", true],
    ["wider", "workspace:/notes/", true],
    ["all of the workspace", "workspace:/", true],
    ["anything", "*", true],
    ["elsewhere", "workspace:/mail/", false],
    ["narrower", "workspace:/notes/a.txt", false],
    ["of another class", "network:*", false],
    ["that is no scope", "notes", false],
  ])("with a scope %s", (_, scope, holds) => {
    expect(said([grant({ actions: [{ action: "notes:append", scope }] })]).decision).toBe(holds ? "allow" : "deny")
  })

  it("with a scope cover a tool only if all that it declares lies in it", () => {
    const both = {
      tool: toolOf({ implements: "notes:append", mutates: scopes("workspace:/notes/*", "external:mail") }),
      action,
    }
    const scoped = grant({ actions: [{ action: "notes:append", scope: "workspace:/" }] })
    expect(said([scoped], ana, {}, both)).toMatchObject({ decision: "deny", reason: "no-grant" })
  })

  // biome-ignore format: a table reads by rows
  it.each<[string, Partial<Grant>, string]>([
    ["was revoked", { revoked: true }, "explicit-revoke"],
    ["has run out", { endsAt: now }, "ttl-expired"],
    ["has a condition that nobody can tell", { conditions: [{ kind: "mfa-recent", withinSeconds: 60 }] }, "condition-failed"],
    ["still runs", { endsAt: now + 1 }, "matched-grant"],
  ])("say why, where one %s", (_, change, reason) => {
    expect(said([grant(change)])).toMatchObject({ reason, grant: "g", policy: "@acme/team" })
  })

  it("add up: one that holds is enough, whatever became of others", () => {
    expect(said([grant({ revoked: true }), grant({ id: "second" })])).toMatchObject({
      decision: "allow",
      grant: "second",
    })
    const others = policyOf({ grants: [grant()] }, "@acme/other")
    expect(evaluateGrants([policyOf({ grants: [] }), others], ana, { tool, action }, now)).toMatchObject({
      decision: "allow",
      chain: ["@acme/team", "@acme/other"],
      policy: "@acme/other",
    })
  })

  it("are not needed where every policy allows by default, and are as soon as one denies", () => {
    const open = policyOf({ default: "allow", grants: [] })
    expect(evaluateGrants([open], ana, { tool, action }, now)).toMatchObject({ reason: "default-allow" })
    expect(evaluateGrants([open, policyOf({ grants: [] })], ana, { tool, action }, now)).toMatchObject({
      decision: "deny",
      reason: "no-grant",
    })
  })

  // biome-ignore format: a table reads by rows
  it.each<[string, readonly string[], boolean]>([
    ["every action", [], true],
    ["any action by wildcard", ["*"], true],
    ["this action", ["notes:append"], true],
    ["this category", ["notes:*"], true],
    ["this tool", ["notes.append"], true],
    ["another action", ["mail:send"], false],
  ])("give way to a limit that this host cannot hold for %s, and to no other", (_, appliesTo, refused) => {
    const limits = [{ kind: "rate-tool-calls", value: 1, appliesTo }] as const
    expect(said([grant()], ana, { limits })).toMatchObject(
      refused ? { decision: "deny", reason: "limit-exceeded", unheld: "rate-tool-calls" } : { decision: "allow" },
    )
    const requirements = [{ kind: "two-person", appliesTo }]
    expect(said([grant()], ana, { requirements })).toMatchObject(
      refused ? { decision: "deny", reason: "requirement-failed", unheld: "two-person" } : { decision: "allow" },
    )
  })
})
