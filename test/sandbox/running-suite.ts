/** What a program that runs while you watch is held to, on any backend. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { createInterface } from "node:readline"
import type { Readable } from "node:stream"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import { expect, test } from "vitest"
import type { Ending, Job, RunningSandbox, SandboxBackend } from "../../src/sandbox/backend.ts"
import { jobOf, shapeOf } from "../../src/sandbox/profile.ts"
import { testNeeding } from "../support/needing.ts"
import { patience } from "../support/patience.ts"
import { commandOf, type ProfileOverrides, profileOf, until } from "../support/sealed.ts"

/** What Linux gives a pipe, and what a stream of Node's takes in one go. */
const pipeBytes = 64 * 1024
const chunkBytes = 64 * 1024

export interface Ground {
  readonly backend: () => SandboxBackend
  /** a folder for workspaces */
  readonly folder: () => string
  /** arguments of `fixtures/talking-host.ts` for this backend */
  readonly host: () => readonly string[]
  /** after a host was killed: what it left is gone, or goes with the next host's start */
  readonly swept?: () => Promise<void>
}

interface Begun {
  readonly running: RunningSandbox
  readonly workspace: string
  readonly cancel: AbortController
}
interface Wanted extends ProfileOverrides {
  readonly stdio?: Job["stdio"]
  readonly privatePipes?: boolean
}

const python = "/usr/bin/python3"

/** A program's output as it comes, and the wait for a part of it. */
const screenOf = (output: Readable): { readonly shows: (part: RegExp) => Promise<string> } => {
  let shown = ""
  let ended = false
  output.setEncoding("utf8").on("data", (part: string) => {
    shown += part
  })
  output.once("close", () => {
    ended = true
  })
  return {
    async shows(part) {
      await until(() => part.test(shown) || ended, `${part} on the screen`)
      expect(shown).toMatch(part)
      const found = shown
      shown = ""
      return found
    },
  }
}

export const runningSuite = (ground: Ground): void => {
  const begin = async (
    argv: readonly string[],
    { stdio, privatePipes = false, ...overrides }: Wanted = {},
  ): Promise<Begun> => {
    const profile = profileOf({ program: argv[0] as string, ...overrides })
    const prepared = await ground.backend().prepare({ ...shapeOf(profile), privatePipes })
    if (!prepared.ok) throw new Error(prepared.message)
    const workspace = realpathSync(mkdtempSync(join(ground.folder(), "ws-")))
    const cancel = new AbortController()
    const job = jobOf(profile, { argv, workspace, ...(stdio === undefined ? {} : { stdio }) })
    const running = await prepared.start(job, cancel.signal)
    if (!running.ok) throw new Error(running.message)
    return { running, workspace, cancel }
  }
  const endOf = async (running: RunningSandbox): Promise<Ending> => {
    const exited = await running.exited
    if (!exited.ok) throw new Error(exited.message)
    await exited.discard()
    return exited.ending
  }
  const echo =
    "import sys\nfor line in sys.stdin: print('you said', line, end='', flush=True)\nopen('heard', 'w').write('all')"

  test("a program answers line by line over a long conversation, and its effects are there at the end", async () => {
    const { running, workspace } = await begin([python, "-c", echo])
    running.stderr.resume()
    const lines = createInterface({ input: running.stdout })[Symbol.asyncIterator]()
    for (let turn = 0; turn < 500; turn += 1) {
      running.stdin.write(`${turn} ${"x".repeat(turn)}\n`)
      expect(await lines.next()).toEqual({ done: false, value: `you said ${turn} ${"x".repeat(turn)}` })
    }
    running.stdin.end()
    const exited = await running.exited
    expect(exited).toMatchObject({
      ok: true,
      ending: { by: "exit", code: 0 },
      writes: { effects: [{ path: "heard" }] },
    })
    if (exited.ok) expect(await exited.commit()).toEqual({ ok: true })
    expect(readFileSync(join(workspace, "heard"), "utf8")).toBe("all")
    expect((await lines.next()).done).toBe(true)
  })

  test("a glance at a running program tells whether it wrote to the workspace, and where it was stopped", async () => {
    const act = `
import os, socket, sys
for line in sys.stdin:
    if line == "scratch\\n": open("/tmp/mine", "w").write("x"); open(os.path.expanduser("~/mine"), "w").write("x")
    if line == "dial\\n":
        try: socket.create_connection(("192.0.2.7", 81), 5)
        except OSError: pass
    if line == "write\\n": os.makedirs("made")
    print("did", line, end="", flush=True)`
    const { running } = await begin([python, "-c", act])
    running.stderr.resume()
    const screen = screenOf(running.stdout)
    const after = async (what: string): Promise<unknown> => {
      running.stdin.write(`${what}\n`)
      await screen.shows(new RegExp(`did ${what}`))
      return running.glance()
    }
    expect(await after("nothing")).toEqual({ written: false, denied: [] })
    expect(await after("scratch")).toEqual({ written: false, denied: [] })
    const stopped = { layer: "egress", reason: "address_not_allowed", target: "192.0.2.7:81" }
    expect(await after("dial")).toMatchObject({ written: false, denied: [stopped] })
    expect(await after("write")).toMatchObject({ written: true, denied: [stopped] })
    running.stdin.end()
    const exited = await running.exited
    expect(exited).toMatchObject({ ok: true, denied: [stopped], writes: { effects: [{ path: "made" }] } })
    await expect(running.glance()).rejects.toThrow("over")
    if (exited.ok) await exited.discard()
  })

  test("what a program listens with on its loopback is reached from outside by asking for it, and by nobody else", async () => {
    const serve = `
import socket
one = socket.create_server(("127.0.0.1", 0))
print(one.getsockname()[1], flush=True)
while True:
    peer, _ = one.accept()
    peer.sendall(b"you said " + peer.recv(100))
    peer.close()`
    const { running } = await begin([python, "-c", serve], {
      network: { proxyPort: 3128, transparentPorts: [8443], dns: true },
    })
    running.stderr.resume()
    const [line = ""] = await once(createInterface({ input: running.stdout }), "line").then(
      (lines) => lines as string[],
    )
    const port = Number(line)
    const direct = connect({ host: "127.0.0.1", port })
    await expect(once(direct, "connect")).rejects.toThrow("ECONNREFUSED")
    for (const said of ["hello", "again"]) {
      const connection = await running.reach(port)
      connection?.write(said)
      expect(connection === undefined ? undefined : await text(connection)).toBe(`you said ${said}`)
    }
    // Nobody listens there; these are the host's own; those are no ports of a program's.
    const unused = port === 65_535 ? 65_534 : port + 1
    for (const other of [unused, 3128, 8443, 53, 80, 0, -1, 1.5, 65_536, 65_536 + port])
      expect([other, await running.reach(other)]).toEqual([other, undefined])
    running.stop({ by: "cancelled" })
    const exited = await running.exited
    expect(exited).toMatchObject({ ok: true, denied: [] })
    expect(await running.reach(port)).toBeUndefined()
    if (exited.ok) await exited.discard()
  })

  test("a conversation ends at its deadline, and its streams with it", async () => {
    const { running } = await begin([python, "-c", echo], { limits: { wallMs: Math.max(4000, 500 * patience) } })
    running.stdin.write("hello\n")
    const [said, complained] = [text(running.stdout), text(running.stderr)]
    expect(await endOf(running)).toEqual({ by: "limit", limit: "wall" })
    expect(await Promise.all([said, complained])).toEqual(["you said hello\n", ""])
  })

  test("what nobody reads costs the size of a pipe: the program waits", async () => {
    const fill = `
import fcntl, os
fcntl.fcntl(1, fcntl.F_SETFL, os.O_NONBLOCK)
written = 0
try:
    while True: written += os.write(1, b'x' * 4096)
except BlockingIOError: pass
os.write(2, b'%d' % written)`
    const { running } = await begin([python, "-c", fill])
    const written = Number(await text(running.stderr))
    expect(written).toBeGreaterThan(0)
    expect(written).toBeLessThanOrEqual(pipeBytes)
    expect(await endOf(running)).toEqual({ by: "exit", code: 0 })
    expect((await text(running.stdout)).length).toBe(written)
  })

  test("a slow reader holds no more than a chunk or two, and gets all of it", async () => {
    const total = 16 * 1024 * 1024
    const { running } = await begin([
      python,
      "-c",
      `import os\nfor _ in range(${total / 65536}): os.write(1, b'y' * 65536)`,
    ])
    running.stderr.resume()
    let seen = 0
    let most = 0
    running.stdout.on("data", (chunk: Buffer) => {
      seen += chunk.length
      running.stdout.pause()
      setImmediate(() => {
        most = Math.max(most, running.stdout.readableLength)
        running.stdout.resume()
      })
    })
    await once(running.stdout, "end")
    expect(seen).toBe(total)
    expect(most).toBeLessThanOrEqual(2 * chunkBytes)
    expect(await endOf(running)).toEqual({ by: "exit", code: 0 })
  })

  test("output that was printed before the end is there after it, whoever settled the layer", async () => {
    const { running } = await begin([python, "-c", "print('x' * 20000)"])
    expect(await endOf(running)).toEqual({ by: "exit", code: 0 })
    expect((await text(running.stdout)).length).toBe(20_001)
  })

  test("cancelled in the middle, it ends at once with all that it started", async () => {
    const mark = `spoken-${process.pid}-${Date.now()}`
    const talk = `import subprocess, sys\nsubprocess.Popen(['/usr/bin/sleep', '600', '${mark}'][:2], start_new_session=True)\nprint('there', '${mark}', flush=True)\nfor line in sys.stdin: print(line)`
    const { running, cancel } = await begin([python, "-c", talk])
    const screen = screenOf(running.stdout)
    await screen.shows(/there/)
    const marked = (): string[] =>
      readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && commandOf(Number(pid)).includes(mark))
    expect(marked()).not.toEqual([])
    cancel.abort()
    expect(await endOf(running)).toEqual({ by: "cancelled" })
    expect(marked()).toEqual([])
  })

  test("it is stopped with a reason, and the first one counts", async () => {
    const { running } = await begin([python, "-c", echo])
    running.stop({ by: "limit", limit: "output" })
    running.stop({ by: "cancelled" })
    expect(await endOf(running)).toEqual({ by: "limit", limit: "output" })
  })

  test("disposed of while it runs, it is gone and nothing of it is kept", async () => {
    const { running, workspace } = await begin([
      python,
      "-c",
      "open('made', 'w').close()\nprint('made', flush=True)\nimport time\ntime.sleep(600)",
    ])
    await screenOf(running.stdout).shows(/made/)
    await running[Symbol.asyncDispose]()
    expect(await running.exited).toMatchObject({ ok: true, ending: { by: "cancelled" } })
    expect(readdirSync(workspace)).toEqual([])
  })

  test("a signal reaches a program whose first thread ended, and none that it left behind", async () => {
    const headless = `
import ctypes, os, signal, threading, time
if os.fork() == 0:
    if os.fork() == 0:
        signal.sigwait({signal.SIGTERM})
    os._exit(0)
os.wait()
def stay():
    while open('/proc/self/stat').read().split()[2] != 'Z': time.sleep(0.001)
    os.write(1, b'headless')
    while True: signal.pause()
threading.Thread(target=stay).start()
ctypes.CDLL(None).pthread_exit(None)`
    const { running } = await begin([python, "-c", headless])
    await screenOf(running.stdout).shows(/headless/)
    running.signal("SIGTERM")
    expect(await endOf(running)).toEqual({ by: "signal", signal: "SIGTERM" })
  })

  test("a signal reaches the program's first process, however early it is sent", async () => {
    const trap = `
import os, signal
both = {signal.SIGUSR1, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, both)
os.write(1, b'ready')
while signal.sigwait(both) != signal.SIGTERM: os.write(1, b'usr1')
os._exit(9)`
    const { running } = await begin([python, "-c", trap])
    const screen = screenOf(running.stdout)
    await screen.shows(/ready/)
    running.signal("SIGUSR1")
    await screen.shows(/usr1/)
    running.signal("SIGTERM")
    expect(await endOf(running)).toEqual({ by: "exit", code: 9 })
    const early = await begin([python, "-c", "import time; time.sleep(600)"])
    early.running.signal("SIGKILL")
    expect(await endOf(early.running)).toEqual({ by: "signal", signal: "SIGKILL" })
  })

  test("a runner's private pipes are descriptors 3 and 4, and nobody has them who did not ask", async () => {
    const relay =
      "import os\nwith open(3) as to, open(4, 'w') as back:\n for line in to: back.write(line.upper()); back.flush()"
    const { running } = await begin([python, "-c", relay], { privatePipes: true })
    if (running.pipes === undefined) throw new Error("no pipes")
    const screen = screenOf(running.pipes.fromTool)
    running.pipes.toTool.write("hello\n")
    await screen.shows(/HELLO\n/)
    running.pipes.toTool.end("bye\n")
    await screen.shows(/BYE\n/)
    expect(await endOf(running)).toEqual({ by: "exit", code: 0 })
    const alone = await begin([python, "-c", "import os\nprint(sorted(os.listdir('/proc/self/fd')))"])
    expect(alone.running.pipes).toBeUndefined()
    // The listing itself is open while it is read.
    expect(await text(alone.running.stdout)).toBe("['0', '1', '2', '3']\n")
    expect(await endOf(alone.running)).toEqual({ by: "exit", code: 0 })
  })

  const terminal = { kind: "terminal", columns: 90, rows: 20, echo: true } as const
  const interactive = { tty: true, env: { PATH: "/usr/bin", HOME: "/home/tool", TERM: "xterm", LANG: "C.UTF-8" } }

  test("an interpreter is driven through its terminal: what is typed, its size, and Ctrl-C", async () => {
    const { running } = await begin([python, "-i", "-q"], { stdio: terminal, ...interactive })
    const screen = screenOf(running.stdout)
    await screen.shows(/>>> /)
    running.stdin.write("import os; os.get_terminal_size()\n")
    await screen.shows(/import os.*columns=90, lines=20/s)
    running.terminal?.resize(70, 33)
    running.stdin.write("os.get_terminal_size()\n")
    await screen.shows(/columns=70, lines=33/)
    running.stdin.write("print('asleep'); import time; time.sleep(600)\n")
    await screen.shows(/asleep\r\n/)
    running.stdin.write("\x03")
    await screen.shows(/KeyboardInterrupt.*>>> /s)
    running.stdin.write("exit(3)\n")
    expect(await endOf(running)).toEqual({ by: "exit", code: 3 })
  })

  test("a resize is told to the program that is in front, and a shell's job control works", async () => {
    const watch = "trap 'stty size' WINCH; echo ready; while read -r line; do echo \"got $line\"; done"
    const { running } = await begin(["/usr/bin/sh", "-c", watch], {
      stdio: terminal,
      ...interactive,
      spawn: { sh: "/usr/bin/sh", stty: "/usr/bin/stty" },
    })
    const screen = screenOf(running.stdout)
    await screen.shows(/ready/)
    running.terminal?.resize(101, 41)
    running.stdin.write("on\n")
    await screen.shows(/41 101/)
    running.stdin.end()
    expect(await endOf(running)).toMatchObject({ by: "exit" })
  })

  testNeeding(
    "top draws its screen again when that grows, and quits when told",
    existsSync("/usr/bin/top") ? undefined : "top is not there: apt-get install procps",
    async () => {
      const { running } = await begin(["/usr/bin/top", "-d", "1"], { stdio: terminal, ...interactive })
      const screen = screenOf(running.stdout)
      await screen.shows(/Tasks:/)
      running.terminal?.resize(120, 50)
      await screen.shows(/Tasks:/)
      running.stdin.write("q")
      expect(await endOf(running)).toEqual({ by: "exit", code: 0 })
    },
  )

  test("a terminal that nobody reads and a program that does not read cost bounded memory", async () => {
    const { running } = await begin([python, "-c", "import time; time.sleep(600)"], {
      stdio: { ...terminal, echo: false },
      ...interactive,
    })
    let waited = false
    for (let written = 0; written < 4 * 1024 * 1024 && !waited; written += 1024)
      waited = !running.stdin.write("k".repeat(1023) + "\n")
    expect(waited).toBe(true)
    expect(running.stdin.writableLength).toBeLessThanOrEqual(64 * 1024)
    running.stop({ by: "cancelled" })
    expect(await endOf(running)).toEqual({ by: "cancelled" })
  })

  test("a commit of thousands of files holds up no other call: one that is stopped meanwhile ends before it", async () => {
    const write =
      "import os\nfor n in range(4000):\n if n % 200 == 0: os.mkdir('d%d' % (n // 200))\n open('d%d/%d' % (n // 200, n), 'w').write('x')"
    const large = { limits: { diskBytes: 256 * 1024 * 1024 } }
    const { running, workspace } = await begin([python, "-c", write], large)
    const exited = await running.exited
    if (!exited.ok) throw new Error(exited.message)
    const other = await begin([python, "-c", echo])
    const screen = screenOf(other.running.stdout)
    other.running.stdin.write("there\n")
    await screen.shows(/you said there/)
    const order: string[] = []
    const committed = exited.commit().then((result) => {
      order.push("committed")
      return result
    })
    other.running.stop({ by: "cancelled" })
    expect(await endOf(other.running)).toEqual({ by: "cancelled" })
    order.push("stopped")
    expect(await committed).toEqual({ ok: true })
    expect(order).toEqual(["stopped", "committed"])
    expect(readdirSync(join(workspace, "d19")).length).toBe(200)
  })

  test("kill -9 of the host in the middle of a conversation leaves nothing of it", async () => {
    const mark = `talking-${process.pid}-${Date.now()}`
    const workspace = realpathSync(mkdtempSync(join(ground.folder(), "ws-")))
    const program = fileURLToPath(new URL("./fixtures/talking-host.ts", import.meta.url))
    const host = spawn(process.execPath, ["--no-warnings", program, mark, workspace, ...ground.host()], {
      stdio: ["ignore", "pipe", "inherit"],
    })
    await screenOf(host.stdout).shows(/answered/)
    const marked = (): string[] =>
      readdirSync("/proc").filter(
        (pid) => /^\d+$/.test(pid) && Number(pid) !== host.pid && commandOf(Number(pid)).includes(mark),
      )
    expect(marked()).not.toEqual([])
    host.kill("SIGKILL")
    await once(host, "exit")
    await until(() => marked().length === 0, "no process of the conversation is left")
    await ground.swept?.()
    expect(readdirSync(workspace)).toEqual([])
  })
}
