/** What a server that is kept between calls may and may not, the same on each backend. */
import { randomUUID } from "node:crypto"
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest"
import { processCaller } from "../../src/host/index.ts"
import { readReceipts } from "../../src/host/receipts/verify.ts"
import type { CallOptions, CallRequest, Envelope } from "../../src/host/types.ts"
import { until } from "../support/sealed.ts"
import { digestOfFolder } from "./host-world.ts"
import { type McpWorld, openMcpWorld } from "./mcp-world.ts"

const SANDBOX =
  'sandbox: { fs: { read: ["**"], write: ["notes/**"], deny: [] }, exec: { allow: false }, env: { pass: [], set: {} }, network: { egress: ["service.test:80"] } }'

/** A driver of this fixture that has its server kept, its processes known by the tag. */
export const keptDriver =
  (tag: string) =>
  (change: McpWorld["change"], manifests: string): void => {
    change(
      "notes/DRIVER.md",
      "transport: stdio",
      `transport: stdio\nconnection_options: { keepalive: true }\n${SANDBOX}`,
    )
    change("notes/DRIVER.md", "args: [--", `args: [--tag=${tag}, --`)
    cpSync(join(manifests, "tools/act"), join(manifests, "tools/send"), { recursive: true })
    const send = "tools/send/TOOL.md"
    change(send, /notes\.act/g, "notes.send")
    change(
      send,
      "idempotent: true\nmutates: []\napproval: auto",
      'idempotent: false\nmutates: ["external:mail"]\napproval: on-mutate',
    )
    change(send, "timeout_ms: 240000", "timeout_ms: 5000")
    change(
      "notes/DRIVER.md",
      "  - tool: notes.act",
      "  - tool: notes.send\n    version: ^1.0.0\n    metadata: { mcp: { tool_name: act } }\n  - tool: notes.act",
    )
    cpSync(join(manifests, "notes"), join(manifests, "twin"), { recursive: true })
    change("twin/DRIVER.md", "id: notes-server", "id: twin-server")
  }

/** Processes of a tag that are Python: the server itself, and not who started it. */
export const serversOf = (tag: string): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const [program = "", ...words] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")
        return program.includes("python") && words.includes(`--tag=${tag}`)
      } catch {
        return false
      }
    })

export const keptSuite = (
  backend: "namespace" | "docker",
  era: "legacy" | "modern",
  settings: () => string = () => "",
): void => {
  const tag = randomUUID()
  let world: McpWorld
  let service: Server
  /** Each case is a user of its own, so that it begins without a server. */
  let me = "user0"
  let before: readonly number[] = []
  const call = (
    tool: string,
    input: object,
    more: Partial<CallRequest> & { user?: string; signal?: AbortSignal } = {},
  ) => {
    const { user = me, ...rest } = more
    return world.call(tool, input, { caller: processCaller(user), driver: "notes-server", ...rest })
  }
  const act = (verb: string, args: readonly string[] = [], more?: Parameters<typeof call>[2]) =>
    call("notes.act", { verb, args }, more)
  const planted = async (more?: Parameters<typeof call>[2]): Promise<unknown> => {
    const envelope = await act("planted", [], more)
    return envelope.ok ? JSON.parse(String(envelope.value)) : envelope
  }
  const factsOf = (envelope: Envelope): unknown =>
    readReceipts(world.data).find(({ metadata }) => metadata?.["call"] === envelope.call)?.metadata?.["kept_server"]
  const servers = (): readonly number[] => serversOf(tag).filter((pid) => !before.includes(pid))
  const onlyServer = (): number => {
    const [pid, other] = servers()
    if (pid === undefined || other !== undefined) throw new Error(`not one server: ${servers().join(" ")}`)
    return pid
  }
  const observed = (verb: string, options: Omit<CallOptions, "caller">): Promise<Envelope> =>
    world.host.call(
      { tool: "notes.act", input: { verb }, workspace: world.workspace, driver: "notes-server" },
      { caller: processCaller(me), ...options },
    )
  const onWord =
    (word: string, then: () => void): NonNullable<CallOptions["onEvent"]> =>
    (event) => {
      if (event.type === "output" && Buffer.from(event.bytes).includes(word)) then()
    }

  beforeAll(async () => {
    service = createServer((_request, response) => void response.end("ok"))
    await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve))
    const { port } = service.address() as AddressInfo
    const egress = `egress: { services: { service.test: "127.0.0.1:${port}" } }\n`
    world = await openMcpWorld(era, { backend, settings: `${settings()}${egress}`, before: keptDriver(tag) })
  })
  beforeEach(() => {
    me = `user${Number(me.slice(4)) + 1}`
    before = serversOf(tag)
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
    service.close()
    expect(serversOf(tag)).toEqual([])
  })

  it("has what an earlier call left in its memory, and each receipt says since when it is kept", async () => {
    const first = await act("plant", ["a"])
    expect(first, JSON.stringify(first)).toMatchObject({ ok: true })
    expect(await act("plant", ["b"])).toMatchObject({ ok: true })
    const last = await act("planted")
    expect(last).toMatchObject({ ok: true, value: '["a", "b"]' })
    const { since } = factsOf(first) as { since: string }
    expect(factsOf(first)).toEqual({ reused: false, kept: true, since, calls: 1 })
    expect(factsOf(last)).toEqual({ reused: true, kept: true, since, calls: 3 })
    expect(servers()).toHaveLength(1)
  })
  it("serves other contracts of its driver that get the same sandbox", async () => {
    await act("plant", ["a"])
    expect(await call("notes.read", { path: "README.md" })).toMatchObject({
      ok: true,
      value: "read me\n",
    })
    expect(await planted()).toEqual(["a"])
  })
  it("is nobody else's: another user, workspace or driver has another one", async () => {
    await act("plant", ["mine"])
    expect(await planted({ user: "bob" })).toEqual([])
    const workspace = join(world.folder, "other")
    mkdirSync(workspace, { recursive: true })
    expect(await planted({ workspace })).toEqual([])
    expect(await planted({ driver: "twin-server" })).toEqual([])
    expect(await planted()).toEqual(["mine"])
    expect(servers()).toHaveLength(4)
  })
  it("ends with what it wrote, which is judged and committed as any, and the next call has a new one on what is there now", async () => {
    await act("plant", ["a"])
    const written = await call("notes.write", { path: "notes/kept.txt", text: "by a kept server" })
    expect(written).toMatchObject({ ok: true, effects: [{ path: "notes/kept.txt", committed: true }] })
    expect(factsOf(written)).toMatchObject({
      reused: true,
      kept: false,
      ended: expect.stringContaining("wrote") as unknown,
    })
    expect(readFileSync(join(world.workspace, "notes/kept.txt"), "utf8")).toBe("by a kept server")
    expect(await planted()).toEqual([])
    expect(await call("notes.read", { path: "notes/kept.txt" })).toMatchObject({ value: "by a kept server" })
  })
  it("has an undeclared write refused and undone, and does not outlive it", async () => {
    await act("plant", ["a"])
    const whole = digestOfFolder(world.workspace)
    const refused = await call("notes.write", { path: "stray.txt", text: "x" })
    expect(refused).toMatchObject({ ok: false, error: { code: "undeclared_write" } })
    expect(digestOfFolder(world.workspace)).toBe(whole)
    expect(await planted()).toEqual([])
  })
  it("is started anew when somebody else changed the workspace, and sees the change", async () => {
    await act("plant", ["a"])
    writeFileSync(join(world.workspace, "notes/outside.txt"), "by somebody else")
    const read = await call("notes.read", { path: "notes/outside.txt" })
    expect(read).toMatchObject({ ok: true, value: "by somebody else" })
    expect(factsOf(read)).toMatchObject({ reused: false, restarted: "the workspace changed", calls: 1 })
    expect(await planted()).toEqual([])
  })
  it("has what it writes while nobody calls thrown away, and itself with it", async () => {
    await act("plant", ["a"])
    const whole = digestOfFolder(world.workspace)
    const pid = onlyServer()
    process.kill(pid, "SIGUSR1")
    await until(() => existsSync(`/proc/${pid}/root/workspace/notes/unasked.txt`), "the server has written")
    const next = await act("planted")
    expect(next).toMatchObject({ ok: true, value: "[]", effects: [] })
    expect(factsOf(next)).toMatchObject({ reused: false, restarted: "it wrote while nobody called" })
    expect(digestOfFolder(world.workspace)).toBe(whole)
    // What it writes and nobody asks about goes as well.
    const other = onlyServer()
    process.kill(other, "SIGUSR1")
    await until(() => existsSync(`/proc/${other}/root/workspace/notes/unasked.txt`), "the other has written")
    await world.reopen()
    expect(serversOf(tag)).toEqual([])
    expect(digestOfFolder(world.workspace)).toBe(whole)
  })
  it("reaches nothing while nobody calls, and its hosts again in the next call", async () => {
    expect(await act("dial", ["service.test", "80"])).toMatchObject({ ok: true, value: "reached" })
    const pid = onlyServer()
    process.kill(pid, "SIGUSR2")
    await until(() => existsSync(`/proc/${pid}/root/tmp/dialled`), "the server has dialled")
    const next = await act("dial", ["service.test", "80"])
    expect(next).toMatchObject({ ok: true, value: "reached", denied: [] })
    expect(factsOf(next)).toMatchObject({ reused: true })
    expect(await planted()).toEqual(["refused"])
  })
  it("has each call's denials told in that call alone", async () => {
    const stopped = [{ layer: "egress", target: expect.stringContaining("elsewhere.test") as unknown }]
    expect(await act("dial", ["elsewhere.test", "80"])).toMatchObject({ ok: false, denied: stopped })
    expect(await act("planted")).toMatchObject({ ok: true, denied: [] })
    expect(await act("dial", ["192.0.2.7", "81"])).toMatchObject({
      ok: false,
      denied: [{ target: "192.0.2.7:81", count: 1 }],
    })
    expect(await act("planted")).toMatchObject({ ok: true, denied: [] })
    expect(factsOf(await act("planted"))).toMatchObject({ calls: 5 })
  })
  it("stays where its tool failed in its own words", async () => {
    await act("plant", ["a"])
    expect(await act("fail")).toMatchObject({ ok: false, error: { code: "upstream_error", message: "on purpose" } })
    expect(await act("refuse")).toMatchObject({ ok: false, error: { code: "upstream_error" } })
    expect(await planted()).toEqual(["a"])
  })
  it("is replaced after a crash in a call, which hurts no other call", async () => {
    await act("plant", ["a"])
    await act("plant", ["b"], { user: "bob2" })
    const crashed = await act("crash")
    expect(crashed).toMatchObject({ ok: false, error: { code: "upstream_error", details: { exit: 7 } } })
    expect(JSON.stringify(crashed)).toContain("going down")
    expect(await planted()).toEqual([])
    expect(await planted({ user: "bob2" })).toEqual(["b"])
  })
  it.each([
    ["crashes", "crash", "upstream_error"],
    ["falls silent", "linger", "timeout"],
  ])("has perhaps done what it was asked to change elsewhere, where it %s", async (_what, verb, code) => {
    await act("plant", ["a"])
    const failed = await call("notes.send", { verb })
    expect(failed).toMatchObject({ ok: false, error: { code, retryable: false, details: { commit: "unknown" } } })
    expect(factsOf(failed)).toMatchObject({ reused: true, kept: false, calls: 2 })
  })
  it("is replaced where it died or hangs between two calls", async () => {
    await act("plant", ["a"])
    const pid = onlyServer()
    process.kill(pid, "SIGKILL")
    await until(() => !servers().includes(pid), "the server is gone")
    expect(await planted()).toEqual([])
    process.kill(onlyServer(), "SIGSTOP")
    const next = await act("planted")
    expect(next).toMatchObject({ ok: true, value: "[]" })
    expect(factsOf(next)).toMatchObject({ reused: false, restarted: "it did not answer" })
  })
  it.each([
    ["was stopped at", "elsewhere.test", [{ layer: "egress", reason: "host_not_allowed" }], undefined],
    ["reached", "service.test", [], [{ target: "service.test:80", count: 1 }]],
  ])(
    "has what it %s before it was replaced in a call told in that call",
    async (_what, host, denied, reached: unknown) => {
      await act("sulk", [host, "80"])
      const next = await act("planted")
      expect(next).toMatchObject({ ok: true, value: "[]" })
      expect(next.denied).toMatchObject(denied)
      expect(factsOf(next)).toMatchObject({ reused: false, restarted: "it did not answer" })
      const [receipt] = readReceipts(world.data, { call: next.call })
      if (reached === undefined) expect(receipt?.metadata).toMatchObject({ denied })
      else expect(receipt?.metadata).toMatchObject({ reached })
    },
  )
  it("ends with a call that is cancelled, and with no other", async () => {
    await act("plant", ["a"])
    await act("plant", ["b"], { user: "bob3" })
    const cancel = new AbortController()
    const lingering = observed("linger", { signal: cancel.signal, onEvent: onWord("lingers", () => cancel.abort()) })
    expect(await lingering).toMatchObject({ ok: false, error: { code: "cancelled" } })
    expect(await planted()).toEqual([])
    expect(await planted({ user: "bob3" })).toEqual(["b"])
  })
  it("has calls of one user wait for each other, and one that is cancelled while it waits not run", async () => {
    const [cancel, second] = [new AbortController(), new AbortController()]
    const under = Promise.withResolvers<void>()
    const lingering = observed("linger", { signal: cancel.signal, onEvent: onWord("lingers", under.resolve) })
    await under.promise
    const waiting = [act("plant", ["late"]), act("plant", ["later"])]
    const dropped = act("plant", ["never"], { signal: second.signal })
    second.abort()
    expect(await dropped).toMatchObject({ ok: false, error: { code: "cancelled" } })
    expect(servers()).toHaveLength(1)
    cancel.abort()
    expect(await lingering).toMatchObject({ ok: false, error: { code: "cancelled" } })
    expect(await Promise.all(waiting)).toMatchObject([{ ok: true }, { ok: true }])
    expect(await planted()).toEqual(["late", "later"])
  })
  it("is not what a plan runs on, and keeps nothing of one", async () => {
    await act("plant", ["a"])
    expect(await act("plant", ["planned"], { plan: true })).toMatchObject({ ok: true })
    expect(await planted()).toEqual(["a"])
  })
  it("is asked at each call what it is, and refused once it says something else", async () => {
    expect(await act("rename")).toMatchObject({ ok: true })
    expect(await act("planted")).toMatchObject({ ok: false, error: { code: "policy_violation" } })
    expect(servers()).toEqual([])
  })
  it("asks whoever makes the call, and is told that it was dismissed where nobody is there", async () => {
    const ask = (elicit?: CallOptions["elicit"]) => observed("ask", elicit === undefined ? {} : { elicit })
    expect(JSON.stringify(await ask())).toContain("cancel")
    const asked = await ask(async () => ({ action: "accept", content: { colour: "red" } }))
    expect(JSON.stringify(asked)).toContain("red")
    expect(JSON.stringify(await ask())).toContain("cancel")
    expect(factsOf(await act("planted"))).toMatchObject({ calls: 4 })
  })
}
