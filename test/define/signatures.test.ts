import { expect, it } from "vitest"
import { z } from "zod"
import { defineAction, defineCli, defineDriver, definePolicy, defineTool } from "../../src/define/index.ts"
import type { DriverDefinition, ToolDefinition } from "../../src/define/index.ts"
import { loadFront } from "../../src/manifest/read/load.ts"

/** The normative signatures, with the types that they leave open as anybody would fill them in. */
interface NormativeTool {
  id: string
  name?: string
  description: string
  version?: string
  inputSchema: unknown
  outputSchema: unknown
  contextSchema?: unknown
  mutates?: string[]
  requires?: { network?: string[]; secrets?: string[]; tools?: string[] }
  approval?: "auto" | "always" | "on-mutate" | `policy:${string}`
  riskLevel?: 0 | 1 | 2 | 3
  costClass?: "trivial" | "metered" | "expensive"
  timeoutMs?: number
  retry?: { max_attempts: number; backoff: "fixed" | "exponential"; initial_ms?: number }
  idempotent?: boolean
  defaultImplementation?: string
  driverConstraints?: { forbid?: string[]; requireKind?: ("cli" | "http" | "mcp" | "sdk" | "builtin")[] }
  tags?: string[]
  examples?: Array<{ name: string; input: unknown; output: unknown; note?: string }>
  metadata?: Record<string, unknown>
}
interface NormativeDriver {
  id: string
  name: string
  description: string
  version?: string
  kind: "cli" | "http" | "mcp" | "sdk" | "builtin"
  implements: { tool: string; version: string }[]
  install?: { method: string; package: string }[]
  versionCheck?: { cmd: string; parse: string; range: string }
  auth?: { ref?: string; state?: { env?: string[] } }
  runner?: { engine?: "in-process" | "subprocess" | "sandbox" } | string
  network?: { egress: string[] }
  region?: string[]
  policyTags?: string[]
  costOverride?: { cost_units_per_call?: number }
  timeoutOverrideMs?: number
  retryOverride?: { max_attempts: number; backoff: "fixed" | "exponential" }
  healthCheck?: { method: "ping" | "exec" | "http" | "noop" }
  execute: Record<string, (args: Execute) => Promise<unknown>>
  login?: (args: { signal: AbortSignal }) => Promise<{ ok: true }>
  parseOutput?: (args: { stdout: string | Uint8Array; stderr: string }) => { ok: boolean; value?: unknown }
  detectExpiry?: (args: { exitCode?: number }) => boolean
  metadata?: Record<string, unknown>
  tags?: string[]
}
interface Execute {
  input: unknown
  context: Record<string, unknown>
  signal: AbortSignal
}

it("what has the normative signature of a tool or a driver is a definition of ours", () => {
  const tool = (definition: NormativeTool): ToolDefinition => definition
  const driver = (definition: NormativeDriver): DriverDefinition => definition
  expect([typeof tool, typeof driver]).toEqual(["function", "function"])
})

it("the echo tool of AIP-30's examples is defined as it is written there", () => {
  const echo = defineTool({
    id: "echo",
    description: "Returns its input.",
    inputSchema: z.object({ message: z.string() }),
    outputSchema: z.object({ echo: z.string() }),
  })
  expect(echo.contract).toMatchObject({ id: "echo", name: "echo", version: "1.0.0", mutates: [] })
  expect(echo.contract.inputs).toEqual({
    type: "object",
    properties: { message: { type: "string" } },
    required: ["message"],
  })
})

it("every field of a tool's signature arrives where the manifest has it", () => {
  const { contract, front } = defineTool({
    id: "notes.append",
    name: "Append",
    description: "d",
    version: "2.1.0",
    inputSchema: { type: "object", properties: { text: { type: "string" } } },
    outputSchema: { type: "object" },
    contextSchema: z.object({ tenant: z.string() }),
    mutates: ["workspace:/notes/*"],
    requires: { network: ["a.test"], secrets: ["a-key"], tools: ["echo"] },
    riskLevel: 1,
    costClass: "metered",
    timeoutMs: 5000,
    retry: { maxAttempts: 3, backoff: "exponential", initialMs: 10 },
    idempotent: true,
    defaultImplementation: "notes-cli",
    driverConstraints: { forbid: ["http"], requireKind: ["cli", "sdk"] },
    tags: ["notes"],
    examples: [{ name: "one", input: { text: "x" }, output: {} }],
    metadata: { team: "a" },
  })
  expect(contract).toMatchObject({
    approval: { class: "on-mutate" },
    contextSchema: { properties: { tenant: { type: "string" } } },
    driverConstraints: { forbid: ["http"], requireKind: ["cli", "sdk"] },
    retry: { maxAttempts: 3, backoff: "exponential", initialMs: 10 },
    riskLevel: 1,
    costClass: "metered",
    timeoutMs: 5000,
    defaultImplementation: "notes-cli",
  })
  expect(front["metadata"]).toMatchObject({ team: "a" })
})

it("every field of a driver's signature is taken, of whatever kind, where it has functions of its own", () => {
  for (const kind of ["cli", "http", "mcp", "sdk"] as const) {
    const handle = defineDriver({
      id: "echo-code",
      name: "Echo",
      description: "d",
      kind,
      implements: [{ tool: "echo", version: "^1.0.0" }],
      install: [{ method: "npm", package: "echo@1.0.0" }],
      versionCheck: { cmd: "echo --version", parse: "(\\d+)", range: ">=1", timeoutMs: 500 },
      auth: { state: { env: ["ECHO_KEY"] } },
      runner: { engine: "subprocess" },
      network: { egress: ["api.echo.test"] },
      region: ["eu"],
      policyTags: ["vetted"],
      costOverride: { costUnitsPerCall: 3 },
      timeoutOverrideMs: 2000,
      retryOverride: { max_attempts: 2, backoff: "fixed" },
      healthCheck: { method: "noop" },
      execute: { echo: async ({ input, signal }) => (signal.aborted ? undefined : input) },
      login: async ({ signal }) => (signal.aborted ? { ok: false, reason: "user_cancelled" } : { ok: true }),
      refresh: async () => ({ ok: true, nextRefreshAt: "2026-01-01T00:00:00Z" }),
      parseOutput: ({ stdout }) => ({ ok: true, value: String(stdout) }),
      detectExpiry: ({ exitCode }) => exitCode === 4,
      metadata: { team: "a" },
      tags: ["x"],
    })
    expect(handle.contract).toMatchObject({
      body: { kind: "code", as: kind },
      versionCheck: { timeoutMs: 500 },
      costUnitsPerCall: 3,
      retry: { maxAttempts: 2 },
      policyTags: ["vetted"],
    })
    expect(handle.code).toEqual({
      export: "default",
      execute: ["echo"],
      adapters: ["login", "refresh", "parseOutput", "detectExpiry"],
      transforms: [],
    })
    expect(JSON.parse(JSON.stringify(handle))).toEqual(handle)
  }
})

it.each(["cli", "http", "mcp", "sdk"] as const)(
  "a driver of kind %s with functions of its own needs nothing of its kind",
  (kind) => {
    const made = defineDriver({
      id: "echo-code",
      name: "Echo",
      description: "d",
      kind,
      implements: [{ tool: "echo", version: "^1.0.0" }],
      execute: { echo: async ({ input }) => input },
    })
    const { code, front, file } = made
    const { result } = loadFront(file, "driver", front, "compat", code === undefined ? {} : { code })
    expect(result).toMatchObject({ ok: true, manifest: { body: { kind: "code", as: kind } } })
    expect(result.ok && result.manifest.kind === "driver" && result.manifest.unusable).toBeUndefined()
  },
)

it("the custom parser of AIP-29's examples has the types that it is written with", () => {
  const parsed = (): unknown =>
    defineCli({
      id: "acme-legacy",
      name: "Acme Legacy CLI",
      description: "In-house tool for the Acme inventory system.",
      bin: "./bin/acme",
      parseOutput: ({ exitCode, stdout, stderr, expected }) => {
        void expected
        if (exitCode === 0) {
          const rows = stdout
            .split("\n")
            .filter((line) => line.trim().length > 0)
            .map((line) => line.split("|").map((cell) => cell.replace(/`(.)/g, "$1")))
          return { ok: true, value: rows }
        }
        return { ok: false, error: { code: "upstream_error", message: stderr.trim() || "unknown" } }
      },
    })
  // By itself it lacks what its CLI.md has; beside one it is imported in a sandbox.
  expect(parsed).toThrow(/version_check/)
})

it("AIP-39's and AIP-38's own examples are defined as they are written there", () => {
  const action = defineAction({
    id: "storage:commit",
    description: "Commit changes.",
    category: "filesystem",
    targetKind: "storage",
    mutates: ["storage:*"],
    riskLevel: 1,
    approval: "auto",
    requires: { secrets: [] },
    firesEvents: ["write", "commit-completed"],
    implementations: [{ kind: "tool", ref: "@agentik/git/tools/commit" }],
    tags: ["vcs"],
    examples: [{ name: "n", scenario: "s" }],
  })
  expect(action.contract).toMatchObject({
    verb: "commit",
    targetKind: "storage",
    firesEvents: ["write", "commit-completed"],
  })
  const policy = definePolicy({
    id: "@acme/team",
    default: "deny",
    grants: [
      {
        principal: "operator://bob",
        actions: [{ action: "storage:commit" }],
        ttlSeconds: 60,
        grantedAt: "2026-05-03T00:00:00Z",
      },
    ],
    limits: [{ kind: "rate-tool-calls", value: 5, per: "minute", appliesTo: ["storage:*"] }],
    requirements: [{ kind: "mfa-recent", appliesTo: ["storage:push"], within_seconds: 60 }],
  })
  expect(policy.contract).toMatchObject({ dialect: "grants", id: "@acme/team" })
})

it("the types refuse what the checks refuse", () => {
  const tool = { id: "t.one", description: "d", inputSchema: {}, outputSchema: {} }
  // @ts-expect-error a tool has no body
  expect(() => defineTool({ ...tool, execute: () => 1 })).toThrow(/AIP-30/)
  // @ts-expect-error a driver names its kind
  expect(() => defineDriver({ id: "d", name: "D", description: "d", implements: [] })).toThrow(/kind/)
  // @ts-expect-error there is no such kind
  expect(() => defineDriver({ id: "dd", name: "D", description: "d", kind: "soap", implements: [] })).toThrow(/kind/)
  // @ts-expect-error risk has four levels
  expect(() => defineTool({ ...tool, riskLevel: 7 })).toThrow(/risk_level/)
})
