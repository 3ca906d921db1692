/** The command line beside a daemon: the same words, answers and exit codes, made by the daemon. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { execa } from "execa"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { daemonSocket } from "../../src/data-folder/paths.ts"
import { readReceipts, verifyChain } from "../../src/host/index.ts"
import { caisson, type Ended, launcher, scratch } from "../cli/run-caisson.ts"
import { type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"
import { fixtureTools } from "./host-world.ts"

type Told = Record<string, unknown>
const parsed = ({ stdout }: Ended): Told => JSON.parse(stdout) as Told
const act = (verb: string, ...args: string[]): string => JSON.stringify({ verb, args })

/** Types `keys` at the first question, and answers what was on the screen, and the exit code. */
const terminal = `
import os, pty, sys
pid, screen = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
seen, told = b"", False
while True:
    try: part = os.read(screen, 65536)
    except OSError: break
    if not part: break
    seen += part
    if not told and b"[y/N]" in seen:
        told = True
        os.write(screen, sys.argv[1].encode())
sys.stdout.buffer.write(seen)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))`

describe("the command line, where a daemon holds the data folder", { timeout: 240_000 }, () => {
  let world: DaemonWorld
  let env: Record<string, string>
  beforeAll(async () => {
    world = await openDaemonWorld(`manifests: [${JSON.stringify(fixtureTools)}]\n`, { manifests: [] })
    copyFileSync(join(world.folder, "caisson.yaml"), join(world.data, "caisson.yaml"))
    env = { CAISSON_DATA: world.data }
  })
  afterAll(() => world[Symbol.asyncDispose]())
  const run = (...words: readonly string[]): Promise<Ended> => caisson(words, { env, cwd: world.workspace })
  const own = (...words: readonly string[]): Promise<Ended> =>
    caisson(words, { env: { ...env, CAISSON_NO_DAEMON: "1" }, cwd: world.workspace })
  /** What the daemon itself made: a host in another process keeps no record of calls without a key. */
  const madeByDaemon = async (): Promise<readonly string[]> =>
    (await world.daemon.host.calls({ limit: 200 })).map(({ call }) => call)
  const note = (name: string): string => join(world.workspace, "notes", name)
  const operatorToken = async (): Promise<string> => {
    const made = await world.daemon.host.tokens.issue({ agent: false, roles: ["operator"], workspaces: "any" })
    return made.ok ? made.value.token : ""
  }

  it.each([
    [["tools"]],
    [["tools", "fixture.act"]],
    [["tools", "no.such"]],
    [["drivers"]],
    [["drivers", "jq"]],
    [["why", "fixture.act", "-i", act("print", "1")]],
    [["why", "no.such"]],
    [["why", "json.query", "-i", "{bad"]],
    [["approvals"]],
    [["approvals", "show", "nothing"]],
    [["tokens", "list"]],
    [["tokens", "revoke", "nothing"]],
    [["tokens", "create", "--person"]],
    [["grants", "list"]],
    [["grants", "revoke", "nothing"]],
    [["grants", "create", "--tool", "fixture.act"]],
    [["secrets", "list"]],
    [["secrets", "rm", "no-such"]],
  ])("answers `caisson %j` as a host of its own does", async (words) => {
    const [through, beside] = [await run(...words), await own(...words)]
    expect(through).toEqual(beside)
  })

  it("gives grants and keeps secrets by way of the daemon, says what was revoked, and names a secret's folder", async () => {
    const made = await run("grants", "create", "--tool", "fixture.act", "--workspace", ".", "--uses", "2")
    expect(made).toMatchObject({ code: 0, stderr: "" })
    const { id } = parsed(made)
    expect(parsed(made)).toMatchObject({ tool: "fixture.act@1", workspace: world.workspace, uses: 2 })
    expect((await run("grants", "list")).stdout).toContain(String(id))
    expect(await run("grants", "revoke", String(id))).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(String(id)),
    })
    const token = await run("tokens", "create", "--any-workspace")
    const revoked = await run("tokens", "revoke", String(parsed(token)["id"]))
    expect(revoked).toMatchObject({ code: 0, stderr: expect.stringContaining(String(parsed(token)["id"])) })
    const set = await caisson(["secrets", "set", "some-token", "--workspace", "."], {
      env,
      cwd: world.workspace,
      input: "its value",
    })
    expect(set).toMatchObject({ code: 0, stdout: "", stderr: "some-token is set\n" })
    expect(JSON.parse((await run("secrets", "list")).stdout)).toMatchObject([
      { slug: "some-token", folder: world.workspace },
    ])
    expect(await run("secrets", "rm", "some-token", "--workspace", ".")).toMatchObject({ code: 0 })
    const metrics = await fetch(`${world.address}/metrics`, {
      headers: { authorization: `Bearer ${await operatorToken()}` },
    })
    const told = await metrics.text()
    for (const [method, route, status] of [
      ["POST", "/v1/grants", 201],
      ["DELETE", "/v1/grants/:id", 204],
      ["POST", "/v1/secrets", 204],
      ["DELETE", "/v1/secrets/:id", 200],
    ] as const)
      expect(told).toContain(`caisson_http_requests_total{method="${method}",route="${route}",status="${status}"}`)
  })

  it("makes calls in the daemon, with the codes of their ends", async () => {
    const printed = await run("call", "fixture.act", "-i", act("print", "3"))
    expect(printed).toMatchObject({ code: 0, stderr: "" })
    expect(parsed(printed)).toMatchObject({ ok: true, value: "xxx" })
    expect(await madeByDaemon()).toContain(parsed(printed)["call"])
    const beside = await own("call", "fixture.act", "-i", act("print", "3"))
    expect(await madeByDaemon()).not.toContain(parsed(beside)["call"])
    for (const [code, reason, ...words] of [
      [2, "not_found", "no.such"],
      [2, "input_invalid", "fixture.act", "-i", "{bad"],
      [2, "input_invalid", "fixture.act", "-i", '{"verb": 1}'],
      [3, "undeclared_write", "fixture.act", "--yes", "-i", act("write", "elsewhere.txt", "x")],
      [4, "approval_required", "fixture.act", "-i", act("write", "notes/h.txt", "x")],
    ] as const) {
      const [through, alone] = [await run("call", ...words), await own("call", ...words)]
      expect([words, through.code, parsed(through)["error"]]).toMatchObject([words, code, { code: reason }])
      expect(alone.code).toBe(code)
      expect(through.stderr.replace(/\d{4}-\d\d-\S+Z/, "")).toBe(alone.stderr.replace(/\d{4}-\d\d-\S+Z/, ""))
    }
  })

  it("says yes beforehand with --yes, calls for another user with --user, and keeps relative folders this process's", async () => {
    const written = await caisson(
      ["call", "fixture.act", "--yes", "--user", "carol", "--workspace", ".", "-i", act("write", "notes/y.txt", "yes")],
      { env, cwd: world.workspace },
    )
    expect(written.code).toBe(0)
    expect(readFileSync(note("y.txt"), "utf8")).toBe("yes")
    const [latest] = await world.daemon.host.calls({ limit: 1 })
    expect(latest).toMatchObject({ user: "carol", call: parsed(written)["call"], workspace: world.workspace })
    const made = parsed(await caisson(["tokens", "create", "--workspace", "."], { env, cwd: world.workspace }))
    expect(made["workspaces"]).toEqual([world.workspace])
    expect(await world.daemon.host.tokens.callerOf(String(made["token"]))).toBeDefined()
  })

  it("approves what the daemon held", async () => {
    const held = parsed(await run("call", "fixture.act", "-i", act("write", "notes/a.txt", "held")))
    const id = String(held["call"])
    expect((await run("approvals", "show", id)).stdout).toContain("notes/a.txt")
    const approved = await run("approvals", "approve", id)
    expect(approved.code).toBe(0)
    expect(parsed(approved)).toMatchObject({ ok: true, call: id })
    expect(readFileSync(note("a.txt"), "utf8")).toBe("held")
    expect((await run("approvals", "approve", id)).code).toBe(2)
  })

  it("runs a host of its own for manifests and a backend of its own, on the same data folder", async () => {
    for (const flags of [
      ["--backend", "namespace"],
      ["--manifests", join(fixtureTools, "../manifests-none")],
    ]) {
      mkdirSync(join(world.folder, "none"), { recursive: true })
      const words = flags.map((word) => (word.endsWith("manifests-none") ? join(world.folder, "none") : word))
      const ended = await run("call", "json.query", ...words, "-i", '{"filter": ".", "document": 1}')
      expect(ended.code).toBe(0)
      expect(await madeByDaemon()).not.toContain(parsed(ended)["call"])
    }
    expect(await verifyChain(world.data)).toMatchObject({ ok: true })
  })

  it("cancels the call in the daemon at Ctrl-C, and prints its envelope", async () => {
    const child = spawn(process.execPath, [launcher, "call", "fixture.act", "-i", act("sleep", "60")], {
      cwd: world.workspace,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    })
    const told = text(child.stdout)
    const ended = once(child, "close") as Promise<[number]>
    const running = async (): Promise<boolean> =>
      (await world.daemon.host.calls({ limit: 5 })).some(({ state }) => state === "running")
    await expect.poll(running, { timeout: 30_000 }).toBe(true)
    child.kill("SIGINT")
    expect(await ended).toEqual([1, null])
    expect(JSON.parse(await told)).toMatchObject({ ok: false, error: { code: "cancelled" } })
    expect(await running()).toBe(false)
  })

  describe("on a terminal", () => {
    const typed = async (keys: string, ...words: string[]): Promise<{ screen: string; code: number }> => {
      const command = [process.execPath, launcher, "call", "fixture.act", ...words]
      const ended = await execa("python3", ["-c", terminal, keys, ...command], {
        cwd: world.workspace,
        env: { ...env, TERM: "xterm", NO_COLOR: "1" },
        reject: false,
      })
      return { screen: ended.stdout, code: ended.exitCode ?? -1 }
    }

    it("shows the effects and what files will hold before the question, and a yes commits them", async () => {
      const { screen, code } = await typed("y\n", "-i", act("write", "notes/old.txt", "new"))
      expect(screen).toMatch(/M notes\/old\.txt[\s\S]*-old[\s\S]*\+new[\s\S]*\[y\/N\]/)
      expect(code).toBe(0)
      expect(readFileSync(note("old.txt"), "utf8")).toBe("new")
    })

    it.each([
      ["n", "n\n", 4, "approval_denied"],
      ["the end of the input", "\u0004", 4, "approval_denied"],
      ["Ctrl-C", "\u0003", 1, "cancelled"],
    ])("%s keeps nothing, and leaves nothing held", async (_what, keys, exitCode, reason) => {
      const before = await world.daemon.host.approvals()
      const { screen, code } = await typed(keys, "-i", act("write", "notes/none.txt", "x"))
      expect(screen).toContain(reason)
      expect(code).toBe(exitCode)
      expect(existsSync(note("none.txt"))).toBe(false)
      expect(await world.daemon.host.approvals()).toEqual(before)
    })
  })
})

describe("a daemon that fails its callers", { timeout: 240_000 }, () => {
  /** A daemon in a process of its own, that can be stopped and killed. */
  const openApart = async () => {
    const room = scratch()
    const workspace = join(room.folder, "work")
    const data = join(room.folder, "data")
    mkdirSync(join(workspace, "notes"), { recursive: true })
    const source = `
      const { openDaemon } = await import(${JSON.stringify(join(import.meta.dirname, "../../src/daemon/daemon.ts"))})
      await openDaemon({ data: ${JSON.stringify(data)}, manifests: [${JSON.stringify(fixtureTools)}], listen: "none" })
      process.stdout.write("ready")`
    const child = spawn(process.execPath, ["--input-type=module", "-e", source], {
      stdio: ["ignore", "pipe", "inherit"],
    })
    await once(child.stdout, "data")
    return {
      child,
      data,
      call: (...words: string[]) =>
        caisson(["call", "fixture.act", ...words], { env: { CAISSON_DATA: data }, cwd: workspace }),
      openCalls: async () => {
        const { createClient } = await import("../../src/client/index.ts")
        return (await createClient({ socket: daemonSocket(data) }).calls.list()).filter(
          ({ state }) => state === "running",
        )
      },
      async [Symbol.asyncDispose]() {
        if (child.exitCode === null && child.signalCode === null) {
          child.kill("SIGCONT")
          child.kill("SIGKILL")
          await once(child, "close")
        }
        room[Symbol.dispose]()
      },
    }
  }

  it.each([
    ["dies", "SIGKILL", "the daemon ended"],
    ["hangs", "SIGSTOP", "does not answer"],
  ] as const)(
    "that %s in a call: the command says so and what is not known, and runs nothing again",
    async (_what, signal, words) => {
      await using apart = await openApart()
      const ended = apart.call("-i", act("sleep", "600"))
      await expect.poll(async () => (await apart.openCalls()).length, { timeout: 30_000 }).toBe(1)
      const [running] = await apart.openCalls()
      apart.child.kill(signal)
      const { code, stdout, stderr } = await ended
      expect(JSON.parse(stdout)).toMatchObject({
        ok: false,
        call: running?.call,
        error: { code: "timeout", retryable: false, details: { commit: "unknown" } },
      })
      expect(stderr).toContain(words)
      expect(code).toBe(1)
      const receipts = [...readReceipts(apart.data)].length
      expect(receipts).toBeLessThanOrEqual(1)
    },
  )

  it("that is stopped before it is asked is not gone round; one that left its socket behind is", async () => {
    await using apart = await openApart()
    apart.child.kill("SIGSTOP")
    const hung = await apart.call("-i", act("print", "1"))
    expect(hung.code).toBe(5)
    expect(JSON.parse(hung.stdout)).toMatchObject({ call: "none", error: { details: { commit: "none" } } })
    expect(hung.stderr).toContain("CAISSON_NO_DAEMON=1")
    apart.child.kill("SIGCONT")
    apart.child.kill("SIGKILL")
    await once(apart.child, "close")
    expect(existsSync(daemonSocket(apart.data))).toBe(true)
    expect((await apart.call("--manifests", fixtureTools, "-i", act("print", "1"))).code).toBe(0)
    const alone = await caisson(["call", "json.query", "-i", '{"filter": ".", "document": 1}'], {
      env: { CAISSON_DATA: apart.data },
    })
    expect(alone.code).toBe(0)
  })

  it("something else at its socket is not taken for it", async () => {
    using room = scratch()
    const data = join(room.folder, "data")
    mkdirSync(data, { mode: 0o700 })
    writeFileSync(join(data, "caisson.yaml"), "", { mode: 0o600 })
    const server = createServer((socket) => {
      socket.on("error", () => undefined)
      socket.end("SSH-2.0-other\r\n")
    })
    await once(server.listen(daemonSocket(data)), "listening")
    const ended = await caisson(["tools"], { env: { CAISSON_DATA: data } })
    server.close()
    expect(ended).toMatchObject({ code: 5, stdout: "" })
    expect(ended.stderr).toContain("CAISSON_NO_DAEMON=1")
  })
})
