import { describe, expect, it } from "vitest"
import { sealSecrets } from "../../../src/host/call/sealing/secrets.ts"
import { bindSecrets } from "../../../src/host/secrets/bind.ts"
import { grantedBy, routeOf, type SecretNeed, secretNeeds, waysOf } from "../../../src/host/secrets/needs.ts"
import { Secret } from "../../../src/host/secrets/secret.ts"
import type { Vault } from "../../../src/host/secrets/vault.ts"
import type { SecretEntry } from "../../../src/manifest/types.ts"
import { parseEgressEntry } from "../../../src/manifest/values/egress-entry.ts"

const entryOf = (slug: string, more: Partial<SecretEntry> = {}): SecretEntry => ({
  slug,
  name: slug,
  description: "",
  secretKind: "opaque",
  access: { reveal: [], bind: [], rotate: [] },
  exposures: [],
  env: [],
  tags: [],
  metadata: {},
  ...more,
})
const egress = ["api.test", "*.cdn.test"].flatMap((text) => {
  const parsed = parseEgressEntry(text)
  return parsed.ok ? [parsed.entry] : []
})
const driver = (...env: readonly string[]) => ({ auth: { state: { paths: [], env } } })
const tool = (...secrets: readonly string[]) => ({ id: "a.tool", requires: { secrets, tools: [] } })
const need = (entry?: SecretEntry): SecretNeed => ({
  name: "API_KEY",
  slug: entry?.slug ?? "api-key",
  bound: true,
  ...(entry === undefined ? {} : { entry }),
})
const substituted = (...intendedProviders: readonly string[]) =>
  entryOf("api-key", {
    exposures: [
      { kind: "egress-substitute", placeholderName: "API_KEY", allowedByDefault: false, intendedProviders },
      { kind: "env", name: "API_KEY" },
    ],
  })

describe("which secrets a call needs", () => {
  it("is what the driver's variables and the contract name", () => {
    const inventory = [entryOf("team/token", { env: ["API_KEY"] }), entryOf("tenant/db-password")]
    expect(secretNeeds(driver("API_KEY", "GH_TOKEN"), tool("tenant.db-password", "x.y"), inventory)).toMatchObject([
      { name: "API_KEY", slug: "team/token", bound: true },
      { name: "GH_TOKEN", slug: "gh-token", bound: true },
      { name: "tenant.db-password", slug: "tenant/db-password", bound: false },
      { name: "x.y", slug: "x-y", bound: false },
    ])
    expect(secretNeeds({}, tool(), inventory)).toEqual([])
  })
})

describe("who may have one", () => {
  const caller = { user: "alice", roles: ["caller"] as const }
  // biome-ignore format: a table reads by rows
  it.each([
    [[], "scope"],
    [[{ by: "user", name: "alice" }], "user:alice"],
    [[{ by: "user", name: "bob" }, { by: "tool", name: "a.tool" }], "tool:a.tool"],
    [[{ by: "role", name: "caller" }], "role:caller"],
    [[{ by: "role", name: "operator" }], undefined],
    [[{ by: "cap", name: "cap://x" }, { by: "workflow", name: "a.tool" }], undefined],
  ] as const)("by %j: %s", (bind, expected) => {
    const entry = entryOf("api-key", { access: { reveal: [], bind, rotate: [] } })
    expect(grantedBy(need(entry), tool(), caller)).toBe(expected)
  })

  it("is decided before the vault is asked", async () => {
    const asked: string[] = []
    const ask = (what: string) => () => {
      asked.push(what)
      return Promise.resolve({ ok: true as const, value: undefined as never })
    }
    const vault: Vault = {
      get: ask("get"),
      set: ask("set"),
      delete: ask("delete"),
      list: ask("list"),
      rotate: ask("rotate"),
    }
    const refused = entryOf("api-key", { access: { reveal: [], bind: [{ by: "user", name: "bob" }], rotate: [] } })
    const binding = {
      use: { user: "alice", workspace: "", driver: "" },
      driver: "d@1",
      vouched: true,
      tool: tool(),
      caller,
    }
    expect(await bindSecrets(vault, [need(refused)], binding)).toMatchObject({ ok: false, code: "unauthorised" })
    expect(await bindSecrets(vault, [], binding)).toEqual({ ok: true, value: [] })
    expect(asked).toEqual([])
  })
})

describe("how it reaches the program", () => {
  it.each([
    [undefined, { via: "env" }],
    [entryOf("api-key", { exposures: [{ kind: "env", name: "API_KEY" }] }), { via: "env" }],
    [entryOf("api-key", { exposures: [{ kind: "env", name: "OTHER" }] }), { via: "unserved", kind: "env" }],
    [
      substituted("api.test", "a.cdn.test", "other.test"),
      { via: "egress-substitute", hosts: ["api.test", "a.cdn.test"] },
    ],
    [substituted("other.test"), { via: "egress-substitute", hosts: [] }],
  ])("%#: %j", (entry, expected) => {
    expect(routeOf(need(entry), egress)).toMatchObject(expected)
  })

  const file = { kind: "file", path: "~/.x/key", mode: 0o600 } as const
  it.each([
    ["as a file alone", [file], ["~/.x/key"]],
    ["as both where it says both", [{ kind: "env", name: "API_KEY" } as const, file], ["variable", "~/.x/key"]],
    ["as the proxy puts it in, and no other way", [...substituted("api.test").exposures, file], ["variable"]],
    ["by the variable's name alone", [], ["variable"]],
  ])("%s", (_what, exposures, ways) => {
    const found = waysOf(need(entryOf("api-key", { exposures })))
    expect(found.map((way) => way.file?.path ?? "variable")).toEqual(ways)
  })

  it.each(["/etc/x", "~/", "/workspace/x", "/tmp/x"])("as a file at %s it goes nowhere", (path) => {
    const bound = {
      ...need(entryOf("api-key")),
      value: new Secret("v"),
      grantedBy: "scope",
      file: { path, mode: 0o600 },
    }
    expect(sealSecrets([bound], egress)).toMatchObject({ ok: false, code: "tool_unavailable" })
  })

  it("two files at one place are refused, in whatever spelling, and so is one in the way to the other", () => {
    for (const other of ["/home/tool/.x//key", "~/.x/./key", "~/.x", "~/.x/key/below"]) {
      const bound = ["~/.x/key", other].map((path) => ({
        ...need(entryOf("api-key")),
        value: new Secret("v"),
        grantedBy: "scope",
        file: { path, mode: 0o600 },
      }))
      expect([other, sealSecrets(bound, egress).ok]).toEqual([other, false])
    }
  })

  it("a value is in no variable that is sealed, and at the proxy only for the hosts that it is meant for", () => {
    const value = new Secret("tok_live-5b1f0c2e9d")
    const bound = { ...need(substituted("api.test", "other.test")), value, grantedBy: "scope" }
    const sealed = sealSecrets([bound], egress)
    if (!sealed.ok) throw new Error(sealed.message)
    const { env, placeholders, substitutions, facts } = sealed.value
    expect(env).toEqual({})
    expect(placeholders["API_KEY"]).toBe("$$SECRET[API_KEY]$$")
    expect(placeholders["SSL_CERT_FILE"]).toBe("/run/caisson/egress-ca.pem")
    expect(substitutions).toMatchObject([{ placeholder: "$$SECRET[API_KEY]$$", hosts: ["api.test"] }])
    expect(JSON.stringify([placeholders, facts])).not.toContain("5b1f0c2e9d")
  })
})

it("a secret whose rules deny the call is never asked of the vault, and the refusal is evidence", async () => {
  const asked: string[] = []
  const vault = new Proxy({} as Vault, { get: (_, name) => () => asked.push(String(name)) })
  const closed = entryOf("api-key", { access: { reveal: [], bind: [{ by: "tool", name: "other" }], rotate: [] } })
  const binding = {
    use: { user: "a", workspace: "w", driver: "d" },
    driver: "d@1",
    vouched: true,
    tool: { id: "a.tool" },
    caller: { user: "a", roles: [] },
  }
  expect(await bindSecrets(vault, [need(closed)], binding)).toMatchObject({
    ok: false,
    code: "unauthorised",
    evidence: { event: "secret.reveal.denied", slug: "api-key" },
  })
  expect(asked).toEqual([])
})

it("a login's refresh token is not what a program is given", async () => {
  const value = JSON.stringify({ accessToken: "at-1", refreshToken: "rt-1", expiresAt: 1 })
  const vault = {
    list: () => Promise.resolve({ ok: true, value: [{ slug: "api-key", scope: {} }] }),
    get: () => Promise.resolve({ ok: true, value: new Secret(value) }),
  } as unknown as Vault
  const bound = await bindSecrets(vault, [need(entryOf("api-key", { secretKind: "oauth" }))], {
    use: { user: "a", workspace: "w", driver: "d" },
    driver: "d@1",
    vouched: true,
    tool: { id: "a.tool" },
    caller: { user: "a", roles: [] },
  })
  expect(bound.ok && bound.value.map((each) => each.value.reveal())).toEqual(["at-1"])
})
