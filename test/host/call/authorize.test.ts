import { rmSync } from "node:fs"
import { afterEach, describe, expect, it } from "vitest"
import { defaultConfig } from "../../../src/host/config/types.ts"
import type { OperatorConfig } from "../../../src/host/config/types.ts"
import type { GovernanceDecision, PolicyContract, ToolContract } from "../../../src/manifest/types.ts"
import { type Asked, authorized, type Place, scopes, toolOf, value, worldOf } from "./values.ts"

const made: Place[] = []
const ask = (
  tool: Partial<ToolContract>,
  request: Asked = {},
  config: Partial<OperatorConfig> = {},
  policies: readonly PolicyContract[] = [],
) => {
  const here = worldOf({ tool: toolOf(tool), config, registry: { policies } })
  made.push(here)
  return authorized(here, request)
}
afterEach(() => {
  for (const { folder } of made.splice(0)) rmSync(folder, { recursive: true, force: true })
})

const policy = (decision: GovernanceDecision, riskLevelMin: 0 | 1 | 2 | 3 = 0): PolicyContract => ({
  kind: "policy",
  id: "review",
  dialect: "governance",
  rule: {
    slug: "review",
    version: "1.0.0",
    decision,
    match: { action: "*", riskLevelMin },
    signers: [],
    quorum: 1,
    autonomy: 2,
  },
  source: toolOf().source,
})
const always = { class: "always" } as const
const onMutate = { class: "on-mutate" } as const

describe("authorize", () => {
  it.each([
    ["the smallest risk", { approval: onMutate, riskLevel: 0 as const }, {}],
    ["a small risk", { approval: onMutate, riskLevel: 1 as const }, {}],
    ["a larger risk", { approval: onMutate, riskLevel: 2 as const }, {}],
    [
      "an operator who asks",
      { approval: onMutate, riskLevel: 0 as const },
      { approvals: { ...defaultConfig.approvals, onMutate: "ask" as const } },
    ],
  ])("asks about effects for %s", (_what, tool, config) => {
    expect(value(ask(tool, {}, config)).approval.onEffects).toBe("ask")
    expect(value(ask(tool, { approved: true }, config)).approval).toMatchObject({ granted: true, onEffects: "commit" })
  })

  it("lets the operator trust workspace effects of any risk", () => {
    expect(
      value(
        ask({ approval: onMutate, riskLevel: 3 }, {}, { approvals: { ...defaultConfig.approvals, onMutate: "auto" } }),
      ).approval.onEffects,
    ).toBe("commit")
  })

  it("asks before the run where effects cannot be undone, whatever the operator set, also for a plan", () => {
    const tool = { approval: onMutate, mutates: scopes("workspace:/notes/*", "external:mail") }
    for (const request of [{}, { plan: true }])
      expect(ask(tool, request, { approvals: { ...defaultConfig.approvals, onMutate: "auto" } })).toMatchObject({
        code: "approval_required",
        details: { mutates: ["external:mail"] },
      })
    expect(ask(tool, { approved: true }).ok).toBe(true)
  })

  it("asks before every call of a tool that wants it, but for a plan on the workspace alone", () => {
    expect(ask({ approval: always })).toMatchObject({ code: "approval_required" })
    expect(ask({ approval: always, mutates: [] })).toMatchObject({ code: "approval_required" })
    expect(ask({ approval: always }, { approved: true }).ok).toBe(true)
    expect(ask({ approval: always }, { plan: true }).ok).toBe(true)
    expect(ask({ approval: always, mutates: scopes("network:*") }, { plan: true })).toMatchObject({
      code: "approval_required",
    })
  })

  it("never asks for a tool that declares no effects", () => {
    expect(value(ask({ approval: { class: "auto" }, mutates: [] })).approval).toMatchObject({
      class: "auto",
      onEffects: "commit",
    })
  })

  it("takes the stricter of tool and action", () => {
    const here = worldOf({
      tool: toolOf({ implements: "notes:write" }),
      registry: {
        actions: [
          {
            kind: "action",
            id: "notes:write",
            description: "",
            version: "1.0.0",
            category: "notes",
            verb: "write",
            targetKind: "notes",
            mutates: [],
            requires: { secrets: [], tools: [] },
            approval: always,
            riskLevel: 0,
            firesEvents: [],
            source: toolOf().source,
          },
        ],
      },
    })
    made.push(here)
    expect(authorized(here)).toMatchObject({ code: "approval_required" })
  })

  it.each([
    ["denies", policy("deny"), { code: "policy_violation" }],
    ["wants approval", policy("require-approval"), { code: "approval_required" }],
    ["escalates", policy("escalate"), { code: "approval_required" }],
    ["allows", policy("allow"), { ok: true }],
    ["is for larger risks", policy("deny", 3), { ok: true }],
  ])("heeds a named policy that %s", (_what, found, result) => {
    expect(ask({ approval: { class: "policy", ref: "team/review" } }, {}, {}, [found])).toMatchObject(result)
  })

  it("refuses when a named policy is not registered", () => {
    expect(ask({ approval: { class: "policy", ref: "team/review" } })).toMatchObject({ code: "policy_violation" })
  })
})
