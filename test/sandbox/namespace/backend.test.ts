import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync, existsSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest"
import { sweepLayers } from "../../../src/sandbox/layers/store.ts"
import { createNamespaceBackend } from "../../../src/sandbox/namespace/backend.ts"
import { shapeOf } from "../../../src/sandbox/profile.ts"
import {
  commandOf,
  descendants,
  fingerprint,
  finish,
  groupsOf,
  prepared,
  profileOf,
  removeFolder,
  runPython,
  runShell,
  stillAlive,
  strayMounts,
  temporaryFolder,
  until,
} from "../../support/sealed.ts"

const data = temporaryFolder("data")
const backend = createNamespaceBackend({ data })
let workspace = ""

beforeAll(() => backend.start())
beforeEach(() => {
  workspace = temporaryFolder("workspace")
  writeFileSync(join(workspace, "a.txt"), "one\n")
  mkdirSync(join(workspace, "docs"))
  writeFileSync(join(workspace, "docs/b.txt"), "two\n")
})
afterEach(() => removeFolder(workspace))
afterAll(async () => {
  const ours = descendants(process.pid)
  await backend[Symbol.asyncDispose]()
  await until(() => stillAlive(ours).length === 0, "every process of the backend is gone")
  await until(() => groupsOf(process.pid).length === 0, "every group of the backend is gone")
  expect(strayMounts(data)).toEqual([])
  removeFolder(data)
})

describe("a call's life", () => {
  test("gives back exit code, streams and effects, and leaves the workspace alone until commit", async () => {
    const was = fingerprint(workspace)
    const { exited, stdout, stderr } = await runShell(
      backend,
      workspace,
      "cat; echo out; echo err >&2; echo new > made; rm docs/b.txt; exit 7",
    )
    expect(exited.ending).toEqual({ by: "exit", code: 7 })
    expect(stdout).toBe("out\n")
    expect(stderr).toBe("err\n")
    expect(exited.writes.effects.map(({ kind, path }) => `${kind} ${path}`)).toEqual([
      "delete docs/b.txt",
      "create made",
    ])
    expect(fingerprint(workspace)).toBe(was)
    await exited.discard()
    expect(fingerprint(workspace)).toBe(was)
  })
  test("commits all of it", async () => {
    const { exited } = await runShell(backend, workspace, "echo new > made; rm -r docs; echo three >> a.txt")
    expect(await exited.commit()).toEqual({ ok: true })
    expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe("one\nthree\n")
    expect(readFileSync(join(workspace, "made"), "utf8")).toBe("new\n")
    expect(existsSync(join(workspace, "docs"))).toBe(false)
  })
  test("passes standard input and arguments of any content", async () => {
    const words = ["a b", "'quoted'", '"double"', "$HOME `id` ;|&", "new\nline", "ünï", "\\back", "-dash", ""]
    const { stdout } = await finish(await prepared(backend, { program: "/usr/bin/python3" }), {
      argv: [
        "/usr/bin/python3",
        "-c",
        "import sys,json; print(json.dumps([sys.argv[1:], sys.stdin.read()]))",
        ...words,
      ],
      stdin: "from outside",
      workspace,
    })
    expect(JSON.parse(stdout)).toEqual([words, "from outside"])
  })
  test("lets the tool open its own streams by name", async () => {
    const sandbox = await prepared(backend)
    const { stdout, stderr } = await finish(sandbox, {
      argv: ["/usr/bin/sh", "-c", "cat /dev/stdin > /dev/stdout; echo said > /dev/stderr; echo more >> /dev/stdout"],
      stdin: "given\n",
      workspace,
    })
    expect([stdout, stderr]).toEqual(["given\nmore\n", "said\n"])
  })
  test("does not take a tool's word for a broken sandbox", async () => {
    const { exited } = await runShell(backend, workspace, "echo 'bwrap: execvp /x: No such file' >&2; exit 1")
    expect(exited.ending).toEqual({ by: "exit", code: 1 })
  })
  test("takes arguments of many kilobytes", async () => {
    const long = Array.from({ length: 40 }, (_, index) => `${index}`.padEnd(30_000, "x"))
    const { stdout, stderr, exited } = await finish(await prepared(backend, { program: "/usr/bin/python3" }), {
      argv: ["/usr/bin/python3", "-c", "import sys; print(sum(map(len, sys.argv[1:])))", ...long],
      workspace,
    })
    expect([exited.ending, stderr]).toEqual([{ by: "exit", code: 0 }, ""])
    expect(Number(stdout)).toBe(1_200_000)
  })
  test("stops the tree at the deadline", async () => {
    const { exited } = await runShell(backend, workspace, "trap '' TERM INT; (sleep 600 &) ; sleep 600", {
      limits: { wallMs: 400 },
    })
    expect(exited.ending).toEqual({ by: "limit", limit: "wall" })
  })
  test("stops at once when cancelled", async () => {
    const sandbox = await prepared(backend)
    const cancel = new AbortController()
    const running = finish(
      sandbox,
      { argv: ["/usr/bin/sh", "-c", "echo ready > started; sleep 600"], workspace },
      cancel.signal,
    )
    setTimeout(() => cancel.abort(), 100)
    expect((await running).exited.ending).toEqual({ by: "cancelled" })
  })
  test("does not start when cancelled before", async () => {
    const { exited } = await finish(
      await prepared(backend),
      { argv: ["/usr/bin/sh", "-c", "sleep 600"], workspace },
      AbortSignal.abort(),
    )
    expect(exited.ending).toEqual({ by: "cancelled" })
  })
  test("leaves nothing alive whenever in its start a call is cancelled", async () => {
    const marker = `cancelled-${process.pid}`
    for (let round = 0; round < 40; round += 1) {
      const cancel = new AbortController()
      const running = finish(
        await prepared(backend),
        { argv: ["/usr/bin/sh", "-c", "sleep 600", marker], workspace },
        cancel.signal,
      )
      setTimeout(() => cancel.abort(), round * 0.4)
      const { exited } = await running
      expect(exited.ending).toEqual({ by: "cancelled" })
      await exited.discard()
    }
    const commands = descendants(process.pid).map(({ pid }) => commandOf(pid))
    expect(commands.filter((command) => command.includes(marker))).toEqual([])
  })
  test("refuses a workspace that is not there", async () => {
    const sandbox = await prepared(backend)
    const result = await sandbox.run({ argv: ["/usr/bin/true"], workspace: join(workspace, "nowhere") })
    expect(result).toMatchObject({ ok: false, control: "workspace" })
  })
  test("serves more sets of programs than it keeps views of", async () => {
    const sets = Array.from({ length: 70 }, (_, index) => ({ sh: "/usr/bin/sh", [`alias-${index}`]: "/usr/bin/true" }))
    for (const spawn of sets) await (await prepared(backend, { spawn }))[Symbol.asyncDispose]()
    const first = await runShell(backend, workspace, "alias-0 && echo there", {
      spawn: sets[0] as Record<string, string>,
    })
    expect(first.stdout).toBe("there\n")
    await first.exited.discard()
  })
  test("refuses a program that does not exist, before anything runs", async () => {
    expect(await backend.prepare(shapeOf(profileOf({ program: "/usr/bin/no-such-program" })))).toMatchObject({
      ok: false,
      control: "root-view",
    })
  })
  test("runs many calls at once, each on its own layer", async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 24 }, (_, index) =>
        runShell(backend, workspace, `echo ${index} > mine; cat mine; ls /workspace | wc -l`),
      ),
    )
    expect(outcomes.map(({ stdout }) => stdout)).toEqual(Array.from({ length: 24 }, (_, index) => `${index}\n3\n`))
    for (const { exited } of outcomes) await exited.discard()
  })
  test("names a killing signal", async () => {
    const { exited } = await runPython(backend, workspace, "import os,signal; os.kill(os.getpid(), signal.SIGSEGV)")
    expect(exited.ending).toEqual({ by: "signal", signal: "SIGSEGV" })
  })
  test("counts output beyond the cap and keeps the first part", async () => {
    const { exited } = await runShell(backend, workspace, "head -c 300000 /dev/zero", { limits: { outputBytes: 1000 } })
    expect(exited.stdout).toMatchObject({ truncated: true, total: 300_000 })
    expect(exited.stdout.bytes.length).toBe(1000)
  })
  test("stops a flood", async () => {
    const { exited } = await runShell(backend, workspace, "exec cat /dev/zero", { limits: { outputBytes: 1000 } })
    expect(exited.ending).toEqual({ by: "limit", limit: "output" })
  })
  test("gives a terminal when one is asked for", async () => {
    const { stdout } = await runPython(
      backend,
      workspace,
      "import sys,os; print(sys.stdin.isatty(), sys.stdout.isatty(), os.get_terminal_size().columns)",
      { tty: true },
    )
    expect(stdout).toBe("True True 80\n")
  })
})

describe("what the tool sees", () => {
  test("only what the read patterns cover, minus what is denied", async () => {
    mkdirSync(join(workspace, "secret/deep"), { recursive: true })
    writeFileSync(join(workspace, "secret/deep/key"), "k")
    writeFileSync(join(workspace, "docs/private.txt"), "p")
    writeFileSync(join(workspace, ".env"), "TOKEN=1")
    const { stdout } = await runShell(
      backend,
      workspace,
      "cat docs/b.txt; cat docs/private.txt a.txt .env secret/deep/key; ls secret",
      { view: { read: ["docs/**"], deny: ["docs/private.txt"] }, write: [] },
    )
    expect(stdout).toBe("two\n")
  })
  test("what it may read beside a place where it may make something", async () => {
    writeFileSync(join(workspace, "docs/a.md"), "to be read")
    const { stdout } = await runShell(backend, workspace, "cat docs/a.md; cat docs/b.txt a.txt; echo x > made", {
      view: { read: ["docs/*.md"], deny: [] },
      write: ["made"],
    })
    expect(stdout).toBe("to be read")
  })
  test.each([
    ["that it is shown in part", ""],
    ["that it writes beside", "made"],
  ])("never what a folder %s was swapped for while its view was made", (_what, write) => {
    const base = temporaryFolder("swapped")
    const fixture = fileURLToPath(new URL("fixtures/swapped-view.ts", import.meta.url))
    const { stdout, stderr } = spawnSync(
      "/usr/bin/unshare",
      ["--user", "--map-root-user", "--mount", process.execPath, "--no-warnings", fixture, base, write],
      { encoding: "utf8" },
    )
    expect(stderr).toBe("")
    expect(JSON.parse(stdout)).toEqual({ ending: "ELOOP", shown: [], outside: ["of the host", "of the host"] })
    removeFolder(base)
  })
  test("everything but a denied tree at any depth", async () => {
    mkdirSync(join(workspace, "x/.git/hooks"), { recursive: true })
    writeFileSync(join(workspace, "x/.git/config"), "secret")
    const { stdout } = await runShell(backend, workspace, "cat a.txt; cat x/.git/config; ls x/.git", {
      view: { read: ["**"], deny: ["**/.git/**", "**/.git"] },
    })
    expect(stdout).toBe("one\n")
  })
  test("nothing where nothing is granted", async () => {
    const { stdout, exited } = await runShell(backend, workspace, "ls -A; echo x > y", {
      view: { read: [], deny: [] },
      write: [],
    })
    expect(stdout).toBe("")
    expect(exited.writes.effects).toEqual([])
  })
  test("a symlink out of the workspace leads nowhere", async () => {
    symlinkSync("/etc/shadow", join(workspace, "shadow"))
    symlinkSync("/root", join(workspace, "root"))
    const { stdout } = await runShell(backend, workspace, "cat shadow; ls root/; echo end")
    expect(stdout).toBe("end\n")
  })
  test("a home of its own that is kept only where declared", async () => {
    const home = temporaryFolder("home")
    const keep = { home: { dir: home, keep: [".config/tool/**"] } }
    const first = await runShell(
      backend,
      workspace,
      "mkdir -p ~/.config/tool; echo state > ~/.config/tool/s; echo x > ~/.bashrc",
      keep,
    )
    expect(first.exited.writes.effects).toEqual([])
    expect(first.exited.home?.effects.map(({ path }) => path)).toContain(".config/tool/s")
    expect(first.exited.home?.effects.map(({ path }) => path)).not.toContain(".bashrc")
    expect(await first.exited.keepHome()).toEqual({ ok: true })
    await first.exited.discard()
    const second = await runShell(backend, workspace, "cat ~/.config/tool/s; ls -A ~", keep)
    expect(second.stdout).toBe("state\n.config\n")
    await second.exited.discard()
    removeFolder(home)
  })
  test("files that the host places", async () => {
    const { stdout } = await runShell(backend, workspace, "cat /run/caisson/ca.pem; echo x > /run/caisson/ca.pem", {
      files: { "/run/caisson/ca.pem": Buffer.from("pem\n") },
    })
    expect(stdout).toBe("pem\n")
  })
})

describe("the channel", () => {
  test("is served from outside and is the only thing that answers", async () => {
    const sandbox = await prepared(backend, {
      program: "/usr/bin/python3",
      network: { proxyPort: 3128, transparentPorts: [5432], dns: true },
    })
    if (sandbox.channel === "none") throw new Error("no channel")
    const { proxy, transparent, dnsUdp } = sandbox.channel
    const seen: string[] = []
    proxy.on("connection", (socket) => socket.end(`proxy ${socket.localPort}`))
    transparent.get(5432)?.on("connection", (socket) => {
      seen.push(`${socket.localAddress}:${socket.localPort}`)
      socket.end("transparent")
    })
    dnsUdp?.on("message", (_, from) => dnsUdp.send("answer", from.port, from.address))
    const source = `
import socket
def dial(address, port):
    try:
        s = socket.create_connection((address, port), 5); return s.recv(100).decode()
    except OSError as e: return type(e).__name__
print(dial("127.0.0.1", 3128)); print(dial("198.18.7.7", 5432)); print(dial("93.184.216.34", 5432)); print(dial("198.18.7.7", 80)); print(dial("10.0.0.1", 22))
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.settimeout(5); u.sendto(b"q", ("127.0.0.1", 53)); print(u.recv(100).decode())
`
    const { stdout, exited } = await finish(sandbox, { argv: ["/usr/bin/python3", "-c", source], workspace })
    expect(stdout.split("\n").slice(0, 6)).toEqual([
      "proxy 3128",
      "transparent",
      "transparent",
      "ConnectionRefusedError",
      "ConnectionRefusedError",
      "answer",
    ])
    expect(seen).toEqual(["198.18.7.7:5432", "93.184.216.34:5432"])
    expect(exited.denied).toEqual([
      { layer: "egress", reason: "address_not_allowed", target: "198.18.7.7:80", count: 1 },
      { layer: "egress", reason: "address_not_allowed", target: "10.0.0.1:22", count: 1 },
    ])
  })
  test("does not exist without a network, and names what was looked up", async () => {
    const { exited, stdout } = await runPython(
      backend,
      workspace,
      "import socket\ntry: socket.getaddrinfo('exfil.evil.test', 443)\nexcept OSError as e: print(type(e).__name__)",
    )
    expect(stdout).toBe("gaierror\n")
    expect(exited.denied.map(({ target, reason }) => [target, reason])).toContainEqual([
      "exfil.evil.test",
      "host_not_allowed",
    ])
  })
})

describe("when something dies", () => {
  test("a killed launcher ends its calls as infrastructure, and the next call works", async () => {
    const ownData = temporaryFolder("own")
    const own = createNamespaceBackend({ data: ownData })
    await own.start()
    const sandbox = await prepared(own)
    const running = sandbox.run({ argv: ["/usr/bin/sh", "-c", "sleep 600"], workspace })
    const launcher = descendants(process.pid).find(({ pid }) =>
      readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(ownData),
    )
    process.kill(launcher?.pid as number, "SIGKILL")
    // Killed before it was asked, or over it.
    const told = /the sandbox launcher was ended from outside/
    expect(await running).toMatchObject({ ending: { by: "infrastructure", message: expect.stringMatching(told) } })
    const again = await runShell(own, workspace, "echo back")
    expect(again.stdout).toBe("back\n")
    await again.exited.discard()
    await own[Symbol.asyncDispose]()
    removeFolder(ownData)
  })
  test("kill -9 of the host leaves no process, no mount and no file", async () => {
    const was = fingerprint(workspace)
    const program = fileURLToPath(new URL("./fixtures/host-with-calls.ts", import.meta.url))
    const host = spawn(process.execPath, [program, data, workspace], { stdio: ["ignore", "pipe", "inherit"] })
    await once(host.stdout, "data")
    const sleeping = () => descendants(host.pid as number).filter(({ pid }) => commandOf(pid).startsWith("sleep\0"))
    await until(() => sleeping().length === 6, "two programs of each of the three calls are running")
    const ours = descendants(host.pid as number)
    host.kill("SIGKILL")
    await once(host, "exit")
    await until(() => stillAlive(ours).length === 0, "every process of the killed host is gone")
    expect(strayMounts(data, workspace)).toEqual([])
    expect(fingerprint(workspace)).toBe(was)
    // What the next host does as it starts.
    await sweepLayers(join(data, "layers"))
    const left = readdirSync(join(data, "layers")).filter((name) => !name.startsWith(`${process.pid}-`))
    expect(left).toEqual([])
  })
})

test("the host's own sockets are not reachable through the channel's port numbers", async () => {
  const { createServer } = await import("node:net")
  const server = createServer((socket) => socket.end("host"))
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  const probe = connect(port, "127.0.0.1")
  await once(probe, "data")
  const { stdout } = await runPython(
    backend,
    workspace,
    `import socket\ntry: socket.create_connection(("127.0.0.1", ${port}), 3); print("reached")\nexcept OSError: print("refused")`,
  )
  expect(stdout).toBe("refused\n")
  server.close()
})
