import { afterEach, beforeEach, describe, expect, test } from "vitest"
import type { SandboxBackend, SandboxShape } from "../../../src/sandbox/backend.ts"
import { createNamespaceBackend } from "../../../src/sandbox/namespace/backend.ts"
import { READY } from "../../../src/sandbox/namespace/launcher/limits.ts"
import { ReadySandboxes } from "../../../src/sandbox/namespace/launcher/ready-sandboxes.ts"
import type { WaitingSandbox } from "../../../src/sandbox/namespace/launcher/waiting-sandbox.ts"
import { jobOf, shapeOf } from "../../../src/sandbox/profile.ts"
import {
  commandOf,
  descendants,
  prepared,
  profileOf,
  removeFolder,
  runPython,
  runShell,
  stillAlive,
  temporaryFolder,
  until,
} from "../../support/sealed.ts"
import { oneIsReady, waiting } from "../../support/waiting.ts"

const shape = shapeOf(profileOf({}))
const otherShape = shapeOf(profileOf({ limits: { pids: 7 } }))

describe("which sandboxes are kept ready", () => {
  interface Made {
    readonly shape: SandboxShape
    readonly root: string
  }
  let clock = 0
  let fails = false
  let made: Made[] = []
  let dropped: unknown[] = []
  let ready: ReadySandboxes
  beforeEach(() => {
    clock = 1_000_000
    fails = false
    made = []
    dropped = []
    ready = new ReadySandboxes({
      now: () => clock,
      drop: (sandbox) => dropped.push(sandbox),
      make: async (wanted, root, begun) => {
        asked.push(begun)
        if (begun && failsBegun) throw new Error("it did not wait")
        if (fails) throw new Error("no room")
        const waits = { spoiled: () => (spoilt.has(one) ? "it looked at a file" : undefined) }
        const one = {
          shape: wanted,
          root,
          alive: () => !dead.has(one),
          ...(begun ? { begun: waits } : {}),
        }
        made.push(one)
        return one as unknown as WaitingSandbox
      },
    })
  })
  const dead = new Set<unknown>()
  const spoilt = new Set<unknown>()
  const asked: boolean[] = []
  let failsBegun = false
  const waits = { argv: ["/usr/bin/node"], env: {}, files: {}, edition: "1", limits: { diskBytes: 1 } }
  const own = { ...shape, waits }
  const filled = async (): Promise<void> => {
    ready.refill()
    for (let turn = 0; turn < 50; turn += 1) await Promise.resolve()
  }
  const use = async (times: number, of = shape, root = "/r"): Promise<void> => {
    for (let n = 0; n < times; n += 1) ready.used(of, root)
    await filled()
  }

  test("none before a call ran in one of its shape", async () => {
    await filled()
    expect(made).toEqual([])
    expect(ready.take(shape, "/r")).toBeUndefined()
  })
  test("each is given out once, and only for its shape and its view of the root", async () => {
    clock += READY.coverMs
    await use(1)
    clock += READY.coverMs + 1
    expect(ready.take(otherShape, "/r")).toBeUndefined()
    expect(ready.take(shape, "/another")).toBeUndefined()
    const given = [ready.take(shape, "/r"), ready.take(shape, "/r"), ready.take(shape, "/r")]
    const there = given.filter((sandbox) => sandbox !== undefined)
    expect(new Set(there).size).toBe(there.length)
    expect(there).toHaveLength(made.length)
  })
  test("as many as calls of late would have used, and one more, within what a shape may have", async () => {
    await use(1)
    expect(made).toHaveLength(2)
    await use(20)
    expect(made).toHaveLength(READY.perShape)
  })
  test("never more in all than the budget: the shape that was not asked for the longest gives way", async () => {
    const others = (n: number): SandboxShape => ({ ...shape, limits: { ...shape.limits, pids: 100 + n } })
    for (let n = 0; n < READY.total + 3; n += 1) await use(1, others(n))
    expect(made.length - dropped.length).toBe(READY.total)
    expect(dropped[0]).toBe(made[0])
  })
  test("those that show programs that were replaced meanwhile go at once", async () => {
    await use(1, shape, "/old")
    const old = [...made]
    await use(1, otherShape, "/old")
    expect(dropped).toEqual([])
    await use(1, shape, "/new")
    expect(dropped).toEqual(old)
    expect(ready.take(shape, "/old")).toBeUndefined()
    expect(ready.take(otherShape, "/old")).toBeDefined()
  })
  test("one that died while it waited is not given out", async () => {
    await use(1)
    for (const one of made) dead.add(one)
    expect(ready.take(shape, "/r")).toBeUndefined()
    expect(dropped).toEqual(made)
  })
  test("one that cannot be made fails nothing, and is tried again at the next time", async () => {
    fails = true
    await use(1)
    expect(ready.take(shape, "/r")).toBeUndefined()
    fails = false
    await filled()
    expect(ready.take(shape, "/r")).toBeDefined()
  })
  test("one with its program begun counts for more, and never more than the budget is there", async () => {
    const others = (n: number): SandboxShape => ({ ...own, limits: { ...own.limits, pids: 100 + n } })
    for (let n = 0; n < 4; n += 1) await use(1, others(n))
    expect((made.length - dropped.length) * READY.begunCounts).toBe(READY.total)
    await use(1)
    expect(made.length - dropped.length).toBeLessThanOrEqual(READY.total / READY.begunCounts + 1)
  })
  test.each(["looked at what a call brings", "is gone"])(
    "one that %s is given to nobody, and none is begun again",
    async (how) => {
      asked.splice(0)
      await use(1, own)
      expect(asked).toEqual([true, true])
      for (const one of made) (how === "is gone" ? dead : spoilt).add(one)
      expect(ready.take(own, "/r")).toBeUndefined()
      expect(dropped).toEqual(made)
      await use(1, own)
      expect(asked.slice(2)).toEqual(asked.slice(2).map(() => false))
      expect(ready.take(own, "/r")).toBeDefined()
    },
  )
  test("a program that does not wait is started with its job from then on", async () => {
    asked.splice(0)
    failsBegun = true
    await use(1, own)
    failsBegun = false
    await use(1, own)
    expect(asked[0]).toBe(true)
    expect(asked.slice(1)).not.toContain(true)
  })
  test("a shape that nobody asked for goes", async () => {
    await use(1)
    clock += READY.idleMs + 1
    ready.expire()
    expect(dropped).toEqual(made)
    expect(ready.take(shape, "/r")).toBeUndefined()
  })
})

describe("sandboxes that wait with the process already inside", () => {
  let data = ""
  let workspace = ""
  let backend: SandboxBackend & { start(): Promise<void> }
  beforeEach(async () => {
    data = temporaryFolder("data")
    workspace = temporaryFolder("workspace")
    backend = createNamespaceBackend({ data })
    await backend.start()
  })
  afterEach(async () => {
    await backend[Symbol.asyncDispose]()
    for (const folder of [data, workspace]) removeFolder(folder)
  })
  test("a call is run by a process that was there before it, and that becomes its program", async () => {
    await (await runShell(backend, workspace, "true")).exited.discard()
    for (let calls = 0; calls < 3; calls += 1) {
      await oneIsReady(backend)
      const there = descendants(process.pid).filter(({ pid }) => waiting().includes(pid))
      const script = "echo up; read line; echo $line"
      await using sandbox = await prepared(backend)
      const job = jobOf(sandbox.profile, { argv: ["/usr/bin/sh", "-c", script], workspace })
      const running = await sandbox.start(job, new AbortController().signal)
      if (!running.ok) throw new Error(running.message)
      let said = ""
      running.stdout.setEncoding("utf8").on("data", (text: string) => (said += text))
      await until(() => said === "up\n", "the program runs")
      const became = stillAlive(there).filter(({ pid }) => commandOf(pid) === `/usr/bin/sh\0-c\0${script}\0`)
      expect(became).toHaveLength(1)
      running.stdin.end("ran\n")
      const exited = await running.exited
      if (!exited.ok) throw new Error(exited.message)
      expect(exited.ending).toEqual({ by: "exit", code: 0 })
      await exited.discard()
      expect(said).toBe("up\nran\n")
    }
  })

  test("whatever a call leaves everywhere it can write, no later call finds, though each was made before", async () => {
    const plant = [
      "for at in /tmp /dev/shm $HOME /workspace; do echo planted > $at/planted-$$ || exit 9; done",
      "mkdir -p /tmp/deep/deeper; ln -s /tmp/deep /dev/shm/link; (sleep 600 &) >/dev/null 2>&1",
    ].join("; ")
    const look = "ls -A /tmp /dev/shm $HOME /workspace /run/caisson; ls /proc | grep -c '^[0-9]'"
    const clean = (await runShell(backend, workspace, look)).stdout
    for (let round = 0; round < 6; round += 1) {
      await until(() => waiting().length > 0, "the next one waits")
      const planted = await runShell(backend, workspace, plant)
      expect(planted.exited.ending).toEqual({ by: "exit", code: 0 })
      await planted.exited.discard()
      await until(() => waiting().length > 0, "the next one waits")
      const looked = await runShell(backend, workspace, look)
      expect(looked.stdout).toBe(clean)
      await looked.exited.discard()
    }
  })

  test("variables that no shell could pass arrive as they are, and no other beside them", async () => {
    const env = { PATH: "/usr/bin:/bin", LANG: "C.UTF-8", "odd.name-1": "x", EMPTY: "", LINES: "a\nb='\"$(id)`" }
    const print = "import json, os; print(json.dumps(dict(os.environ)))"
    const { stdout, exited } = await runPython(backend, workspace, print, { env })
    expect(JSON.parse(stdout)).toEqual({ ...env, PWD: "/workspace" })
    await exited.discard()
  })

  test("those that wait go with the launcher", async () => {
    await (await runShell(backend, workspace, "true")).exited.discard()
    await until(() => waiting().length > 0, "one waits")
    await backend[Symbol.asyncDispose]()
    await until(() => waiting().length === 0, "none is left")
  })
})
