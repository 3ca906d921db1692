import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { processCaller, readReceipts, verifyChain } from "../../src/host/index.ts"
import type { Envelope } from "../../src/host/types.ts"
import { createNamespaceBackend } from "../../src/sandbox/namespace/backend.ts"
import { digestOfFolder, openFolder, openWorld, type World } from "./host-world.ts"
import { during } from "./swap.ts"

const codeOf = (envelope: Envelope): string => (envelope.ok ? "ok" : envelope.error.code)

/** Make a call that must leave the workspace byte for byte as it was. */
const unchanged = async (world: World, tool: string, input: object, more = {}): Promise<Envelope> => {
  const before = digestOfFolder(world.workspace)
  const envelope = await world.call(tool, input, more)
  expect(digestOfFolder(world.workspace)).toBe(before)
  expect(envelope.effects.filter((effect) => effect.committed)).toEqual([])
  return envelope
}

describe("a sealed call", () => {
  let world: World
  beforeAll(async () => {
    world = await openWorld("env: { FIXTURE_COLOUR: red }\n")
  })
  afterAll(async () => {
    expect(await verifyChain(world.data)).toMatchObject({ ok: true })
    expect(readdirSync(join(world.data, "calls"))).toEqual([])
    expect(readdirSync(join(world.data, "tmp"))).toEqual([])
    await world[Symbol.asyncDispose]()
  })

  it("commits a declared write, and its receipt says what changed", async () => {
    const envelope = await world.call("fixture.act", { verb: "write", args: ["notes/new.txt", "hello"] })
    expect(envelope).toMatchObject({
      ok: true,
      value: "write done",
      driver: "actor@1",
      effects: [{ kind: "create", path: "notes/new.txt", declared: true, committed: true }],
    })
    expect(readFileSync(join(world.workspace, "notes/new.txt"), "utf8")).toBe("hello")
    const [receipt] = readReceipts(world.data, { call: envelope.call })
    expect(envelope.receipt).toBe(`sha256:${receipt?.hash}`)
    expect(receipt?.metadata).toMatchObject({
      verdict: "ok",
      effects: [{ path: "notes/new.txt", committed: true }],
      backend: "namespace",
    })
    expect(JSON.stringify(receipt)).not.toContain("hello")
  })

  it("commits a declared change and a declared deletion", async () => {
    writeFileSync(join(world.workspace, "notes/gone.txt"), "x")
    expect(await world.call("fixture.act", { verb: "append", args: ["notes/old.txt", "more"] })).toMatchObject({
      ok: true,
      effects: [{ kind: "modify", path: "notes/old.txt" }],
    })
    expect(await world.call("fixture.act", { verb: "delete", args: ["notes/gone.txt"] })).toMatchObject({
      ok: true,
      effects: [{ kind: "delete", path: "notes/gone.txt" }],
    })
    expect(readFileSync(join(world.workspace, "notes/old.txt"), "utf8")).toBe("old\nmore")
    expect(existsSync(join(world.workspace, "notes/gone.txt"))).toBe(false)
  })

  it.each([
    ["creates a file", { verb: "write", args: ["stray.txt", "x"] }],
    ["changes a file", { verb: "append", args: ["README.md", "x"] }],
    ["deletes a file", { verb: "delete", args: ["README.md"] }],
    ["writes where the driver's deny list stands", { verb: "write", args: ["denied/x", "x"] }],
  ])("undoes a call that %s outside its contract", async (_what, input) => {
    expect(await unchanged(world, "fixture.act", input)).toMatchObject({
      ok: false,
      error: { code: "undeclared_write", class: "violation" },
    })
  })

  it("refuses a setuid bit even where writing is declared", async () => {
    expect(codeOf(await unchanged(world, "fixture.act", { verb: "setuid", args: ["notes/su"] }))).toBe(
      "undeclared_write",
    )
  })

  it("commits nothing of a tool that fails, and carries its words", async () => {
    expect(await unchanged(world, "fixture.act", { verb: "fail", args: ["notes/half.txt"] })).toMatchObject({
      ok: false,
      error: {
        code: "actor:on_purpose",
        class: "tool",
        details: { exit_code: 3, stderr: expect.stringContaining("failing on purpose") },
      },
      effects: [{ path: "notes/half.txt" }],
    })
  })

  it("shows a plan and commits nothing of it", async () => {
    expect(
      await unchanged(world, "fixture.act", { verb: "write", args: ["notes/plan.txt", "x"] }, { plan: true }),
    ).toMatchObject({ ok: true, effects: [{ path: "notes/plan.txt", declared: true, committed: false }] })
  })

  it("lands the time of a declared file, and counts that of another as an undeclared write", async () => {
    const touched = await world.call("fixture.act", { verb: "touch", args: ["notes/old.txt", "981173106"] })
    expect(touched).toMatchObject({
      ok: true,
      effects: [{ kind: "touch", path: "notes/old.txt", declared: true, committed: true }],
    })
    expect(statSync(join(world.workspace, "notes/old.txt")).mtimeMs).toBe(981_173_106_000)
    expect(await unchanged(world, "fixture.act", { verb: "touch", args: ["README.md", "981173106"] })).toMatchObject({
      error: { code: "undeclared_write" },
      effects: [{ kind: "touch", path: "README.md", declared: false, committed: false }],
    })
  })

  it("asks for approval of effects, showing them, and commits once it is given", async () => {
    const input = { verb: "write", args: ["notes/risky.txt", "x"] }
    for (const tool of ["fixture.risky", "fixture.act"])
      expect(await unchanged(world, tool, input, { approved: false })).toMatchObject({
        ok: false,
        error: { code: "approval_required" },
        effects: [{ path: "notes/risky.txt" }],
      })
    expect(codeOf(await world.call("fixture.risky", input, { approved: true }))).toBe("ok")
    expect(existsSync(join(world.workspace, "notes/risky.txt"))).toBe(true)
  })

  it("does not start what needs approval each time", async () => {
    expect(
      await unchanged(world, "fixture.always", { verb: "write", args: ["notes/a", "x"] }, { approved: false }),
    ).toMatchObject({
      error: { code: "approval_required" },
      effects: [],
    })
  })

  it("kills the tool at its deadline and says that effects outside are unknown, which invites no second run", async () => {
    expect(
      await unchanged(world, "fixture.mail", { verb: "sleep", args: ["notes/slow.txt"] }, { approved: true }),
    ).toMatchObject({
      ok: false,
      error: { code: "timeout", retryable: false, details: { commit: "unknown", timeout_ms: 1500 } },
    })
  })

  it("is stopped at once when cancelled", async () => {
    const controller = new AbortController()
    const running = unchanged(
      world,
      "fixture.act",
      { verb: "sleep", args: ["notes/slow.txt"] },
      { signal: controller.signal },
    )
    setTimeout(() => controller.abort(), 300)
    expect(codeOf(await running)).toBe("cancelled")
  })

  it("stops a flood of output and names the limit", async () => {
    expect(await unchanged(world, "fixture.act", { verb: "flood" })).toMatchObject({
      ok: false,
      error: { code: "limit_exceeded", details: { limit: "output" } },
    })
  })

  it("cuts output over the limit, with a note in the text and beside it", async () => {
    const envelope = await world.call("fixture.act", { verb: "print", args: ["9000000"] })
    const note = "output cut: 8388608 of 9000000 bytes kept (limit: output)"
    expect(envelope).toMatchObject({ ok: true, notes: [note] })
    expect(envelope.ok && typeof envelope.value === "string" && envelope.value.slice(-100)).toContain(note)
  })

  it("stops a child process where none is declared", async () => {
    expect(codeOf(await unchanged(world, "fixture.act", { verb: "fork" }))).toBe("undeclared_exec")
  })

  it("runs a declared child program and has no other", async () => {
    expect(codeOf(await world.call("fixture.cat", {}))).toBe("ok")
    const other = await unchanged(world, "fixture.id", {})
    expect(other.ok).toBe(false)
  })

  it("gives the tool the environment that was declared and nothing of the host's", async () => {
    process.env["CAISSON_E2E_SECRET"] = "leaked"
    try {
      const envelope = await world.call("fixture.act", { verb: "env" })
      const env = Object.fromEntries(
        (envelope.ok && typeof envelope.value === "string" ? envelope.value : "")
          .trim()
          .split("\n")
          .map((line) => line.split("=", 2)),
      )
      expect(env).toMatchObject({ FIXTURE: "yes", FIXTURE_COLOUR: "red", HOME: "/home/tool", TMPDIR: "/tmp" })
      expect(
        Object.keys(env).filter(
          (name) =>
            ![
              "CAISSON_OPERATION_KEY",
              "FIXTURE",
              "FIXTURE_COLOUR",
              "HOME",
              "TMPDIR",
              "PATH",
              "PWD",
              "LANG",
              "TZ",
              "USER",
              "LOGNAME",
            ].includes(name),
        ),
      ).toEqual([])
    } finally {
      delete process.env["CAISSON_E2E_SECRET"]
    }
  })

  it("keeps a driver's home for the same workspace and user, and for no other user", async () => {
    const file = "/home/tool/.actor/state"
    expect(codeOf(await world.call("fixture.act", { verb: "write", args: [file, "mine"] }))).toBe("ok")
    expect(await world.call("fixture.act", { verb: "read", args: [file] })).toMatchObject({ ok: true, value: "mine" })
    expect(
      codeOf(await world.call("fixture.act", { verb: "read", args: [file] }, { caller: processCaller("bob") })),
    ).not.toBe("ok")
  })

  it("serves calls side by side", async () => {
    const names = Array.from({ length: 6 }, (_, n) => `notes/side-${n}.txt`)
    const envelopes = await Promise.all(
      names.map((name) => world.call("fixture.act", { verb: "write", args: [name, name] })),
    )
    expect(envelopes.map(codeOf)).toEqual(names.map(() => "ok"))
    expect(names.map((name) => readFileSync(join(world.workspace, name), "utf8"))).toEqual(names)
  })

  it("says why, with the profile, and shows no value of the operator's environment", async () => {
    const why = await world.host.why({ tool: "fixture.act", workspace: world.workspace })
    expect(why).toMatchObject({
      selected: "actor@1",
      rows: [{ driver: "actor@1", phase: "selected" }],
      profileDigest: expect.stringMatching(/^sha256:/),
    })
    expect(JSON.stringify(why)).not.toContain('"red"')
  })
})

describe("the network of a sealed call", () => {
  let server: Server
  let port: number
  beforeAll(async () => {
    server = createServer((_request, response) => response.end("served"))
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    port = (server.address() as AddressInfo).port
  })
  afterAll(() => new Promise((resolve) => server.close(resolve)))

  it("reaches a declared host, mapped by the operator, through the proxy and without it", async () => {
    await using world = await openWorld(`egress: { services: { service.test: "127.0.0.1:${port}" } }\n`)
    for (const how of ["proxy", "direct"])
      expect(await world.call("fixture.dial", { how, host: "service.test", port: 80 }), how).toMatchObject({
        ok: true,
        value: "status 200: served",
        denied: [],
      })
  })

  it("stops every other dial and reports it, and the tool goes on", async () => {
    await using world = await openWorld()
    const proxied = await world.call("fixture.dial", { how: "proxy", host: "evil.test", port: 80 })
    expect(proxied).toMatchObject({
      ok: true,
      denied: [{ layer: "egress", target: expect.stringContaining("evil.test") }],
    })
    const named = await world.call("fixture.dial", { how: "direct", host: "evil.test", port: 80 })
    expect(named).toMatchObject({
      ok: true,
      value: expect.stringMatching(/^no: /),
      denied: [{ layer: "egress", target: expect.stringContaining("evil.test") }],
    })
    const direct = await world.call("fixture.dial", { how: "direct", host: "127.0.0.1", port })
    expect(direct).toMatchObject({ ok: true, value: expect.stringMatching(/^no: /) })
  })

  it("ends the call where the operator refuses undeclared dials", async () => {
    await using world = await openWorld("undeclared_egress: refuse\n")
    expect(await unchanged(world, "fixture.dial", { how: "proxy", host: "evil.test", port: 80 })).toMatchObject({
      ok: false,
      error: { code: "egress_denied", class: "violation" },
    })
  })
})

describe("the operator's limits", () => {
  it("end a tool that grows or fills beyond them", async () => {
    await using world = await openWorld("limits: { memory_mb: 64, disk_mb: 8 }\n")
    const grown = await unchanged(world, "fixture.act", { verb: "grow" })
    expect(["limit_exceeded", "sandbox_unavailable", "upstream_error"]).toContain(codeOf(grown))
    expect(grown.ok).toBe(false)
    expect(codeOf(await unchanged(world, "fixture.act", { verb: "fill", args: ["notes/big"] }))).not.toBe("ok")
  })

  it("let an undeclared write through where they say warn, and the receipt records it", async () => {
    await using world = await openWorld("undeclared_write: warn\n")
    const envelope = await world.call("fixture.act", { verb: "write", args: ["stray.txt", "x"] })
    expect(envelope).toMatchObject({ ok: true, effects: [{ path: "stray.txt", declared: false, committed: true }] })
    expect(readReceipts(world.data, { call: envelope.call })[0]?.metadata).toMatchObject({
      host_policy: { undeclared_write: "warn" },
    })
  })
})

it("a file that changes underneath a call is a conflict, and nothing of the call lands", async () => {
  let between = (): void => undefined
  const data = openFolder()
  using after = new DisposableStack()
  after.defer(() => rmSync(data, { recursive: true, force: true }))
  await using real = createNamespaceBackend({ data })
  await using world = await openWorld("", { backend: during(real, { exited: () => between() }) })
  expect(codeOf(await world.call("fixture.act", { verb: "append", args: ["notes/old.txt", "first\n"] }))).toBe("ok")
  between = () => writeFileSync(join(world.workspace, "notes/old.txt"), "theirs\n")
  expect(await world.call("fixture.act", { verb: "append", args: ["notes/old.txt", "ours\n"] })).toMatchObject({
    ok: false,
    error: { code: "conflict", retryable: true },
    effects: [{ committed: false }],
  })
  expect(readFileSync(join(world.workspace, "notes/old.txt"), "utf8")).toBe("theirs\n")
  rmSync(join(world.workspace, "notes/old.txt"))
})
