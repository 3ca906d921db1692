import { describe, expect, it } from "vitest"
import {
  defineAction,
  defineCli,
  defineDriver,
  definePolicy,
  defineRunner,
  defineSandbox,
  defineSecret,
  defineTool,
  ManifestError,
} from "../../src/define/index.ts"
import type { DriverDefinition, ToolDefinition } from "../../src/define/index.ts"
import { loadManifest } from "../../src/manifest/read/load.ts"

const tool: ToolDefinition = { id: "t.one", description: "d", inputSchema: { type: "object" }, outputSchema: {} }
const entry = { tool: "t.one", version: "^1.0.0" }
const http = {
  id: "one-http",
  name: "One",
  description: "d",
  kind: "http" as const,
  baseUrl: "https://api.test",
  network: { egress: ["api.test"] },
  implements: [{ ...entry, metadata: { http: { endpoint: "/one" } } }],
}
const cli = {
  id: "prog",
  name: "P",
  description: "d",
  bin: "prog",
  install: [{ method: "apt", package: "prog" }],
  versionCheck: { cmd: "prog -V", parse: "(\\d+)", range: ">=1" },
  sandbox: { network: { egress: [] }, fs: {}, exec: { allow: false }, env: {} },
}
const rulesOf = (make: () => unknown): readonly string[] => {
  try {
    make()
  } catch (error) {
    if (error instanceof ManifestError) return error.diagnostics.map((each) => each.rule)
    throw error
  }
  return []
}

describe("a definition", () => {
  it("is the contract that its manifest would be", () => {
    const handle = defineDriver(http)
    const text = `---\n${JSON.stringify(handle.front)}\n---\n`
    const loaded = loadManifest("/m/DRIVER.md", Buffer.from(text), "strict")
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.diagnostics))
    const { source: _, ...fromFile } = loaded.manifest as typeof handle.contract
    const { source: __, ...fromCode } = handle.contract
    expect(fromCode).toEqual(fromFile)
  })
  it("is frozen and does not keep hold of the object it was given", () => {
    const mine = { ...tool, tags: ["one"] }
    const made = defineTool(mine)
    mine.tags.push("two")
    expect(made.contract.tags).toEqual(["one"])
    expect(Object.isFrozen(made) && Object.isFrozen(made.front) && Object.isFrozen(made.contract)).toBe(true)
  })
  it("of a command line serves the tools of its tree of commands", () => {
    const made = defineCli({ ...cli, commands: { go: "t.one" } })
    expect(made.contract.implements[0]).toMatchObject({ tool: "t.one", cli: { argv: ["go"] } })
    expect(made.contract.body.kind).toBe("cli")
  })
  it("names every fault", () => {
    expect(rulesOf(() => defineTool({ ...tool, version: "1", timeoutMs: 0 }))).toEqual(["bad-value", "out-of-range"])
  })
  it.each<[string, () => unknown, string]>([
    ["a tool with a body", () => defineTool({ ...tool, execute: (() => 1) as never }), "tool-execute"],
    [
      "a body that is undefined all the same",
      () => defineTool({ ...tool, execute: undefined as never }),
      "tool-execute",
    ],
    ["a class instance", () => defineTool({ ...tool, metadata: new Map() as never }), "not-json"],
    [
      "a prototype key",
      () => defineTool({ ...tool, metadata: JSON.parse('{"__proto__":{"a":1}}') as never }),
      "not-json",
    ],
    [
      "one key in both spellings",
      () => defineTool({ ...tool, timeoutMs: 5, timeout_ms: 6 } as ToolDefinition),
      "not-json",
    ],
    [
      "a function that no signature has",
      () => defineDriver({ ...http, buildRequest: () => 1 } as DriverDefinition),
      "unknown-function",
    ],
    ["an adapter that is no function", () => defineDriver({ ...http, parseOutput: 7 } as never), "not-a-function"],
    [
      "bodies that are no functions",
      () => defineDriver({ ...http, execute: { "t.one": "x" } } as never),
      "not-a-function",
    ],
    [
      "bodies of a builtin",
      () =>
        defineDriver({
          id: "bb",
          name: "B",
          description: "d",
          kind: "builtin",
          implements: [entry],
          execute: { "t.one": async () => 1 },
        }),
      "builtin-execute",
    ],
    [
      "a secret's value",
      () => defineSecret({ slug: "a-key", name: "A", description: "d", value: "x" } as never),
      "secret-value",
    ],
    [
      "a driver that lacks what its kind needs",
      () => defineDriver({ ...http, baseUrl: undefined } as never),
      "missing-field",
    ],
  ])("is refused with %s", (_, make, rule) => {
    expect(rulesOf(make)).toContain(rule)
  })
  it("that is refused repeats no secret", () => {
    try {
      defineSecret({ slug: "a-key", name: "A", description: "d", value: "hunter2" } as never)
    } catch (error) {
      expect(JSON.stringify(error) + String(error)).not.toContain("hunter2")
      return
    }
    expect.unreachable()
  })
  it("takes blocks in both spellings, and leaves an author's own names alone", () => {
    const { front } = defineDriver({
      ...http,
      implements: [
        {
          ...entry,
          schemaNarrowing: { dropInputs: ["maxSize"] },
          mapping: { maxSize: "max_size" },
          metadata: { http: { endpoint: "/one" }, myTeam: { teamName: "a" } },
        },
      ],
    })
    expect(front["implements"]).toEqual([
      {
        ...entry,
        schema_narrowing: { drop_inputs: ["maxSize"] },
        mapping: { maxSize: "max_size" },
        metadata: { http: { endpoint: "/one" }, myTeam: { teamName: "a" } },
      },
    ])
  })
  it("names the module that it is written in", () => {
    const made = defineDriver({ ...http, detectExpiry: () => false }, { module: import.meta.url, export: "mine" })
    expect(made.code).toMatchObject({ module: import.meta.filename, export: "mine", adapters: ["detectExpiry"] })
    expect(made.file).toBe(`${import.meta.filename}#driver:one-http`)
    expect(() => defineTool(tool, { module: "./here.ts" })).toThrow(TypeError)
  })
})

describe("a secret's handle", () => {
  const secret = defineSecret({
    slug: "acme/api-key",
    name: "K",
    description: "d",
    access: { reveal: [{ role: "owner" }, { tool: "t.one" }] },
  })
  it("has every field", () => {
    expect(secret).toMatchObject({
      slug: "acme/api-key",
      namespace: "acme",
      kind: "opaque",
      access: { reveal: [{ role: "owner" }, { tool: "t.one" }], bind: [], rotate: [] },
      audit: { pii: false, classification: [] },
    })
  })
  it("says who may have it, by which entry, and no to everybody else", () => {
    expect(secret.checkAccess("reveal", { tool: "t.one" })).toEqual({ granted: true, granted_by: { tool: "t.one" } })
    expect(secret.checkAccess("reveal", { roles: ["viewer"], userId: "owner" }).granted).toBe(false)
    expect(secret.checkAccess("bind", { roles: ["owner"], tool: "t.one" }).granted).toBe(false)
  })
})

describe("a runner's handle", () => {
  it("has every field, and none that would need a default again", () => {
    expect({ ...defineRunner() }).toEqual({
      engine: "subprocess",
      image: null,
      needs: { language: "node", native: [], npm: [], pip: [] },
      limits: { memory_mb: 256, timeout_ms: 600_000, cpu_ms: Number.MAX_SAFE_INTEGER },
    })
  })
  it.each([
    ["in-process", "workspace", "subprocess", true],
    ["in-process", "ai-draft", "subprocess", true],
    ["in-process", "", "subprocess", true],
    ["in-process", "operator", "in-process", false],
    ["sandbox", "workspace", "sandbox", false],
  ] as const)("%s from %j runs as %s", (engine, origin, runs, downgraded) => {
    expect(defineRunner({ engine }).resolveForOrigin(origin)).toMatchObject({ engine: runs, downgraded })
  })
  it("is taken where a driver names its runner", () => {
    const runner = defineRunner({ limits: { memory_mb: 64 } })
    expect(defineDriver({ ...http, runner }).contract.limits.memoryMb).toBe(64)
  })
  it("is refused with an image for an engine that has none", () => {
    expect(rulesOf(() => defineRunner({ image: "x" }))).toContain("runner-image")
  })
})

describe("a sandbox's handle", () => {
  const local = { provider: "local", config: {} }
  it("has no network where nothing is said", () => {
    expect(defineSandbox(local)).toMatchObject({
      egress: [],
      readOnly: false,
      limits: { timeoutMs: 30_000 },
      mounts: [],
    })
  })
  it("keeps what is said, as manifests spell it", () => {
    const made = defineSandbox({
      ...local,
      limits: { timeoutMs: 5, memoryMb: 6 },
      lifecycle: { pauseAfterIdleMs: 7, destroyOnWorkspaceClose: true },
      network: { egress: ["a.test"] },
      mounts: [{ source: "workspace", at: "/workspace" }],
      readOnly: true,
    })
    expect(made).toMatchObject({ egress: ["a.test"], readOnly: true, limits: { timeoutMs: 5, memoryMb: 6 } })
    expect(made.mounts[0]?.mode).toBe("read-write")
    expect(made.front["lifecycle"]).toEqual({ pause_after_idle_ms: 7, destroy_on_workspace_close: true })
  })
  it.each([
    ["a credential", { config: { API_KEY: "sk_live_0123456789abcdef" } }],
    ["every host", { network: { egress: ["*"] } }],
    ["a mount that is nowhere", { mounts: [{ source: "workspace", at: "here" }] }],
    ["an unknown field", { fs: {} }],
  ])("is refused with %s", (_, extra) => {
    expect(() => defineSandbox({ ...local, ...extra } as never)).toThrow(ManifestError)
  })
})

it("actions and policies have the schema that they are of", () => {
  expect(defineAction({ id: "a:b", description: "d" }).front["schema"]).toBe("action/v1")
  expect(definePolicy({ id: "@a/b" }).front["schema"]).toBe("policy/v1")
})
