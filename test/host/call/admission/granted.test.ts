import { rmSync } from "node:fs"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { storeFile } from "../../../../src/data-folder/paths.ts"
import { authorizeAsking } from "../../../../src/host/call/approve.ts"
import { processCaller } from "../../../../src/host/access/caller.ts"
import { now } from "../../../../src/host/store/instant.ts"
import { openSqliteStore } from "../../../../src/host/store/sqlite.ts"
import { type NewGrant, type Store, StoreUnavailable } from "../../../../src/host/store/store.ts"
import type { GovernanceRule } from "../../../../src/manifest/types.ts"
import { ruleOf } from "../../access/values.ts"
import { admitted, type Place, toolOf, value, worldOf } from "../values.ts"

const tool = toolOf({ approval: { class: "always" } })
const agent = { ...processCaller("alice"), actor: "alice", roles: ["caller"] as const, mayApprove: false }
let place: Place
let store: Store
const open = async (rules: readonly GovernanceRule[] = []): Promise<void> => {
  const policies = rules.map((rule) => ({
    kind: "policy" as const,
    id: rule.slug,
    dialect: "governance" as const,
    rule,
    source: tool.source,
  }))
  place = worldOf({ tool, registry: { policies, vouchedPolicies: policies }, core: { store: async () => store } })
  store = await openSqliteStore(storeFile(place.core.data))
}
const grant = (more: Partial<NewGrant> = {}): Promise<boolean> => {
  const made = now()
  return store.grant(
    {
      id: "g",
      tenant: "local",
      user: "alice",
      tool: "notes.append@1",
      uses: 2,
      made,
      expiresMs: made.wallMs + 60_000,
      facts: { by: "ana", roles: ["caller", "approver"], reason: "" },
      ...more,
    },
    { count: 10, keepMs: 1_000 },
  )
}
const used = async (): Promise<number | undefined> => (await store.grants({ tenant: "local" }))[0]?.used
const ask = async (more: object = {}) => {
  const call = value(admitted(place, { caller: agent, ...more }))
  try {
    return await authorizeAsking(place.core, call)
  } finally {
    call.folder[Symbol.dispose]()
  }
}

describe("a grant", () => {
  beforeEach(() => open())
  afterEach(async () => {
    await store[Symbol.asyncDispose]()
    rmSync(place.folder, { recursive: true })
  })

  it("answers for a person, is used once for a call, and is named", async () => {
    await grant()
    const { approval } = value(await ask())
    expect(approval).toMatchObject({ grant: { id: "g", by: "ana", use: 1, uses: 2 } })
    expect(approval.answers).toBeUndefined()
    expect(value(await ask()).approval.grant).toMatchObject({ use: 2 })
    expect(await ask()).toMatchObject({ ok: false, code: "approval_required" })
  })

  it("is not used where nothing is asked, or a yes came with the call", async () => {
    await grant()
    expect(value(await ask({ caller: processCaller("alice"), approved: true })).approval).not.toHaveProperty("grant")
    expect(await used()).toBe(0)
  })

  it.each([
    ["another user", { user: "bob" }],
    ["another tenant", { tenant: "another" }],
    ["another tool", { tool: "notes.append@2" }],
    ["another workspace", { workspace: "elsewhere" }],
  ])("for %s answers nothing", async (_what, more) => {
    await grant(more)
    expect(await ask()).toMatchObject({ ok: false, code: "approval_required" })
  })

  it.each([
    ["no signer of the rule", { signers: [{ by: "role" as const, role: "owner" }] }, false],
    ["the rule's signer", { signers: [{ by: "user" as const, user: "ana" }] }, true],
    ["the role of its signers", { signers: [{ by: "role" as const, role: "approver" }] }, true],
    ["one of the two that the rule wants", { quorum: 2 }, false],
  ])("given by %s counts as that yes would", async (_who, rule, counts) => {
    await store[Symbol.asyncDispose]()
    rmSync(place.folder, { recursive: true })
    await open([ruleOf(rule)])
    await grant()
    expect((await ask()).ok).toBe(counts)
    expect(await used()).toBe(counts ? 1 : 0)
  })

  it("does not let through what a rule denies", async () => {
    await store[Symbol.asyncDispose]()
    rmSync(place.folder, { recursive: true })
    await open([ruleOf({ decision: "deny" })])
    await grant()
    // The operator, who is told of what it may not use, comes as far as this step.
    expect(await ask({ caller: { ...processCaller("alice"), mayApprove: false } })).toMatchObject({
      code: "policy_violation",
    })
    expect(await used()).toBe(0)
  })

  it("is none where the store cannot be had: then a person is asked as ever", async () => {
    await grant()
    const call = value(admitted(place, { caller: agent }))
    const core = { ...place.core, store: () => Promise.reject(new StoreUnavailable("busy", "busy", "wait")) }
    expect(await authorizeAsking(core, call)).toMatchObject({ ok: false, code: "approval_required" })
    call.folder[Symbol.dispose]()
  })
})
