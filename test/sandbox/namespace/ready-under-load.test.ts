import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, beforeEach, expect, test } from "vitest"
import type { SandboxBackend } from "../../../src/sandbox/backend.ts"
import { createNamespaceBackend } from "../../../src/sandbox/namespace/backend.ts"
import { jobOf } from "../../../src/sandbox/profile.ts"
import { describeNeeding, noRoot } from "../../support/needing.ts"
import {
  descendants,
  finish,
  prepared,
  removeFolder,
  runShell,
  stillAlive,
  temporaryFolder,
  until,
} from "../../support/sealed.ts"
import { oneIsReady, waiting, waitingOf } from "../../support/waiting.ts"

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

/** Says what it finds of others, then leaves its own mark wherever a program can. */
const plantAndLook = `
import ctypes, json, os, socket, subprocess, sys
mark = sys.argv[1]
libc = ctypes.CDLL(None)
places = ["/tmp", "/dev/shm", os.environ.get("HOME", "/tmp"), "/workspace", "/run/caisson"]
def commands():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try: yield open("/proc/%s/cmdline" % pid).read().replace("\\0", " ").strip()
        except OSError: pass
def listeners(): return [line.split()[1] for line in open("/proc/net/tcp").read().splitlines()[1:]]
found = {
  "files": [name for at in places for name in sorted(os.listdir(at))],
  "others": sorted(c for c in commands() if "planted" in c and mark not in c),
  "shared": open("/proc/sysvipc/shm").read().count("\\n") - 1,
  "listeners": listeners(),
  "env": sorted(os.environ),
  "mounts": sorted(line.split()[4] for line in open("/proc/self/mountinfo")),
}
for at in places[:4]: open(at + "/planted-" + mark, "w").write(mark)
libc.shmget(0x5ea1, 4096, 0o1666)
server = socket.socket(); server.bind(("127.0.0.1", 7777)); server.listen()
subprocess.Popen(["/usr/bin/python3", "-c", "import time; time.sleep(600)", "planted", mark], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(json.dumps(found))`

test("of what twelve calls at once plant wherever they can, no other one finds anything, time after time", async () => {
  const call = async (mark: string): Promise<unknown> => {
    const sandbox = await prepared(backend, { program: "/usr/bin/python3" })
    const ran = await finish(sandbox, { argv: ["/usr/bin/python3", "-c", plantAndLook, mark], workspace })
    await ran.exited.discard()
    expect(ran.stderr).toBe("")
    return JSON.parse(ran.stdout)
  }
  const clean = await call("first")
  expect(clean).toMatchObject({ files: [], others: [], shared: 0, listeners: [] })
  for (let round = 0; round < 3; round += 1) {
    await until(() => waiting().length > 0, "some wait for the next calls")
    const found = await Promise.all(Array.from({ length: 12 }, (_, n) => call(`${round}-${n}`)))
    for (const one of found) expect(one).toEqual(clean)
  }
  expect(readdirSync(workspace)).toEqual([])
})

test("a call that goes on keeps no other one from being made ready", async () => {
  const sandbox = await prepared(backend)
  const job = jobOf(sandbox.profile, { argv: ["/usr/bin/sh", "-c", "echo up; read line"], workspace })
  const long = await sandbox.start(job, new AbortController().signal)
  if (!long.ok) throw new Error(long.message)
  long.stdout.resume()
  for (let calls = 0; calls < 3; calls += 1) {
    await oneIsReady(backend)
    const there = descendants(process.pid).filter(({ pid }) => waiting().includes(pid))
    await (await runShell(backend, workspace, "true")).exited.discard()
    await until(() => stillAlive(there).length < there.length, "one of those that waited was used")
  }
  long.stdin.end("\n")
  const exited = await long.exited
  if (!exited.ok) throw new Error(exited.message)
  expect(exited.ending).toEqual({ by: "exit", code: 0 })
  await exited.discard()
})

test("a driver's folder that another one took the place of is shown to the next call, whatever was ready", async () => {
  const bundle = join(workspace, "bundle")
  const folder = join(workspace, "folder")
  mkdirSync(folder)
  const put = (text: string): void => {
    mkdirSync(bundle)
    writeFileSync(join(bundle, "text"), text)
  }
  const read = async (): Promise<string> => {
    const sandbox = await prepared(backend, { program: "/usr/bin/cat", bundles: { [bundle]: "/opt/bundle" } })
    const ran = await finish(sandbox, { argv: ["/usr/bin/cat", "/opt/bundle/text"], workspace: folder })
    await ran.exited.discard()
    return ran.stdout
  }
  put("old")
  expect(await read()).toBe("old")
  await until(() => waiting().length > 0, "one waits with the old folder")
  renameSync(bundle, join(workspace, "before"))
  put("new")
  expect(await read()).toBe("new")
})

test("kill -9 of a host leaves none of those that wait, and nothing of them", async () => {
  const program = fileURLToPath(new URL("./fixtures/host-with-ready.ts", import.meta.url))
  const own = temporaryFolder("killed")
  const host: ChildProcess = spawn(process.execPath, ["--no-warnings", program, own, workspace], {
    stdio: ["ignore", "pipe", "inherit"],
  })
  await once(host.stdout as NodeJS.ReadableStream, "data")
  await until(() => waitingOf(host.pid ?? 0).length > 0, "some wait")
  const all = descendants(host.pid ?? 0)
  host.kill("SIGKILL")
  await once(host, "exit")
  await until(() => stillAlive(all).length === 0, "no process is left")
  expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(own)
  const next = createNamespaceBackend({ data: own })
  await next.start()
  await until(() => readdirSync(join(own, "layers")).length === 1, "the next host has removed what it left on disk")
  await next[Symbol.asyncDispose]()
  removeFolder(own)
})

describeNeeding("what those that wait hold", noRoot, () => {
  test("no word of a call that was: neither its secret, its arguments nor its workspace", async () => {
    const secret = `s3cret-${process.pid}-${Date.now()}`
    const marked = join(workspace, `place-${secret}`)
    mkdirSync(marked)
    const script = `import os, sys; print(os.environ["TOKEN"], sys.argv)`
    for (let calls = 0; calls < 2; calls += 1) {
      const sandbox = await prepared(backend, { program: "/usr/bin/python3", env: { TOKEN: secret } })
      const ran = await finish(sandbox, { argv: ["/usr/bin/python3", "-c", script, secret], workspace: marked })
      expect(ran.stdout).toContain(secret)
      await ran.exited.discard()
    }
    await until(() => waiting().length > 0, "one waits")
    for (const pid of waiting()) {
      const at = `/proc/${pid}`
      for (const file of ["environ", "cmdline", "mountinfo"])
        expect(readFileSync(`${at}/${file}`, "latin1"), file).not.toContain(secret)
      expect(readdirSync(`${at}/root/workspace`).filter((name) => name !== "terminal")).toEqual([])
      for (const place of ["tmp", "dev/shm", "home/tool", "run/caisson"])
        expect(readdirSync(`${at}/root/${place}`), place).toEqual([])
    }
  })
})
