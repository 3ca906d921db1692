/** The command line, spawned for real, over real sandboxes. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { execa } from "execa"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import type { Envelope } from "../../src/host/types.ts"
import { caisson, type Ended, launcher, scratch } from "../cli/run-caisson.ts"

const tour = fileURLToPath(new URL("../../tour", import.meta.url))

let room: ReturnType<typeof scratch>
let workspace: string
let env: Record<string, string>

const run = (args: readonly string[], input?: string): Promise<Ended> =>
  caisson(args, { env, cwd: workspace, ...(input === undefined ? {} : { input }) })
const envelopeOf = (ended: Ended): Envelope => JSON.parse(ended.stdout) as Envelope
const files = (): string[] => readdirSync(workspace, { recursive: true, encoding: "utf8" }).sort()

beforeEach(() => {
  room = scratch()
  workspace = join(room.folder, "workspace")
  mkdirSync(workspace)
  env = { CAISSON_DATA: join(room.folder, "data") }
})
afterEach(() => room[Symbol.dispose]())

/** A driver for the test's own use, over a program of the system. */
const writeDriver = (id: string, bin: string, argv: readonly string[]): string => {
  const folder = join(room.folder, "manifests", id)
  mkdirSync(folder, { recursive: true })
  const front = (...lines: string[]): string => `---\n${lines.join("\n")}\n---\n`
  const head = [`name: ${id}`, "description: Of this test.", "version: 1.0.0"]
  writeFileSync(
    join(folder, "TOOL.md"),
    front(...head, `id: test.${id}`, "inputs: { type: object }", "outputs: { type: string }", "timeout_ms: 60000"),
  )
  const metadata = JSON.stringify({ cli: { argv, output_format: "text" } })
  writeFileSync(
    join(folder, "DRIVER.md"),
    front(
      ...head,
      `id: ${id}`,
      "kind: cli",
      `bin: ${bin}`,
      "install: [{ method: apt, package: coreutils }]",
      `version_check: { cmd: ${bin} --version, parse: 'coreutils\\) ([0-9.]+)', range: '>=8' }`,
      "sandbox:",
      "  network: { egress: [] }",
      "  fs: { read: [], write: [], deny: [] }",
      "  exec: { allow: false }",
      "  env: { pass: [] }",
      "implements:",
      `  - { tool: ./TOOL.md, version: ^1.0.0, metadata: ${metadata} }`,
    ),
  )
  return join(room.folder, "manifests")
}

describe("caisson call", () => {
  test("prints the envelope alone on stdout, nothing on stderr, and ends with 0", async () => {
    const ended = await run(["call", "hash.sha256", "-i", '{"files": ["a.txt"]}'])
    expect(envelopeOf(ended)).toMatchObject({ ok: false })
    writeFileSync(join(workspace, "a.txt"), "hello\n")
    const good = await run(["call", "hash.sha256", "-i", '{"files": ["a.txt"]}'])
    expect(good.code).toBe(0)
    expect(good.stderr).toBe("")
    expect(envelopeOf(good)).toMatchObject({
      ok: true,
      value: expect.stringContaining("5891b5b522d5df08"),
      driver: "sha256sum@1",
      effects: [],
      denied: [],
    })
  })

  test("takes its input from a file and from stdin", async () => {
    writeFileSync(join(workspace, "a.txt"), "hello\n")
    writeFileSync(join(workspace, "input.json"), '{"files": ["a.txt"]}')
    expect((await run(["call", "hash.sha256", "-i", "@input.json"])).code).toBe(0)
    expect((await run(["call", "hash.sha256", "-i", "-"], '{"files": ["a.txt"]}')).code).toBe(0)
  })

  test("reads a large input from a slow pipe that does not block", async () => {
    const feed = `
import os, subprocess, sys
r, w = os.pipe()
os.set_blocking(r, False)
child = subprocess.Popen(sys.argv[1:], stdin=r)
os.close(r)
text = b'{"filter": ".document | length", "document": {"document": "' + b"x" * 3000000 + b'"}}'
for at in range(0, len(text), 50000):
    os.write(w, text[at:at + 50000])
os.close(w)
sys.exit(child.wait())`
    const call = [process.execPath, launcher, "call", "json.query", "-i", "-"]
    const ended = await execa("python3", ["-c", feed, ...call], { cwd: workspace, env, reject: false })
    expect(JSON.parse(ended.stdout)).toMatchObject({ ok: true, value: [3_000_000] })
  })

  test("refuses an input that is larger than any may be, without reading on", async () => {
    const ended = await execa(
      "sh",
      ["-c", 'yes | "$@"', "sh", process.execPath, launcher, "call", "json.query", "-i", "-"],
      {
        cwd: workspace,
        env,
        reject: false,
      },
    )
    expect(JSON.parse(ended.stdout)).toMatchObject({
      error: { code: "input_invalid", message: expect.stringContaining("16777216 bytes") },
    })
    expect(ended.exitCode).toBe(2)
  })

  test("commits a declared write once it is approved, and holds it where nobody can be asked", async () => {
    const input = '{"path": "a.txt", "content": "hello"}'
    const asked = await run(["call", "file.write", "-i", input])
    expect(asked.code).toBe(4)
    expect(envelopeOf(asked)).toMatchObject({
      error: { code: "approval_required" },
      effects: [{ path: "a.txt", declared: true, committed: false }],
    })
    expect(files()).toEqual([])
    const ended = await run(["call", "file.write", "--yes", "-i", input])
    expect(ended.code).toBe(0)
    expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe("hello")
    expect(envelopeOf(ended).effects).toEqual([
      expect.objectContaining({ kind: "create", path: "a.txt", declared: true, committed: true }),
    ])
  })

  test("shows the effects of a plan and commits none", async () => {
    const ended = await run(["call", "file.write", "--plan", "-i", '{"path": "a.txt", "content": "hello"}'])
    expect(ended.code).toBe(0)
    expect(envelopeOf(ended).effects).toEqual([
      expect.objectContaining({ path: "a.txt", declared: true, committed: false }),
    ])
    expect(files()).toEqual([])
  })

  test("ends with 1 when the tool fails", async () => {
    const ended = await run(["call", "file.read", "-i", '{"path": "missing.txt"}'])
    expect(ended.code).toBe(1)
    expect(envelopeOf(ended)).toMatchObject({ ok: false, error: { code: "cat:unreadable" } })
    expect(ended.stderr).toContain("cat:unreadable")
  })

  test.each([
    [["call", "no.such-tool"], "not_found"],
    [["call", "file.read", "-i", '{"path": 3}'], "input_invalid"],
    [["call", "file.read", "-i", '{"path": "../secret"}'], "input_invalid"],
  ])("ends with 2 for %j, with an envelope and a receipt", async (args, code) => {
    const ended = await run(args)
    expect(ended.code).toBe(2)
    expect(envelopeOf(ended)).toMatchObject({ ok: false, error: { code }, receipt: expect.stringMatching(/^sha256:/) })
  })

  test("ends with 3 and leaves the workspace alone when the contract is violated", async () => {
    mkdirSync(join(workspace, "notes"))
    writeFileSync(join(workspace, "ledger.csv"), "1\n")
    const ended = await run(["call", "tour.tidy", "--manifests", tour, "-i", '{"name": "a", "text": "b"}'])
    expect(ended.code).toBe(3)
    const envelope = envelopeOf(ended)
    expect(envelope).toMatchObject({ ok: false, error: { code: "undeclared_write" } })
    const undeclared = envelope.effects
      .filter((effect) => !effect.declared)
      .map((effect) => `${effect.kind} ${effect.path}`)
    expect(undeclared.sort()).toEqual(["create .bashrc", "create settings.conf", "delete ledger.csv"])
    expect(envelope.effects.every((effect) => !effect.committed)).toBe(true)
    expect(files()).toEqual(["ledger.csv", "notes"])
  })

  test("says first that a dial was stopped where that made the tool fail, with host and fix", async () => {
    const ended = await run(["call", "http.fetch", "-i", '{"url": "https://undeclared.example.org/"}'])
    expect(ended.code).toBe(1)
    expect(envelopeOf(ended)).toMatchObject({
      error: {
        message: expect.stringMatching(/^undeclared\.example\.org:443 is not in the driver's egress/),
        hint: expect.stringContaining('add "undeclared.example.org:443" to `network.egress`'),
      },
      denied: [{ target: "undeclared.example.org:443", message: expect.anything(), hint: expect.anything() }],
    })
  })

  test("ends with 5 when the pinned driver is not there", async () => {
    expect((await run(["call", "file.read", "--driver", "nobody", "-i", '{"path": "a"}'])).code).toBe(5)
  })
})

/** Processes that are the program itself, not what starts it. */
const processesOf = (program: string, argument: string): string[] =>
  readdirSync("/proc").filter((pid) => {
    try {
      const [name, ...rest] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")
      return name?.endsWith(`/${program}`) === true && rest.includes(argument)
    } catch {
      return false
    }
  })

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 20))
}

describe("Ctrl-C", () => {
  test.each(["SIGINT", "SIGTERM"] as const)(
    "%s cancels the call, prints its envelope and leaves no process",
    async (signal) => {
      const seconds = String((signal === "SIGINT" ? 100_000 : 200_000) + process.pid)
      const manifests = writeDriver("sleeper", "sleep", [seconds])
      const child = spawn(process.execPath, [launcher, "call", "test.sleeper", "--manifests", manifests], {
        cwd: workspace,
        env: { ...process.env, ...env },
        stdio: ["ignore", "pipe", "pipe"],
      })
      let stdout = ""
      child.stdout.setEncoding("utf8").on("data", (chunk: string) => (stdout += chunk))
      const closed = once(child, "close") as Promise<[number | null]>
      await until(() => processesOf("sleep", seconds).length > 0 || child.exitCode !== null)
      child.kill(signal)
      const [code] = await closed
      expect(JSON.parse(stdout)).toMatchObject({ ok: false, error: { code: "cancelled" }, effects: [] })
      expect(code).toBe(1)
      await until(() => processesOf("sleep", seconds).length === 0)
    },
  )
})

describe("listings", () => {
  test("tools and drivers are JSON on a pipe, with availability", async () => {
    const tools = JSON.parse((await run(["tools"])).stdout) as { id: string; availability: { available: boolean } }[]
    expect(tools.find((tool) => tool.id === "file.read")).toMatchObject({
      drivers: ["caisson-files@1", "cat@1"],
      availability: { available: true },
    })
    const drivers = JSON.parse((await run(["drivers"])).stdout) as { id: string }[]
    expect(drivers.map((driver) => driver.id)).toContain("cat")
  })

  test("one tool or driver is shown in full, and a wrong name gets the nearest one", async () => {
    const [tool, ...rest] = JSON.parse((await run(["tools", "file.write"])).stdout) as object[]
    expect(rest).toEqual([])
    expect(tool).toMatchObject({ id: "file.write", mutates: ["workspace:/**"], examples: [expect.anything()] })
    const [driver] = JSON.parse((await run(["drivers", "curl@1"])).stdout) as object[]
    expect(driver).toMatchObject({ id: "curl", egress: expect.arrayContaining(["example.com"]) })
    const wrong = await run(["tools", "file.wirte"])
    expect(wrong).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("did you mean file.write?") })
  })

  test("a tool whose program is missing is listed with the reason and the fix", async () => {
    const manifests = writeDriver("nothing", "no-such-program-anywhere", [])
    const { stdout } = await run(["tools", "--manifests", manifests])
    const tools = JSON.parse(stdout) as { id: string; availability: unknown }[]
    expect(tools.find((tool) => tool.id === "test.nothing")?.availability).toMatchObject({
      available: false,
      code: "tool_unavailable",
      fix: expect.stringMatching(/\S/),
    })
  })

  test("a driver and a tool whose manifests did not load are listed with the file and the fix", async () => {
    const manifests = writeDriver("broken", "echo", [])
    const file = join(manifests, "broken", "DRIVER.md")
    writeFileSync(file, readFileSync(file, "utf8").replace("egress: []", 'egress: ["*"]'))
    mkdirSync(join(manifests, "odd"))
    writeFileSync(join(manifests, "odd", "TOOL.md"), "---js\nid: test.odd\n---\n")
    const listed = async (what: string): Promise<readonly { id?: string }[]> =>
      JSON.parse((await run([what, "--manifests", manifests])).stdout)
    expect((await listed("drivers")).find(({ id }) => id === "broken")).toMatchObject({
      file,
      tools: ["test.broken"],
      availability: { available: false, code: "manifest_invalid", reason: expect.stringContaining("sandbox.network") },
    })
    expect((await listed("tools")).find(({ id }) => id === "test.odd")).toMatchObject({
      availability: { available: false, code: "manifest_invalid" },
    })
    const { code, stdout } = await run(["call", "test.broken", "--manifests", manifests])
    expect(code).toBe(5)
    expect(JSON.parse(stdout)).toMatchObject({
      error: { code: "no_route", message: expect.stringContaining(file), details: { reason: "manifest_invalid" } },
    })
  })

  test("why needs no input to name driver and profile", async () => {
    const { code, stdout } = await run(["why", "json.query"])
    expect(JSON.parse(stdout)).toMatchObject({
      selected: "jq@1",
      argv: expect.arrayContaining(["jq", expect.stringContaining("${input.filter}")]),
      egress: [],
      mutates: [],
      approval: { class: "auto", effects: "commit" },
      profile: { network: "none" },
    })
    expect(code).toBe(0)
  })

  test("the backend is that of caisson.yaml where no flag names one", async () => {
    mkdirSync(join(room.folder, "data"), { mode: 0o700 })
    writeFileSync(join(room.folder, "data", "caisson.yaml"), "backend: docker\n", { mode: 0o600 })
    env["DOCKER_HOST"] = `unix://${join(room.folder, "no.sock")}`
    const named = await run(["call", "json.query", "-i", '{"filter":".","document":1}', "--backend", "namespace"])
    expect(named.code).toBe(0)
    const { code, stdout } = await run(["call", "json.query", "-i", '{"filter":".","document":1}'])
    expect(stdout).toContain("sandbox_unavailable")
    expect(code).toBe(5)
  })

  test("why names the driver, the phase of each other one, and the sealed profile", async () => {
    const { code, stdout } = await run(["why", "file.read", "-i", '{"path": "a"}'])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      selected: "cat@1",
      rows: expect.arrayContaining([
        expect.objectContaining({ driver: "cat@1", phase: "selected" }),
        expect.objectContaining({ driver: "caisson-files@1", phase: expect.stringMatching(/\S/) }),
      ]),
      profile: { network: "none" },
    })
  })
})

describe("evidence", () => {
  test("receipts lists each call, verify holds, and a changed line is named with exit code 3", async () => {
    const first = envelopeOf(await run(["call", "file.write", "--yes", "-i", '{"path": "a.txt", "content": "x"}']))
    await run(["call", "file.read", "-i", '{"path": "nope"}'])
    const receipts = JSON.parse((await run(["receipts"])).stdout) as unknown[]
    expect(receipts).toHaveLength(2)
    const one = JSON.parse((await run(["receipts", "--call", first.call])).stdout) as { hash: string }[]
    expect(one.map((entry) => `sha256:${entry.hash}`)).toEqual([first.receipt])
    expect((await run(["receipts", "--call", "01J0000000000000000000000"])).code).toBe(2)
    expect((await run(["verify"])).code).toBe(0)

    const log = join(env["CAISSON_DATA"] ?? "", "audit", "audit-log.jsonl")
    writeFileSync(log, readFileSync(log, "utf8").replace("file.write", "file.wrote"))
    const verdict = await run(["verify"])
    expect(verdict.code).toBe(3)
    expect(JSON.parse(verdict.stdout)).toMatchObject({ ok: false, line: 1 })
  })
})

describe("on a terminal", () => {
  /** Types `before` at once and `keys` at the first question, and answers what was on the screen, and the exit code. */
  const drive = async (
    { before = "", keys }: { readonly before?: string; readonly keys: string },
    ...words: string[]
  ): Promise<{ screen: string; code: number }> => {
    const terminal = `
import os, pty, sys
pid, screen = pty.fork()
if pid == 0:
    os.execv(sys.argv[3], sys.argv[3:])
os.write(screen, sys.argv[1].encode())
seen, told = b"", False
while True:
    try: part = os.read(screen, 65536)
    except OSError: break
    if not part: break
    seen += part
    if not told and b"[y/N]" in seen:
        told = True
        os.write(screen, sys.argv[2].encode())
sys.stdout.buffer.write(seen)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))`
    const call = [process.execPath, launcher, "call", "file.write", ...words]
    const ended = await execa("python3", ["-c", terminal, before, keys, ...call], {
      cwd: workspace,
      env: { ...env, TERM: "xterm", NO_COLOR: "1" },
      reject: false,
    })
    return { screen: ended.stdout, code: ended.exitCode ?? -1 }
  }
  const hello = '{"path": "a.txt", "content": "hello"}'
  const typed = (keys: string, ...more: string[]): ReturnType<typeof drive> => drive({ keys }, "-i", hello, ...more)

  test("the effects are shown before the question, and a yes keeps them", async () => {
    const { screen, code } = await typed("y\n")
    expect(screen).toMatch(/A a\.txt[\s\S]*\[y\/N\]/)
    expect(code).toBe(0)
    expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe("hello")
  })

  test.each([
    ["n", "n\n", 4, "approval_denied"],
    ["an empty line", "\n", 4, "approval_denied"],
    ["the end of the input", "\u0004", 4, "approval_denied"],
    ["Ctrl-C", "\u0003", 1, "cancelled"],
  ])("%s keeps nothing", async (_what, keys, exitCode, reason) => {
    const { screen, code } = await typed(keys)
    expect(screen).toContain(reason)
    expect(code).toBe(exitCode)
    expect(files()).toEqual([])
  })

  test("a yes typed before the question was there is no answer to it", async () => {
    const { code } = await drive({ before: "y\ny\n", keys: "\n" }, "-i", hello)
    expect(code).toBe(4)
    expect(files()).toEqual([])
  })

  test("an input that was typed, up to its end, leaves the terminal to the question", async () => {
    const { code } = await drive({ before: `${hello}\n\u0004`, keys: "y\n" }, "-i", "-")
    expect(code).toBe(0)
    expect(files()).toEqual(["a.txt"])
  })

  test("--yes answers, and nothing is asked", async () => {
    const { screen, code } = await typed("n\n", "--yes")
    expect(screen).not.toContain("[y/N]")
    expect(code).toBe(0)
    expect(files()).toEqual(["a.txt"])
  })

  test("the value is for people, with effects and receipt, and NO_COLOR holds", async ({ skip }) => {
    const hasScript = (await execa("script", ["--version"], { reject: false })).exitCode === 0
    if (!hasScript) skip("needs script(1) to make a terminal")
    const command = `${process.execPath} ${launcher} call file.write --yes -i '{"path": "a.txt", "content": "hello"}'`
    const colored = await execa("script", ["-qec", command, "/dev/null"], {
      cwd: workspace,
      env: { ...env, TERM: "xterm" },
    })
    expect(colored.stdout).toMatch(/A.*a\.txt.*declared/)
    expect(colored.stdout).toContain("receipt sha256:")
    expect(colored.stdout).toContain("\u001b[")
    const plain = await execa("script", ["-qec", command, "/dev/null"], {
      cwd: workspace,
      env: { ...env, TERM: "xterm", NO_COLOR: "1" },
    })
    expect(plain.stdout).not.toContain("\u001b[3")
    expect(plain.stdout).not.toContain('"ok"')
  })

  test("why of a tool that does not exist is the reason alone, without an empty table", async () => {
    const command = `${process.execPath} ${launcher} why nosuch`
    const { stdout } = await execa("script", ["-qec", command, "/dev/null"], {
      cwd: workspace,
      env: { ...env, TERM: "xterm", NO_COLOR: "1" },
      reject: false,
    })
    expect(stdout).toMatch(/^not_found {2}there is no tool nosuch/)
  })

  test.each([40, 60])("errors, hints and what was denied fit %i columns", async (columns) => {
    const failing = [
      "call nosuch.tool-with-quite-a-long-name",
      "call file.write -i '{}'",
      "call json.query -i @nofile",
      "verify --head nonsense",
      "approvals show 01ABCDEFGHJKMNPQRSTVWXYZ00",
    ]
    for (const words of failing) {
      const command = `stty cols ${columns}; ${process.execPath} ${launcher} ${words}`
      const { stdout } = await execa("script", ["-qec", command, "/dev/null"], {
        cwd: workspace,
        env: { ...env, TERM: "xterm", NO_COLOR: "1" },
        reject: false,
      })
      const long = stdout.split(/\r?\n/).filter((line) => line.length > columns)
      // A word that fits no line is left whole, for whoever copies it: a path, a receipt's hash.
      expect(
        long.filter((line) => /\S\s/.test(line.trimStart())),
        words,
      ).toEqual([])
      expect(stdout).toMatch(/\S/)
    }
  })

  test("a file of input that is not there is told once, in words", async () => {
    expect(envelopeOf(await run(["call", "json.query", "-i", "@nofile"]))).toMatchObject({
      ok: false,
      error: { code: "input_invalid", message: "nofile cannot be read: there is no such file (ENOENT)" },
    })
  })

  test("receipts of a folder that has no chain are a finding, as for verify", async () => {
    const { stdout, stderr, code } = await run(["receipts"])
    expect([code, JSON.parse(stdout)]).toEqual([3, []])
    expect(stderr).toContain("chain.absent")
  })

  test("verify names the folder that has no chain", async () => {
    const missing = join(workspace, "nosuch")
    const { stdout, code } = await run(["verify", missing])
    expect(code).toBe(3)
    expect(JSON.parse(stdout)).toMatchObject({ code: "chain.absent", message: expect.stringContaining(missing) })
  })

  test.each(["tools", "tools file.write", "drivers", "doctor", "why http.fetch"])(
    "%s fits sixty columns and is ASCII under LC_ALL=C",
    async (words) => {
      const command = `stty cols 60; ${process.execPath} ${launcher} ${words} 2>/dev/null`
      const { stdout } = await execa("script", ["-qec", command, "/dev/null"], {
        cwd: workspace,
        env: { ...env, TERM: "xterm", NO_COLOR: "1", LC_ALL: "C" },
        reject: false,
      })
      const lines = stdout.split(/\r?\n/)
      expect(lines.length).toBeGreaterThan(3)
      expect(lines.filter((line) => line.length > 60)).toEqual([])
      expect(stdout).toMatch(/^[\t\n\r -~]*$/)
    },
  )
})
