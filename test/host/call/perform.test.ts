import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import fc from "fast-check"
import { afterEach, describe, expect, it } from "vitest"
import { auditLogFile } from "../../../src/data-folder/paths.ts"
import { processCaller } from "../../../src/host/access/caller.ts"
import { perform } from "../../../src/host/call/perform.ts"
import { closeAbandonedCalls, openCall } from "../../../src/host/receipts/open-calls.ts"
import { openAuditLog } from "../../../src/host/receipts/log.ts"
import { receiptOf } from "../../../src/host/call/receipt.ts"
import { defaultConfig } from "../../../src/host/config/types.ts"
import { hostLimits } from "../../../src/host/limits.ts"
import { readReceipts, verifyChain } from "../../../src/host/receipts/verify.ts"
import type { ApprovalQuestion, CallOptions, CallRequest, Envelope } from "../../../src/host/types.ts"
import type { Effect } from "../../../src/sandbox/effects/types.ts"
import { type FakeBackend, type FakeRun, fakeBackend } from "./fake-backend.ts"
import { cliSpec, driverOf, egress, type Place, scopes, toolOf, type World, worldOf } from "./values.ts"

const made: Place[] = []
const none = { rows: [], total: 0 } as const
afterEach(() => {
  for (const { folder } of made.splice(0)) rmSync(folder, { recursive: true, force: true })
})

interface Told {
  readonly envelope: Envelope
  readonly backend: FakeBackend
  readonly place: Place
  /** metadata of the one receipt */
  readonly receipt: Readonly<Record<string, unknown>>
}
interface Scene extends World {
  readonly runs?: readonly FakeRun[]
  readonly request?: Partial<CallRequest>
  readonly approved?: boolean
  readonly signal?: AbortSignal
  readonly ask?: NonNullable<CallOptions["approve"]>
}

/** Make one call and hold what holds of every call: one receipt, a chain that verifies, nothing left open. */
const tell = async ({
  runs = [{}],
  request = {},
  approved = true,
  signal = new AbortController().signal,
  ask,
  ...world
}: Scene = {}): Promise<Told> => {
  const backend = fakeBackend(...runs)
  const place = worldOf({
    ...world,
    core: { backend: async () => backend, recover: (workspace) => backend.recover(workspace), ...world.core },
  })
  made.push(place)
  await using log = openAuditLog(place.core.data)
  const envelope = await perform(place.core, log, {
    call: "01JCALL",
    operation: "01JCALL",
    caller: processCaller("alice"),
    approved,
    signal,
    ...(ask === undefined ? {} : { ask }),
    request: {
      tool: "notes.append",
      input: { text: "hello" },
      workspace: place.workspace,
      ...request,
    },
  })
  const receipts = readReceipts(place.core.data)
  expect(receipts).toHaveLength(1)
  expect(envelope.receipt).toBe(`sha256:${receipts[0]?.hash}`)
  expect(await verifyChain(place.core.data)).toMatchObject({ ok: true, entries: 1 })
  expect(readdirSync(join(place.core.data, "calls"))).toEqual([])
  const receipt = receipts[0]?.metadata ?? {}
  expect(receipt["verdict"]).toBe(envelope.ok ? "ok" : envelope.error.code)
  expect(backend.settled).toHaveLength(backend.jobs.length - (runs.some((run) => run.throws ?? run.lost) ? 1 : 0))
  return { envelope, backend, place, receipt }
}

const note: Effect = { kind: "create", path: "notes/a.txt", after: `sha256:${"a".repeat(64)}`, size: 5 }
const stray: Effect = {
  kind: "modify",
  path: "README.md",
  before: `sha256:${"b".repeat(64)}`,
  after: `sha256:${"c".repeat(64)}`,
}
const dial = { layer: "egress", reason: "host_not_allowed", target: "evil.test:443", count: 2 } as const
const failed = (code = 3): FakeRun => ({ ending: { by: "exit", code }, stderr: "boom" })

describe("a call", () => {
  it("that does what it declared is committed", async () => {
    const { envelope, backend, receipt } = await tell({ runs: [{ stdout: "done", effects: [note] }] })
    expect(envelope).toMatchObject({
      ok: true,
      value: "done",
      driver: "scribe@2",
      call: "01JCALL",
      denied: [],
      effects: [{ ...note, declared: true, committed: true }],
    })
    expect(backend.settled).toEqual(["committed"])
    expect(receipt).toMatchObject({
      effects_committed: true,
      input_keys: ["text"],
      user_id: "alice",
      tool: { id: "notes.append", mutates: ["workspace:/notes/*"] },
      driver: { id: "scribe" },
      argv_template: ["--", "${input.text}"],
      argv_count: 4,
      exit_code: 0,
      backend: "namespace",
    })
  })

  it("is recovered before its workspace is touched", async () => {
    const { backend, place } = await tell()
    expect(backend.log[0]).toBe(`recovered ${place.workspace}`)
  })

  it("that only plans is discarded, its effects shown", async () => {
    const { envelope, backend, receipt } = await tell({
      request: { plan: true },
      runs: [{ stdout: "done", effects: [note] }],
    })
    expect(envelope).toMatchObject({ ok: true, effects: [{ declared: true, committed: false }] })
    expect(backend.settled).toEqual(["discarded"])
    expect(receipt).toMatchObject({ mode: "plan", effects_committed: false })
  })

  it("that writes elsewhere is undone, even if it declared the rest", async () => {
    const { envelope, backend } = await tell({ runs: [{ stdout: "done", effects: [note, stray] }] })
    expect(envelope).toMatchObject({
      ok: false,
      error: { code: "undeclared_write", class: "violation", details: { paths: ["README.md"], total: 1 } },
      effects: [
        { declared: true, committed: false },
        { declared: false, committed: false },
      ],
    })
    expect(backend.settled).toEqual(["discarded"])
  })

  it("that moves what it may not touch to where it may write is undone, and both paths are named", async () => {
    const moved = { ...note, kind: "rename", from: "README.md" } as const
    const { envelope } = await tell({ runs: [{ stdout: "done", effects: [moved] }] })
    expect(envelope).toMatchObject({
      error: {
        code: "undeclared_write",
        message: expect.stringContaining("README.md → notes/"),
        details: { paths: ["README.md", note.path], total: 1 },
      },
    })
  })

  it("that writes elsewhere is committed with notes where the operator set warn, and the receipt says so", async () => {
    const { envelope, receipt } = await tell({
      config: { undeclaredWrite: "warn" },
      runs: [{ stdout: "done", effects: [stray] }],
    })
    expect(envelope).toMatchObject({
      ok: true,
      notes: [expect.stringContaining("README.md")],
      effects: [{ declared: false, committed: true }],
    })
    expect(receipt).toMatchObject({ host_policy: { undeclared_write: "warn" } })
  })

  it("that makes what can never be committed is undone whatever the operator set", async () => {
    const { envelope } = await tell({
      config: { undeclaredWrite: "warn" },
      runs: [{ effects: [{ ...note, refused: "setuid" }] }],
    })
    expect(envelope).toMatchObject({
      ok: false,
      error: { code: "undeclared_write", message: expect.stringContaining("setuid") },
    })
  })

  it("that violates and fails is reported as a violation", async () => {
    expect((await tell({ runs: [{ ...failed(), effects: [stray] }] })).envelope).toMatchObject({
      error: { code: "undeclared_write" },
    })
  })

  it("goes on after a stopped dial, which is reported, unless the operator refuses it", async () => {
    const runs = [{ stdout: "done", denied: [dial] }]
    expect((await tell({ runs })).envelope).toMatchObject({ ok: true, denied: [dial] })
    const { envelope, backend } = await tell({ runs, config: { undeclaredEgress: "refuse" } })
    expect(envelope).toMatchObject({ ok: false, error: { code: "egress_denied" }, denied: [dial] })
    expect(backend.settled).toEqual(["discarded"])
  })

  it("that ran a program it may not is undone", async () => {
    expect((await tell({ runs: [{ ending: { by: "exec-denied" } }] })).envelope).toMatchObject({
      error: { code: "undeclared_exec" },
    })
    expect(
      (await tell({ runs: [{ denied: [{ layer: "exec", reason: "not_allowed", target: "curl", count: 1 }] }] }))
        .envelope,
    ).toMatchObject({ error: { code: "undeclared_exec" } })
  })

  it.each([
    ["an exit code", failed(), "upstream_error"],
    ["a signal", { ending: { by: "signal", signal: "SIGSEGV" } }, "upstream_error"],
    ["its deadline", { ending: { by: "limit", limit: "wall" } }, "timeout"],
    ["its memory", { ending: { by: "limit", limit: "memory" } }, "limit_exceeded"],
    ["a broken sandbox", { ending: { by: "infrastructure", message: "gone" } }, "internal"],
    ["a bug", { throws: new Error("bug") }, "internal"],
    [
      "a control that is missing",
      { refuse: { ok: false, control: "memory-limit", message: "no cgroups", fix: "mount them" } },
      "sandbox_unavailable",
    ],
  ] as const)("ended by %s commits nothing and leaves a receipt", async (_what, run, code) => {
    const { envelope, backend } = await tell({ runs: [{ effects: [note], ...run } as FakeRun] })
    expect(envelope).toMatchObject({ ok: false, error: { code } })
    expect(backend.settled).not.toContain("committed")
  })

  it("ended by a control that is missing names it and the fix", async () => {
    const { envelope, receipt } = await tell({
      runs: [{ refuse: { ok: false, control: "memory-limit", message: "no cgroups", fix: "mount them" } }],
    })
    expect(envelope).toMatchObject({
      error: { message: "no cgroups", hint: "mount them", details: { control: "memory-limit" } },
    })
    expect(receipt).toMatchObject({ details: { control: "memory-limit" } })
  })

  it("that ran out of time says that effects outside are unknown, where it could have any", async () => {
    const runs = [{ ending: { by: "limit", limit: "wall" } as const }]
    expect((await tell({ runs })).envelope).not.toMatchObject({ error: { details: { commit: "unknown" } } })
    const tool = toolOf({ mutates: scopes("external:mail") })
    expect((await tell({ tool, runs, approved: true })).envelope).toMatchObject({
      error: { details: { commit: "unknown" } },
    })
  })

  it("that ran out of time after a violation still says that effects outside are unknown", async () => {
    const { envelope } = await tell({
      tool: toolOf({ mutates: scopes("external:mail") }),
      runs: [{ ending: { by: "limit", limit: "wall" }, effects: [stray] }],
      approved: true,
    })
    expect(envelope).toMatchObject({ error: { code: "undeclared_write", details: { commit: "unknown" } } })
  })

  it("is cancelled at once", async () => {
    const controller = new AbortController()
    const running = tell({ signal: controller.signal, runs: [{ hang: true, effects: [note] }] })
    controller.abort()
    expect((await running).envelope).toMatchObject({ ok: false, error: { code: "cancelled" } })
  })

  it.each([
    ["conflict", { ok: false, reason: "conflict", paths: ["notes/a.txt"] } as const, "conflict"],
    ["a failed commit", { ok: false, reason: "failed", message: "ENOSPC" } as const, "commit_failed"],
  ])("that meets a %s reports nothing as committed", async (_what, commit, code) => {
    const { envelope } = await tell({ runs: [{ effects: [note], commit }] })
    expect(envelope).toMatchObject({ ok: false, error: { code }, effects: [{ committed: false }] })
  })

  it("whose effects need approval shows them and commits nothing until it is given", async () => {
    for (const riskLevel of [0, 1, 2, 3] as const) {
      const risky: Scene = { tool: toolOf({ riskLevel }), runs: [{ stdout: "done", effects: [note] }] }
      const { envelope } = await tell({ ...risky, approved: false })
      expect(envelope, `risk ${riskLevel}`).toMatchObject({ error: { code: "approval_required" } })
      const relaxed = await tell({
        ...risky,
        approved: false,
        config: { approvals: { ...defaultConfig.approvals, onMutate: "auto" } },
      })
      expect(relaxed.envelope.ok, `risk ${riskLevel}`).toBe(true)
    }
    const scene: Scene = {
      tool: toolOf({ riskLevel: 2 }),
      runs: [{ stdout: "done", effects: [note] }],
      approved: false,
    }
    expect(await tell(scene)).toMatchObject({
      envelope: {
        ok: false,
        error: { code: "approval_required" },
        effects: [{ path: "notes/a.txt", committed: false }],
      },
      backend: { settled: ["discarded"] },
    })
    expect(await tell({ ...scene, approved: true })).toMatchObject({
      envelope: { ok: true },
      backend: { settled: ["committed"] },
    })
    expect((await tell({ ...scene, runs: [{ stdout: "done" }] })).envelope.ok).toBe(true)
  })

  describe("with a person to ask", () => {
    const scene: Scene = { runs: [{ stdout: "done", effects: [note] }], approved: false }

    it("commits exactly the layer whose effects were shown, after one run", async () => {
      const asked: ApprovalQuestion[] = []
      const { envelope, backend, receipt } = await tell({
        ...scene,
        ask: async (question) => {
          asked.push(question)
          return true
        },
      })
      expect(asked).toMatchObject([
        {
          call: "01JCALL",
          tool: "notes.append",
          driver: "scribe@2",
          about: "effects",
          approval: "on-mutate",
          effects: [{ ...note, declared: true, committed: false }],
        },
      ])
      expect(envelope).toMatchObject({ ok: true, effects: [{ committed: true }] })
      expect(backend.jobs).toHaveLength(1)
      expect(backend.settled).toEqual(["committed"])
      expect(receipt).toMatchObject({ approval: { granted: true, answers: { effects: true } } })
    })

    it("keeps nothing when the answer is no, and says who said so", async () => {
      const { envelope, backend, receipt } = await tell({ ...scene, ask: async () => false })
      expect(envelope).toMatchObject({ error: { code: "approval_denied" }, effects: [{ committed: false }] })
      expect(backend.settled).toEqual(["discarded"])
      expect(receipt).toMatchObject({ approval: { granted: false, answers: { effects: false } } })
    })

    it("takes nothing but true for a yes", async () => {
      const { envelope } = await tell({ ...scene, ask: async () => "yes" as unknown as boolean })
      expect(envelope).toMatchObject({ error: { code: "approval_denied" } })
    })

    it("keeps nothing when the question fails or the call is cancelled meanwhile", async () => {
      const broken = await tell({ ...scene, ask: () => Promise.reject(new Error("no screen")) })
      expect(broken).toMatchObject({ envelope: { error: { code: "internal" } }, backend: { settled: ["discarded"] } })
      const controller = new AbortController()
      const cancelled = await tell({
        ...scene,
        signal: controller.signal,
        ask: ({ signal }) => {
          queueMicrotask(() => controller.abort())
          return new Promise((resolve) => signal.addEventListener("abort", () => setImmediate(resolve, true)))
        },
      })
      expect(cancelled).toMatchObject({
        envelope: { error: { code: "cancelled" } },
        backend: { settled: ["discarded"] },
      })
    })

    it("does not ask for a plan, a violation or a call that changed nothing", async () => {
      const ask = (): Promise<boolean> => Promise.reject(new Error("asked"))
      expect((await tell({ ...scene, ask, approved: false, request: { plan: true } })).envelope.ok).toBe(true)
      expect((await tell({ ...scene, ask, runs: [{ stdout: "done" }] })).envelope.ok).toBe(true)
      const { envelope } = await tell({ ...scene, ask, runs: [{ stdout: "done", effects: [stray] }] })
      expect(envelope).toMatchObject({ error: { code: "undeclared_write" } })
    })

    it("asks about what cannot be undone before anything runs, and about the effects after", async () => {
      const tool = toolOf({ mutates: scopes("workspace:/notes/*", "external:mail") })
      const about: string[] = []
      const done = await tell({ ...scene, tool, ask: async (question) => about.push(question.about) > 0 })
      expect(about).toEqual(["call", "effects"])
      expect(done.receipt).toMatchObject({ approval: { answers: { call: true, effects: true } } })
      const { envelope, backend } = await tell({ ...scene, tool, ask: async () => false })
      expect(envelope).toMatchObject({ error: { code: "approval_denied" } })
      expect(backend.jobs).toEqual([])
    })
  })

  it("with output that is not what the contract promises commits nothing", async () => {
    const tool = toolOf({ outputs: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] } })
    const json = driverOf({
      body: { kind: "cli", cli: { ...cliSpec, output: { ...cliSpec.output, defaultFormat: "json" } } },
    })
    const scene = (stdout: string): Scene => ({ tool, drivers: [json], runs: [{ stdout, effects: [note] }] })
    expect((await tell(scene('{"n":"x"}'))).envelope).toMatchObject({ error: { code: "output_invalid" } })
    expect((await tell(scene("{"))).envelope).toMatchObject({ error: { code: "output_parse_failed" } })
    expect((await tell(scene('{"n":1}'))).envelope).toMatchObject({ ok: true, value: { n: 1 } })
  })

  it("with JSON that its driver has read as text says what is missing, and how the output begins", async () => {
    const tool = toolOf({ outputs: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] } })
    const told = async (stdout: string) => (await tell({ tool, runs: [{ stdout }] })).envelope
    expect(await told('{"n":1}\n')).toMatchObject({
      error: {
        code: "output_invalid",
        message: expect.stringContaining("printed JSON, and its driver has it read as text"),
        hint: expect.stringContaining("`default_format: json`"),
        details: { format: "text", output: '{\\"n\\":1}\\n' },
      },
    })
    const odd = await told(`\u001b[2J\u202egood${"x".repeat(1000)}`)
    expect(odd).toMatchObject({ error: { details: { output: expect.stringMatching(/^\\u001b\[2J\ufffdgoodx+…$/) } } })
    expect(JSON.stringify(odd).length).toBeLessThan(1200)
  })

  it("that was refused before it was admitted leaves a receipt of its own", async () => {
    const { receipt } = await tell({ request: { tool: "nosuch" } })
    expect(receipt).toMatchObject({ verdict: "not_found", class: "invalid" })
  })

  it("needs its egress served, and ends where the sandbox has no channel for it", async () => {
    const { envelope } = await tell({ drivers: [driverOf({ egress: egress("api.good.test") })] })
    expect(envelope).toMatchObject({ error: { code: "sandbox_unavailable", details: { control: "egress-channel" } } })
  })
})

describe("retries", () => {
  const retry = { maxAttempts: 3, backoff: "fixed", initialMs: 1 } as const
  const codes = driverOf({
    body: { kind: "cli", cli: { ...cliSpec, output: { ...cliSpec.output, exitCodes: { "7": "rate_limited" } } } },
  })

  it("repeat a retryable failure of a call that may be repeated, each time from the start", async () => {
    const { envelope, backend, receipt } = await tell({
      tool: toolOf({ retry, idempotent: true }),
      drivers: [codes],
      runs: [{ ...failed(7), denied: [dial] }, failed(7), { stdout: "done", denied: [dial] }],
    })
    expect(envelope).toMatchObject({ ok: true, value: "done", denied: [{ ...dial, count: 4 }] })
    expect(backend.settled).toEqual(["discarded", "discarded", "committed"])
    expect(receipt).toMatchObject({ attempts: 3, retries: 2 })
    expect(backend.jobs[2]?.limits.wallMs).toBeLessThan(backend.jobs[0]?.limits.wallMs ?? 0)
  })

  it("end with the attempts that the contract allows", async () => {
    expect(
      await tell({
        tool: toolOf({ retry, idempotent: true }),
        drivers: [codes],
        runs: [failed(7), failed(7), failed(7), {}],
      }),
    ).toMatchObject({ envelope: { error: { code: "rate_limited" } }, receipt: { attempts: 3 } })
  })

  it("never repeat a call that is not safe to repeat, a failure that says so, or a violation", async () => {
    expect((await tell({ tool: toolOf({ retry }), drivers: [codes], runs: [failed(7), {}] })).receipt).toMatchObject({
      attempts: 1,
    })
    expect(
      (await tell({ tool: toolOf({ retry, idempotent: true }), drivers: [codes], runs: [failed(3), {}] })).receipt,
    ).toMatchObject({ attempts: 1 })
    expect(
      (
        await tell({
          tool: toolOf({ retry, idempotent: true }),
          drivers: [codes],
          runs: [{ ...failed(7), effects: [stray] }, {}],
        })
      ).envelope,
    ).toMatchObject({ error: { code: "undeclared_write" } })
  })
})

describe("the next driver", () => {
  const retry = { maxAttempts: 2, backoff: "fixed", initialMs: 1 } as const
  const tool = toolOf({ retry, idempotent: true })
  const named = (id: string) =>
    driverOf({
      id,
      body: { kind: "cli", cli: { ...cliSpec, output: { ...cliSpec.output, exitCodes: { "7": "rate_limited" } } } },
    })
  const drivers = [named("a"), named("b"), named("c"), named("d")]

  it("serves a call that the one before it failed, from the workspace as it was, and the receipt names both", async () => {
    const { envelope, backend, receipt } = await tell({
      tool,
      drivers,
      runs: [{ ...failed(7), denied: [dial] }, failed(7), { stdout: "done" }],
    })
    expect(envelope).toMatchObject({ ok: true, value: "done", driver: "b@2", denied: [{ ...dial, count: 2 }] })
    expect(backend.settled).toEqual(["discarded", "discarded", "committed"])
    expect(receipt).toMatchObject({ passed_over: [{ driver: "a@2", code: "rate_limited", attempts: 2 }], attempts: 1 })
    expect(backend.jobs[2]?.limits.wallMs).toBeLessThan(backend.jobs[0]?.limits.wallMs ?? 0)
  })
  it("is one of few, and the last one's failure is the call's", async () => {
    const { envelope, backend } = await tell({ tool, drivers, runs: Array.from({ length: 12 }, () => failed(7)) })
    expect(envelope).toMatchObject({ ok: false, driver: "c@2", error: { code: "rate_limited" } })
    expect(backend.jobs).toHaveLength(6)
  })
  it("is none where there is no other: the failure stands as it was", async () => {
    const { envelope, receipt } = await tell({ tool, drivers: [named("a")], runs: [failed(7), failed(7)] })
    expect(envelope).toMatchObject({ ok: false, driver: "a@2", error: { code: "rate_limited" } })
    expect(receipt).not.toHaveProperty("passed_over")
  })
  it.each([
    ["the contract asks for no retries", { tool: toolOf({ idempotent: true }) }, failed(7)],
    ["a second run could do harm", { tool: toolOf({ retry }) }, failed(7)],
    ["the failure says that it would not help", { tool }, failed(3)],
    ["the caller pinned the driver", { tool, request: { driver: "a" } }, failed(7)],
    ["the tool violated its contract", { tool }, { ...failed(7), effects: [stray] }],
  ] as const)("is not tried where %s", async (_why, scene, run) => {
    const { envelope } = await tell({ ...scene, drivers, runs: [run, run, { stdout: "done" }] })
    expect(envelope).toMatchObject({ ok: false, driver: "a@2" })
  })
})

describe("a receipt", () => {
  it("never holds a value of input, context, operator's environment or output", async () => {
    const secret = fc.stringMatching(/^[a-zA-Z0-9]{24}$/)
    await fc.assert(
      fc.asyncProperty(
        fc.tuple(secret, secret, secret, secret, secret),
        fc.constantFrom(0, 3),
        async ([text, context, env, out, err], code) => {
          const drivers = [
            driverOf({
              body: {
                kind: "cli",
                cli: { ...cliSpec, sandbox: { ...cliSpec.sandbox, env: { pass: ["A_KEY"], set: {} } } },
              },
            }),
          ]
          const { receipt, place } = await tell({
            drivers,
            config: { env: { A_KEY: env } },
            request: { input: { text }, context: { tenant: context } },
            runs: [{ ending: { by: "exit", code }, stdout: out, stderr: err }],
          })
          const written = JSON.stringify([receipt, readReceipts(place.core.data)])
          for (const value of [text, context, env, out, err]) expect(written).not.toContain(value)
          expect(receipt).toMatchObject({ input_keys: ["text"], context_keys: ["tenant"] })
        },
      ),
      { numRuns: 15 },
    )
  })

  it.each([19_999, 20_000])("holds all of %i effects", async (count) => {
    const effects = Array.from({ length: count }, (_, n): Effect => ({ kind: "create", path: `notes/${n}` }))
    const { receipt } = await tell({ runs: [{ effects }] })
    expect(receipt["effects"]).toHaveLength(count)
    expect(receipt).not.toHaveProperty("effects_total")
  })

  it("holds at most so many effects, and the digest of all", async () => {
    const effects = Array.from({ length: 20_001 }, (_, n): Effect => ({ kind: "create", path: `notes/${n}` }))
    const { receipt, envelope } = await tell({ runs: [{ effects }] })
    expect(envelope.effects).toHaveLength(20_001)
    expect(receipt["effects"]).toHaveLength(20_000)
    expect(receipt).toMatchObject({ effects_total: 20_001, effects_digest: expect.stringMatching(/^sha256:/) })
  })

  it("is bounded in bytes for effects with the longest names and targets, and made before the commit", async () => {
    const long = "\\x5c".repeat(800)
    const effects = Array.from(
      { length: 3000 },
      (_, n): Effect => ({ kind: "symlink", path: `notes/${n}${long}`, target: long.repeat(2) }),
    )
    const { receipt, envelope, backend, place } = await tell({ runs: [{ effects }] })
    expect(envelope.effects).toHaveLength(3000)
    expect(backend.settled).toEqual(["committed"])
    expect(receipt).toMatchObject({
      effects_committed: true,
      effects_total: 3000,
      effects_digest: expect.stringMatching(/^sha256:/),
    })
    expect(statSync(auditLogFile(place.core.data)).size).toBeLessThan(hostLimits.receiptBytes.value)
  })

  it("says the least where the whole of it would not fit, whatever was asked", async () => {
    const context = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`k${n}`, 1]))
    const { receipt } = await tell({ request: { context }, tool: toolOf({ metadata: {} }) })
    expect((receipt["context_keys"] as unknown[]).length).toBe(hostLimits.receiptKeys.value)
    expect(receipt).toMatchObject({ context_keys_total: 20_000 })
    const rows = {
      effects: { rows: [], total: 7, digest: "sha256:x" },
      denied: none,
      home: none,
      reached: none,
      files: none,
    } as const
    const draft = receiptOf({
      progress: {
        call: "01JCALL",
        operation: "01JCALL",
        tell: () => undefined,
        caller: processCaller(),
        approved: false,
        request: { tool: "a" },
        signal: new AbortController().signal,
      },
      rows,
      committed: "all",
      timings: { run: Number.NaN },
      config: defaultConfig,
    })
    expect(draft.metadata).toMatchObject({
      call: "01JCALL",
      verdict: "ok",
      minimal: true,
      effects_committed: true,
      lists: { effects: { total: 7, digest: "sha256:x" } },
    })
  })

  it("is written for file names that are not well-formed text", async () => {
    await tell({ runs: [{ effects: [{ kind: "create", path: "notes/\ud800" }] }] })
  })

  it.each([
    ["committed", { ok: true }, false],
    ["unknown", { ok: false, reason: "unknown", message: "the launcher ended" }, false],
    ["none", { ok: false, reason: "failed", message: "ENOSPC" }, true],
  ] as const)(
    "that cannot be written makes the call fail, and says what was committed: %s",
    async (told, commit, retryable) => {
      const backend = fakeBackend({ stdout: "done", effects: [note], commit })
      const place = worldOf({ core: { backend: async () => backend } })
      made.push(place)
      const log = { append: () => Promise.reject(new Error("no space")), [Symbol.asyncDispose]: async () => undefined }
      const envelope = await perform(place.core, log, {
        call: "01JCALL",
        operation: "01JCALL",
        caller: processCaller(),
        approved: true,
        signal: new AbortController().signal,
        request: { tool: "notes.append", input: { text: "a" }, workspace: place.workspace },
      })
      expect(envelope).toMatchObject({
        ok: false,
        receipt: "none",
        error: { code: "internal", retryable, details: { commit: told } },
      })
    },
  )

  const lost = { ok: false, control: "write-set", message: "the call made more changes", fix: "fewer" } as const
  it.each<[string, FakeRun, string]>([
    ["a bug of the host's", { throws: new Error("bug") }, "internal"],
    ["more changes than can be told", { lost }, "limit_exceeded"],
  ])(
    "of a call that ended by %s after it may have acted elsewhere says so, and invites no second run",
    async (_, run, code) => {
      const tool = toolOf({ mutates: scopes("external:mail") })
      const { envelope, receipt } = await tell({ tool, runs: [run] })
      expect(envelope).toMatchObject({ error: { code, retryable: false, details: { commit: "unknown" } } })
      expect(receipt).toMatchObject({ details: { commit: "unknown" } })
      const again = await tell({ tool: toolOf({ mutates: scopes("external:mail"), idempotent: true }), runs: [run] })
      expect(again.envelope).toMatchObject({ error: { code, details: { commit: "unknown" } } })
      expect((await tell({ runs: [run] })).envelope).not.toMatchObject({ error: { details: { commit: "unknown" } } })
    },
  )

  it("of a commit that broke does not invite a second run", async () => {
    const { envelope } = await tell({ runs: [{ effects: [note], commitThrows: new Error("bug") }] })
    expect(envelope).toMatchObject({ error: { code: "internal", retryable: false, details: { commit: "unknown" } } })
  })

  it("of a commit whose outcome is not known does not invite a second run", async () => {
    const commit = { ok: false, reason: "unknown", message: "the launcher ended" } as const
    const { envelope } = await tell({ runs: [{ effects: [note], commit }] })
    expect(envelope).toMatchObject({ error: { code: "internal", retryable: false, details: { commit: "unknown" } } })
  })
})

describe("a call whose host was killed", () => {
  it("gets its receipt from the next host, once, and one that is under way is left alone", async () => {
    const place = worldOf()
    made.push(place)
    const { data } = place.core
    mkdirSync(join(data, "calls"), { recursive: true })
    writeFileSync(join(data, "calls", "01JDEAD.json"), JSON.stringify({ call: "01JDEAD", tool: "notes.append" }))
    await using log = openAuditLog(data)
    using _open = openCall(data, "01JLIVE", "notes.append")
    expect(await Promise.all([closeAbandonedCalls(data, log), closeAbandonedCalls(data, log)])).toContain(1)
    expect(readReceipts(data).map((event) => event.metadata)).toMatchObject([
      { call: "01JDEAD", verdict: "internal", crashed: true, details: { commit: "unknown" } },
    ])
    expect(readdirSync(join(data, "calls"))).toEqual(["01JLIVE.json"])
  })
})

it("a call whose marker cannot be removed ends as it ended all the same", () => {
  const place = worldOf()
  made.push(place)
  const { data } = place.core
  const open = openCall(data, "01JSTUCK", "notes.append")
  const marker = join(data, "calls", "01JSTUCK.json")
  rmSync(marker)
  mkdirSync(join(marker, "in-the-way"), { recursive: true })
  expect(() => open[Symbol.dispose]()).not.toThrow()
})
