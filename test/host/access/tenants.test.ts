import { describe, expect, it } from "vitest"
import { type Caller, isOperator, processCaller, subjectOf } from "../../../src/host/access/caller.ts"
import { evaluateGrants } from "../../../src/host/access/grants.ts"
import { mayRelease } from "../../../src/host/access/rules.ts"
import { meant } from "../../../src/host/secrets/vault.ts"
import { policyOf, ruleOf, toolOf } from "./values.ts"

const own: Caller = { ...processCaller("ana"), actor: "ana" }
const other: Caller = { ...own, tenant: "acme" }

describe("a user of another tenant with a name that this host's own rules speak of", () => {
  it("is another subject, whatever either is called", () => {
    const subjects = [own, other, { ...own, user: "acme/ana" }, { ...own, tenant: "globex" }].map(subjectOf)
    expect(new Set(subjects).size).toBe(4)
  })

  it("is granted nothing by it, is no signer and no operator", () => {
    const grant = {
      principal: { kind: "scheme", scheme: "user", name: "ana" },
      actions: [{ action: "notes.append" }],
      conditions: [],
      revoked: false,
    }
    const policy = policyOf({ grants: [grant] as never })
    const deed = { tool: toolOf() }
    expect(evaluateGrants([policy], own, deed, 0).decision).toBe("allow")
    expect(evaluateGrants([policy], other, deed, 0).decision).toBe("deny")
    for (const signer of [
      { by: "user" as const, user: "ana" },
      { by: "role" as const, role: "owner" },
    ]) {
      expect(mayRelease(ruleOf({ signers: [signer] }), own)).toBe(true)
      expect(mayRelease(ruleOf({ signers: [signer] }), other)).toBe(false)
    }
    expect(isOperator(other)).toBe(false)
  })

  it("is lent no secret that is kept for everybody", () => {
    const use = (caller: Caller) => ({ user: subjectOf(caller), workspace: "w", driver: "d" })
    const shared = [{ slug: "some-token", scope: {} }]
    expect(meant(shared, "some-token", use(own))).toEqual({})
    expect(meant(shared, "some-token", use(other))).toBeUndefined()
  })
})
