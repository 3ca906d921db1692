import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import type { Envelope } from "../../src/host/types.ts"
import { digestOfFolder, fixtureTools } from "../e2e/host-world.ts"
import { until } from "../support/sealed.ts"
import { caisson, launcher, scratch } from "./run-caisson.ts"

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  version: string
}
const asked = ["call", "why", "tools", "drivers", "validate", "doctor", "receipts", "verify", "egress-proxy"]

describe("help and version", () => {
  test("--help lists every command that exists, on stdout", async () => {
    const { code, stdout, stderr } = await caisson(["--help"])
    expect(code).toBe(0)
    expect(stderr).toBe("")
    for (const name of asked) expect(stdout).toMatch(new RegExp(`^ {2}${name} `, "m"))
    expect(stdout).toContain("Exit codes:")
  })

  test.each(asked)("%s has --help and --version", async (name) => {
    const help = await caisson([name, "--help"])
    expect(help.code).toBe(0)
    expect(help.stdout).toContain(`Usage: caisson ${name}`)
    const told = await caisson([name, "--version"])
    expect(told).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" })
  })

  test("without a word it shows the help on stderr and ends with 2", async () => {
    const { code, stdout, stderr } = await caisson([])
    expect(code).toBe(2)
    expect(stdout).toBe("")
    expect(stderr).toContain("Usage: caisson")
  })
})

describe("bad usage", () => {
  test.each([
    [["cal", "json.query"], /unknown command 'cal'[\s\S]*call/],
    [["conform"], /name a driver or a tool/],
    [["perform"], /unknown command 'perform'[\s\S]*conform/],
    [["call"], /missing required argument 'tool'/],
    [["call", "a", "b"], /too many arguments/],
    [["call", "a", "--nope"], /unknown option '--nope'/],
    [["call", "a", "--backend", "vm"], /namespace, docker/],
    [["call", "a", "--manifests", "/no/such/folder"], /there are no manifests at \/no\/such\/folder/],
    [["egress-proxy"], /required option/],
  ])("%j ends with 2, says why on stderr and nothing on stdout", async (args, message) => {
    const { code, stdout, stderr } = await caisson(args)
    expect(stderr).toMatch(message)
    expect(stdout).toBe("")
    expect(code).toBe(2)
  })

  test.each([
    [["-i", '{"a": }'], 'the input is not JSON: unexpected "}" at line 1, column 7'],
    [["-i", "@/no/such/file"], "cannot be read"],
    [["-i", "-"], 'stdin is not JSON: unexpected "n" at line 2, column 8'],
    [["--context", "[1]"], "must be a JSON object"],
  ])("a call with %j is refused as input_invalid, with an envelope and a receipt", async (flags, message) => {
    using room = scratch()
    const env = { CAISSON_DATA: join(room.folder, "data") }
    const { code, stdout, stderr } = await caisson(["call", "a", ...flags], { env, input: '{\n  "a": nul\n}' })
    expect(code).toBe(2)
    expect(stderr).toContain(message)
    const envelope = JSON.parse(stdout) as Envelope
    expect(envelope).toMatchObject({ ok: false, error: { code: "input_invalid" }, effects: [], denied: [] })
    expect(envelope.receipt).toMatch(/^sha256:[0-9a-f]{64}$/)
  })
})

describe("a reader that went away", () => {
  test.each(["stdout", "stderr"] as const)("of %s does not change how the call ended", async (stream) => {
    using room = scratch()
    const child = spawn(process.execPath, [launcher, "call", "no.such"], {
      env: { ...process.env, CAISSON_DATA: join(room.folder, "data") },
    })
    child[stream].destroy()
    const [code] = (await once(child, "exit")) as [number]
    expect(code).toBe(2)
  })
})

describe("the launcher", () => {
  test.each(["caisson.cjs", "find-node.cjs"])("is ES5, so that an old Node gets as far as the message: %s", (name) => {
    const text = readFileSync(join(dirname(launcher), name), "utf8").replace(/\/\*[\s\S]*?\*\//g, "")
    expect(text).not.toMatch(/=>|\b(let|const|class|async|await)\b|import\(|`|,\s*\)/)
  })

  const oldNode = "/usr/bin/node"
  const noOldNode = "needs a Node older than 24 at /usr/bin/node: apt-get install -y nodejs"
  const isOld =
    Number(/^v(\d+)/.exec(spawnSync(oldNode, ["--version"], { encoding: "utf8" }).stdout ?? "")?.[1] ?? 99) < 24

  test("starts the bundled Node from an old one and ends as it ended", async ({ skip }) => {
    if (!isOld) skip(noOldNode)
    expect(await caisson(["--version"], { node: oldNode })).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" })
    expect((await caisson(["nonsense"], { node: oldNode })).code).toBe(2)
  })

  test("prefers the Node that CAISSON_NODE names", async ({ skip }) => {
    if (!isOld) skip(noOldNode)
    expect((await caisson(["--version"], { node: oldNode, env: { CAISSON_NODE: process.execPath } })).code).toBe(0)
  })

  test("passes signals on to the Node it started", async ({ skip }) => {
    if (!isOld) skip(noOldNode)
    using room = scratch()
    const policy = join(room.folder, "policy.yaml")
    writeFileSync(policy, "egress: []\n")
    const args = [launcher, "egress-proxy", "--policy", policy, "--listen", "127.0.0.1:0"]
    const child = spawn(oldNode, args, { stdio: ["ignore", "ignore", "pipe"] })
    const closed = once(child, "close")
    await once(child.stderr, "data")
    child.kill("SIGTERM")
    expect(await closed).toEqual([0, null])
  })

  /** Processes whose command line holds the text. */
  const running = (text: string): string[] =>
    readdirSync("/proc").filter((name) => {
      if (!/^\d+$/.test(name)) return false
      try {
        return readFileSync(`/proc/${name}/cmdline`, "utf8").includes(text)
      } catch {
        return false
      }
    })

  test("killed in the middle of a call takes the Node it started along, and nothing is committed", async ({ skip }) => {
    if (!isOld) skip(noOldNode)
    using room = scratch()
    const [data, workspace] = [join(room.folder, "data"), join(room.folder, "work")]
    mkdirSync(join(workspace, "notes"), { recursive: true })
    const before = digestOfFolder(workspace)
    const input = JSON.stringify({ verb: "sleep", args: ["notes/slow.txt", room.folder] })
    const asked = ["call", "fixture.act", "-i", input, "--workspace", workspace, "--manifests", fixtureTools, "--yes"]
    const child = spawn(oldNode, [launcher, ...asked], {
      env: { ...process.env, CAISSON_DATA: data },
      stdio: ["ignore", "ignore", "inherit"],
    })
    const closed = once(child, "close")
    await until(() => running(`act.pl\0sleep\0notes/slow.txt\0${room.folder}`).length > 0, "the tool runs")
    // Both Nodes, the sandbox's launcher and what it started.
    expect(running(room.folder).length).toBeGreaterThan(2)
    child.kill("SIGKILL")
    await closed
    await until(() => running(room.folder).length === 0, "every process of the call is gone")
    expect(digestOfFolder(workspace)).toBe(before)
  })

  test("that is gone before the Node it started has begun leaves it nothing to do", async () => {
    const { code, stdout, stderr } = await caisson(["--version"], { env: { CAISSON_STARTED_BY: "1" } })
    expect({ code, stdout }).toEqual({ code: 5, stdout: "" })
    expect(stderr).toContain("nothing was run")
  })
})
