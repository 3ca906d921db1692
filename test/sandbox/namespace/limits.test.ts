import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest"
import { noRoot, testNeeding } from "../../support/needing.ts"
import { createNamespaceBackend } from "../../../src/sandbox/namespace/backend.ts"
import {
  commandOf,
  descendants,
  finish,
  groupsOf,
  prepared,
  removeFolder,
  temporaryFolder,
  until,
} from "../../support/sealed.ts"

const data = temporaryFolder("data")
const backend = createNamespaceBackend({ data })
let workspace = ""

beforeAll(() => backend.start())
beforeEach(() => {
  workspace = temporaryFolder("workspace")
})
afterEach(() => removeFolder(workspace))
afterAll(async () => {
  await backend[Symbol.asyncDispose]()
  removeFolder(data)
})

const python = async (source: string, limits: Parameters<typeof prepared>[1] = {}) =>
  finish(await prepared(backend, { program: "/usr/bin/python3", ...limits }), {
    argv: ["/usr/bin/python3", "-c", source],
    workspace,
  })

describe("a CPU limit", () => {
  test.each([1000, 300])("of %d ms ends as that limit, and the denial names it", async (cpuMs) => {
    const { exited } = await python("while True: pass", { limits: { cpuMs } })
    expect(exited.ending).toEqual({ by: "limit", limit: "cpu" })
    expect(exited.denied).toEqual([{ layer: "limit", reason: "cpu", target: `${cpuMs} ms of CPU`, count: 1 }])
  })
  test("counts children that came and went below it each", async () => {
    const source = `
import os, time
for _ in range(4):
    if os.fork() == 0:
        end = time.process_time() + 0.4
        while time.process_time() < end: pass
        os._exit(0)
    os.wait()`
    const { exited } = await python(source, { limits: { cpuMs: 1000 } })
    expect(exited.ending).toEqual({ by: "limit", limit: "cpu" })
  })
  test("that the sandbox's own process comes to first, as on a slow machine, ends as that limit too", async () => {
    const sandbox = await prepared(backend, { limits: { cpuMs: 60_000 } })
    const running = finish(sandbox, { argv: ["/usr/bin/sh", "-c", "sleep 600"], workspace })
    const sleepsBelow = (top: number): boolean =>
      descendants(top).some(({ pid }) => commandOf(pid).startsWith("sleep\0"))
    // Others wait for calls that are not made.
    const sandboxes = (): number[] =>
      descendants(process.pid)
        .map(({ pid }) => pid)
        .filter((pid) => commandOf(pid).startsWith("/usr/bin/bwrap\0") && sleepsBelow(pid))
    await until(() => sleepsBelow(process.pid), "the program runs")
    process.kill(sandboxes()[0] as number, "SIGXCPU")
    const { exited } = await running
    expect(exited.ending).toEqual({ by: "limit", limit: "cpu" })
  })
  test("that was not reached ends nothing", async () => {
    const { exited } = await python("pass", { limits: { cpuMs: 5000 } })
    expect(exited.ending).toEqual({ by: "exit", code: 0 })
    expect(exited.denied).toEqual([])
  })
})

const mebibyte = 1024 * 1024
/** Fills sockets that nobody reads from, and says how many mebibytes they hold in the end. */
const hoard = `
import socket
held, kept = 0, []
listener = socket.create_server(("127.0.0.1", 0), backlog=200)
for _ in range(150):
    end = socket.create_connection(listener.getsockname())
    kept += [end, listener.accept()[0]]
    end.setblocking(False)
    try:
        while True: held += end.send(bytes(1 << 16))
    except BlockingIOError: pass
sender = socket.socket(type=socket.SOCK_DGRAM)
sender.setblocking(False)
for _ in range(300):
    taker = socket.socket(type=socket.SOCK_DGRAM)
    taker.bind(("127.0.0.1", 0))
    taker.setblocking(False)
    kept.append(taker)
    for _ in range(12):
        try: sender.sendto(bytes(60000), taker.getsockname())
        except OSError: pass
for end in kept:
    if end.type == socket.SOCK_DGRAM:
        try:
            while True: held += len(end.recv(65536))
        except OSError: pass
print(held >> 20)
`
const fill = (path: string, bytes: number): string => `
import os
fd = os.open(${JSON.stringify(path)}, os.O_CREAT | os.O_WRONLY)
left = ${bytes}
while left > 0: left -= os.write(fd, bytes(min(left, 1 << 20)))
os.close(fd)
`

describe("a memory limit", () => {
  testNeeding("is not passed by what sockets buffer", noRoot, async () => {
    const memoryBytes = 64 * mebibyte
    const { exited, stdout, stderr } = await python(hoard, { limits: { memoryBytes, openFiles: 1024 } })
    expect(stderr).toBe("")
    if (exited.ending.by === "limit") expect(exited.ending.limit).toBe("memory")
    else expect(Number.parseInt(stdout, 10)).toBeLessThan(2 * 64)
  })
  test("is what was declared, whatever the call may write to disk", async () => {
    const { exited, stdout } = await python(
      `
held = []
for n in range(400): held.append(bytearray(b"x") * ${mebibyte}); print(n + 1, flush=True)`,
      { limits: { memoryBytes: 100 * mebibyte, diskBytes: 900 * mebibyte } },
    )
    expect(Number(stdout.trim().split("\n").at(-1))).toBeLessThanOrEqual(100)
    // Without groups each process is refused memory beyond the limit, and ends as it likes.
    if (groupsOf(process.pid).length === 0) {
      expect(exited.ending).toEqual({ by: "exit", code: 1 })
      return
    }
    expect(exited.ending).toEqual({ by: "limit", limit: "memory" })
    expect(exited.denied).toEqual([
      { layer: "limit", reason: "memory", target: `${100 * mebibyte} bytes of memory`, count: 1 },
    ])
  })
  test("does not count what lies on disk", async () => {
    const { exited } = await python(fill("/workspace/big", 150 * mebibyte) + fill("/tmp/big", 150 * mebibyte), {
      limits: { memoryBytes: 64 * mebibyte, diskBytes: 400 * mebibyte },
    })
    expect(exited.ending).toEqual({ by: "exit", code: 0 })
    expect(exited.writes.bytes).toBe(150 * mebibyte)
  })
  test("counts what lies in /dev/shm", async () => {
    const { exited } = await python(fill("/dev/shm/big", 200 * mebibyte), {
      limits: { memoryBytes: 64 * mebibyte, diskBytes: 400 * mebibyte },
    })
    expect(exited.ending).not.toEqual({ by: "exit", code: 0 })
  })
})

describe("a disk limit", () => {
  const bytes = 2 * mebibyte + 5
  test.each([
    [-1, { by: "exit", code: 0 }],
    [0, { by: "exit", code: 0 }],
    [1, { by: "limit", limit: "disk" }],
  ])("is exact over all the places a call writes to: %d bytes more end so", async (more, ending) => {
    const source = [
      fill("/workspace/a", mebibyte),
      fill("/tmp/b", mebibyte / 2),
      fill("/home/tool/c", mebibyte / 2 + 5 + more),
    ].join("")
    const { exited } = await python(source, { limits: { diskBytes: bytes } })
    expect(exited.ending).toEqual(ending)
    expect(exited.denied).toEqual(
      more > 0 ? [{ layer: "limit", reason: "disk", target: `${bytes} bytes written`, count: 1 }] : [],
    )
  })
  const endless = (step: string): string => `
import os, mmap, time
wrote = 0
${step}
print("finished")`
  test.each([
    ["files", `for n in range(1000): open("/workspace/f%d" % n, "wb").write(bytes(1 << 20)); time.sleep(0.01)`],
    [
      "files that it deleted and holds open",
      `held = []
for n in range(200):
    fd = os.open("/tmp/f", os.O_CREAT | os.O_WRONLY); os.unlink("/tmp/f"); held.append(fd)
    for _ in range(5): os.write(fd, bytes(1 << 20)); time.sleep(0.01)`,
    ],
    [
      "files that it deleted from its workspace and holds open",
      `held = []
for n in range(200):
    fd = os.open("/workspace/f", os.O_CREAT | os.O_WRONLY); os.unlink("/workspace/f"); held.append(fd)
    for _ in range(5): os.write(fd, bytes(1 << 20)); time.sleep(0.01)`,
    ],
    [
      "space beyond the ends of files",
      `import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for n in range(1000):
    fd = os.open("/tmp/f%d" % n, os.O_CREAT | os.O_WRONLY)
    libc.fallocate(fd, 1, ctypes.c_long(0), ctypes.c_long(4 << 20)); os.close(fd); time.sleep(0.01)`,
    ],
    [
      "files deeper than any path leads",
      `os.chdir("/tmp")
for n in range(30): os.mkdir("d" * 200); os.chdir("d" * 200)
for n in range(1000): open("f%d" % n, "wb").write(bytes(1 << 20)); time.sleep(0.01)`,
    ],
    [
      "deleted files whose descriptors are on their way through a socket",
      `import socket, array
into, out = socket.socketpair()
for n in range(100):
    fd = os.open("/tmp/f", os.O_CREAT | os.O_WRONLY); os.unlink("/tmp/f")
    into.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
    for _ in range(7): os.write(fd, bytes(1 << 20)); time.sleep(0.01)
    os.close(fd)`,
    ],
    [
      "deleted files that a thread holds after the first thread ended",
      `import ctypes, threading
def take():
    time.sleep(0.1)
    for n in range(200):
        fd = os.open("/tmp/f", os.O_CREAT | os.O_WRONLY); os.unlink("/tmp/f")
        for _ in range(5): os.write(fd, bytes(1 << 20)); time.sleep(0.01)
    os.write(1, b"finished"); os._exit(0)
threading.Thread(target=take).start()
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)`,
    ],
    [
      "deleted files in a thread with descriptors of its own, or what comes of trying that",
      `import ctypes, threading
def take():
    ctypes.CDLL(None).syscall(436, 900, 901, 2)
    for n in range(200):
        fd = os.open("/tmp/f", os.O_CREAT | os.O_WRONLY); os.unlink("/tmp/f")
        for _ in range(5): os.write(fd, bytes(1 << 20)); time.sleep(0.01)
thread = threading.Thread(target=take); thread.start(); thread.join()`,
    ],
    [
      "files without content",
      `for n in range(200000): os.close(os.open("/tmp/f%d" % n, os.O_CREAT)); time.sleep(0.0001)`,
    ],
  ])("ends a call that goes on to take up the disk with %s", async (_how, step) => {
    const { exited, stdout } = await python(endless(step), {
      limits: { diskBytes: 8 * mebibyte },
    })
    expect(exited.ending).toEqual({ by: "limit", limit: "disk" })
    expect(stdout).toBe("")
  })
  testNeeding("finds a deleted file behind sixty thousand other mappings", noRoot, async () => {
    const hide = `import ctypes
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
fd = os.open("/tmp/s", os.O_CREAT | os.O_RDWR); os.ftruncate(fd, 8192)
for n in range(60000): libc.mmap(0x100000000 + n * 4096, 4096, 1, 0x11, fd, n % 2 * 4096)
for n in range(200):
    fd = os.open("/tmp/f", os.O_CREAT | os.O_RDWR); os.unlink("/tmp/f")
    for _ in range(5): os.write(fd, bytes(1 << 20)); time.sleep(0.01)
    libc.mmap(None, 4096, 1, 1, fd, 0); os.close(fd)`
    const { exited } = await python(endless(hide), { limits: { diskBytes: 8 * mebibyte } })
    expect(exited.ending).toEqual({ by: "limit", limit: "disk" })
  })
  test("leaves nothing on the disk when the call is over", async () => {
    // Those of sandboxes that wait for a call come, and those of calls before go meanwhile: this one's holds what it wrote.
    const own = (): string[] =>
      readdirSync(join(data, "layers"))
        .flatMap((host) => readdirSync(join(data, "layers", host)).map((name) => join(data, "layers", host, name)))
        .filter((layer) => readdirSync(layer).some((part) => existsSync(join(layer, part, "upper/shut"))))
    const { exited } = await python(
      `
import os
os.chdir("/tmp")
for n in range(300): os.mkdir("d" * 60); os.chdir("d" * 60)
os.chdir("/workspace"); os.mkdir("shut"); open("shut/x", "w").close(); os.chmod("shut", 0)
os.symlink("/etc", "link")`,
    )
    const [layer, ...others] = own()
    expect(layer).toBeDefined()
    expect(others).toEqual([])
    await exited.discard()
    await until(() => !existsSync(layer ?? ""), "the layer is removed")
  })
})
