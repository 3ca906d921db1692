import { describe, expect, it } from "vitest"
import { approvalRank, parseApproval, relaxesApproval } from "../../src/manifest/values/approval.ts"
import { checkSecretBindings, matchSecretSlug, slugOfEnv } from "../../src/manifest/contracts/secrets.ts"
import { policySlug } from "../../src/manifest/contracts/policy.ts"
import { asAction, asPolicy, asSecrets, errors, load, warnings } from "./from-text.ts"

describe("SECRETS.md", () => {
  const entry = (extra: string): string => `secrets: [{ slug: a-key, name: A, description: d${extra} }]`
  it.each(["value", "plaintext", "ciphertext", "secret", "data", "key", "token"])(
    "refuses an entry with `%s` and does not repeat what it holds",
    (key) => {
      const result = load("SECRETS.md", entry(`, ${key}: hunter2`))
      expect(errors(result)).toEqual([`secret-value @ secrets[0].${key}`])
      expect(JSON.stringify(result)).not.toContain("hunter2")
    },
  )
  it("reads an entry with its defaults", () => {
    expect(asSecrets(load("SECRETS.md", entry(""), "strict")).secrets[0]).toEqual({
      slug: "a-key",
      name: "A",
      description: "d",
      secretKind: "opaque",
      access: { reveal: [], bind: [], rotate: [] },
      exposures: [],
      env: [],
      tags: [],
      metadata: {},
    })
  })
  it("leaves out access and exposures of unknown kinds, and says so", () => {
    const result = load(
      "SECRETS.md",
      entry(
        ", access: { bind: [{ driver: x }, { role: owner }] }, exposures: [{ kind: hologram }, { kind: env, name: A_KEY }]",
      ),
    )
    expect(warnings(result)).toEqual([
      "access-unknown @ secrets[0].access.bind[0]",
      "exposure-unknown @ secrets[0].exposures[0]",
    ])
    expect(asSecrets(result).secrets[0]?.access.bind).toEqual([{ by: "role", name: "owner" }])
    expect(asSecrets(result).secrets[0]?.exposures).toEqual([{ kind: "env", name: "A_KEY" }])
  })
  it("takes exactly one source per access entry", () => {
    expect(errors(load("SECRETS.md", entry(", access: { bind: [{ role: a, tool: b }] }")))).toEqual([
      "out-of-range @ secrets[0].access.bind[0]",
    ])
  })
  it("matches a dotted requirement to a slug (C-39)", () => {
    const slugs = new Set(["registry/signing-key", "tenant-password"])
    expect(matchSecretSlug("registry.signing-key", slugs)).toBe("registry/signing-key")
    expect(matchSecretSlug("tenant.password", slugs)).toBe("tenant-password")
    expect(matchSecretSlug("other.key", slugs)).toBeUndefined()
    expect(slugOfEnv("GH_TOKEN")).toBe("gh-token")
  })
  it.each([
    [{ A: {} }, "exactly one"],
    [{ A: { vault: "a-key", value: "x" } }, "exactly one"],
    [{ A: { vault: "none" } }, "no secret"],
    [{ A: { oauth: "none" } }, "not configured"],
    [{ A: { value: 5 } }, "must be text"],
    [{ a: { value: "x" } }, "capitals"],
  ])("refuses the binding %j", (bindings, message) => {
    expect(checkSecretBindings(bindings, new Set(["a-key"]), new Set(["hub"]))[0]?.message).toContain(message)
  })
  it("accepts bindings with one known source", () => {
    expect(
      checkSecretBindings(
        { A: { vault: "a-key" }, B: { oauth: "hub" }, C: { value: "x" } },
        new Set(["a-key"]),
        new Set(["hub"]),
      ),
    ).toEqual([])
  })
})

describe("ACTION.md", () => {
  it("derives verb and target from the id", () => {
    expect(asAction(load("ACTION.md", "schema: action/v1\nid: shelf:archive\ndescription: d", "strict"))).toMatchObject(
      {
        verb: "archive",
        targetKind: "shelf",
        category: "shelf",
        version: "1.0.0",
        riskLevel: 0,
        approval: { class: "auto" },
      },
    )
    expect(asAction(load("ACTION.md", "schema: action/v1\nid: deploy\ndescription: d"))).toMatchObject({
      verb: "deploy",
      targetKind: "",
    })
  })
  it("does not carry `implementations` into the contract", () => {
    expect(
      JSON.stringify(
        asAction(
          load(
            "ACTION.md",
            "schema: action/v1\nid: a:b\ndescription: d\nimplementations: [{ kind: tool, ref: trusted-me }]",
          ),
        ),
      ),
    ).not.toContain("trusted-me")
  })
})

describe("approval (C-6)", () => {
  const a = parseApproval
  it("ranks auto below on-mutate below always, a policy beside on-mutate", () => {
    expect(["auto", "on-mutate", "policy:x", "always"].map((text) => approvalRank(a(text)))).toEqual([0, 1, 1, 2])
  })
  it.each([
    ["always", "policy:x", true],
    ["always", "on-mutate", true],
    ["on-mutate", "auto", true],
    ["policy:x", "on-mutate", true],
    ["policy:x", "policy:y", true],
    ["policy:x", "policy:x", false],
    ["policy:x", "always", false],
    ["on-mutate", "policy:x", false],
    ["auto", "auto", false],
  ])("%s → %s relaxes: %s", (from, to, expected) => {
    expect(relaxesApproval(a(from), a(to))).toBe(expected)
  })
})

describe("POLICY.md", () => {
  it("tells the dialects apart by `schema` (C-44)", () => {
    expect(asPolicy(load("team/POLICY.md", "schema: policy/v1", "strict"))).toMatchObject({
      dialect: "grants",
      id: "team",
    })
    expect(
      asPolicy(
        load(
          "POLICY.md",
          "schema: agentgovernance/v1\ndoctype: policy\nslug: s\nversion: 1.0.0\nmatch: { action: a.b }\ndecision: deny",
          "strict",
        ),
      ),
    ).toMatchObject({ dialect: "governance", id: "s" })
  })
  it("reports what will deny or be skipped", () => {
    const result = load(
      "POLICY.md",
      'schema: policy/v1\ndefault: allow\ngrants: [{ principal: "*", actions: [{ action: "a:b" }], ttl_seconds: 5, conditions: [{ kind: full-moon }] }]\nrequirements: [{ kind: notarised }]\nlimits: [{ kind: max-fun, value: 1 }]',
    )
    expect(warnings(result)).toEqual([
      "policy-default-allow @ default",
      "grant-without-start @ grants[0].granted_at",
      "condition-unknown @ grants[0].conditions[0]",
      "requirement-unknown @ requirements[0]",
      "limit-unknown @ limits[0]",
    ])
  })
  it("warns of a wildcard that is allowed without a budget", () => {
    expect(
      warnings(
        load(
          "POLICY.md",
          'schema: agentgovernance/v1\ndoctype: policy\nslug: s\nversion: 1.0.0\nmatch: { action: "storage.*" }\ndecision: allow',
        ),
      ),
    ).toEqual(["policy-wildcard-allow @ budget"])
  })
  it("maps a tool's reference to the slug of its last segment", () => {
    expect(["team/sign-off", "team.sign_off", "sign-off"].map(policySlug)).toEqual(["sign-off", "sign-off", "sign-off"])
  })
})
