/** Other processes: reading, steering, signalling, and memory shared with them. */
import { execFileSync } from "node:child_process"
import { closeSync, constants, openSync, readSync } from "node:fs"
import { patience } from "../../support/patience.ts"
import type { EscapeCase, MachineFacts } from "../escape-case.ts"
import { quoted } from "../programs.ts"

/** x64 text for the first process: forget to die with the launcher, then wait for ever. */
const forgetParent = String.raw`b"\x31\xf6\xbf\x01\x00\x00\x00\xb8\x9d\x00\x00\x00\x0f\x05\xb8\x22\x00\x00\x00\x0f\x05\xeb\xf7"`
const poke = `
at = int(get("/proc/1/syscall").split()[-1], 16)
with open("/proc/1/mem", "r+b", buffering=0) as memory:
    memory.seek(at); memory.write(${forgetParent})
if os.fork() == 0:
    os.fork(); os._exit(0)
os.wait()
`
/** A deadline that is waited for to its end: as short as the attempt may be, which is over before it. */
const beginsWithinMs = Math.max(2000, 500 * patience)
/** readers of fifos, by workspace */
const readers = new Map<string, number>()
/** It finds what to rewrite by where the kernel says that the process waits. */
const canPoke = ({ arch, userMode }: MachineFacts): boolean => arch === "x64" && !userMode

export const processes: readonly EscapeCase[] = [
  {
    name: "a first process rewritten to outlive its launcher does not outlive the deadline",
    language: "python",
    source: `${poke}print("poked", flush=True)\ntime.sleep(${30 * patience})`,
    profile: { limits: { wallMs: beginsWithinMs } },
    endings: ["limit wall"],
    cutShort: true,
    only: canPoke,
    breaches: ({ stdout }) => (stdout.includes("poked") ? [] : ["the attempt did not get anywhere"]),
  },
  {
    name: "a first process rewritten to outlive its launcher does not outlive the program",
    language: "python",
    source: `${poke}
if os.fork() == 0:
    os.setsid(); time.sleep(${30 * patience}); os._exit(0)
print("tried", flush=True); os._exit(0)`,
    profile: { limits: { wallMs: beginsWithinMs } },
    endings: ["limit wall"],
    only: canPoke,
  },
  {
    name: "ptrace is refused in every form",
    language: "python",
    source: `
child = os.fork()
if child == 0:
    time.sleep(20); os._exit(0)
must_fail("TRACEME", lambda: call("ptrace", 0, 0, 0, 0))
for request in (16, 0x4206): must_fail("attach %d" % request, lambda: call("ptrace", request, child, 0, 0))
must_fail("attach to the first process", lambda: call("ptrace", 16, 1, 0, 0))
os.kill(child, 9)`,
  },
  {
    name: "reading and writing another process's memory by system call is refused",
    language: "python",
    source: `
buffer = ctypes.create_string_buffer(64)
class iovec(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
mine = iovec(ctypes.addressof(buffer), 64)
for name in ("process_vm_readv", "process_vm_writev"):
    for pid in (1, os.getpid()): must_fail(name, lambda: call(name, pid, ctypes.byref(mine), 1, ctypes.byref(mine), 1, 0))
pidfd = call("pidfd_open", 1, 0)
must_fail("pidfd_getfd", lambda: call("pidfd_getfd", pidfd, 0, 0))
must_fail("kcmp", lambda: call("kcmp", 1, os.getpid(), 0, 0, 0))
must_fail("process_madvise", lambda: call("process_madvise", pidfd, ctypes.byref(mine), 1, 4, 0))`,
  },
  {
    name: "a process of the host cannot be signalled by its number",
    language: "python",
    source: ({ ground }) => `
for number in (9, 15, 19):
    may_fail(lambda: os.kill(${ground.bait.pid}, number))
    may_fail(lambda: os.killpg(${ground.bait.pid}, number))
must_fail("pidfd of the bait", lambda: call("pidfd_send_signal", call("pidfd_open", ${ground.bait.pid}, 0), 9, 0, 0) if ${ground.bait.pid} > 100000 or not os.path.exists("/proc/${ground.bait.pid}") else (_ for _ in ()).throw(OSError()))`,
  },
  {
    name: "signalling everybody reaches nobody outside",
    language: "python",
    source: `
signal.signal(signal.SIGTERM, signal.SIG_IGN)
may_fail(lambda: os.kill(-1, signal.SIGTERM)); may_fail(lambda: os.kill(1, signal.SIGKILL)); may_fail(lambda: os.kill(1, signal.SIGSTOP))
may_fail(lambda: os.killpg(0, signal.SIGTERM))
for pid in range(2, 400):
    if pid != os.getpid(): may_fail(lambda: os.kill(pid, signal.SIGKILL))`,
  },
  {
    name: "the process at the other end of stdout cannot be taken by a handle on it",
    language: "python",
    source: `
for fd in (0, 1, 2):
    s = socket.socket(fileno=os.dup(fd)) if stat.S_ISSOCK(os.fstat(fd).st_mode) else None
    if s is None: continue
    credentials = s.getsockopt(socket.SOL_SOCKET, 17, 12)
    peer = struct.unpack("=iII", credentials)[0]
    if peer > 0: breach("the peer's number is %d" % peer)
    pidfd = may_fail(lambda: s.getsockopt(socket.SOL_SOCKET, 77))
    if pidfd is None: continue
    for number in (9, 19): must_fail("signalling the peer", lambda: call("pidfd_send_signal", pidfd, number, 0, 0))
    must_fail("its descriptors", lambda: call("pidfd_getfd", pidfd, 3, 0)); must_fail("its namespaces", lambda: call("setns", pidfd, 0x10000000))
    for number in range(0xFF01, 0xFF0B): must_fail("a namespace of the peer", lambda: fcntl.ioctl(pidfd, number, 0))`,
  },
  {
    name: "System V shared memory, queues and semaphores of the host are not there",
    language: "python",
    source: ({ ground }) => `
key = ${ground.bait.key}
must_fail("shmget", lambda: call("shmget", key, 0, 0)); must_fail("msgget", lambda: call("msgget", key, 0)); must_fail("semget", lambda: call("semget", key, 0, 0))
libc.shmat.restype = ctypes.c_void_p
for number in [${ground.bait.shm}] + list(range(0, 64)):
    at = libc.shmat(number, None, 0)
    if at not in (None, ctypes.c_void_p(-1).value): breach("segment %d: %r" % (number, ctypes.string_at(at))); ctypes.memset(at, 0x58, 8)
for name in ("shm", "msg", "sem"):
    if len(open("/proc/sysvipc/" + name).readlines()) > 1: breach("/proc/sysvipc/" + name)`,
  },
  {
    name: "a POSIX queue of the host is not there",
    language: "python",
    source: ({ ground }) =>
      `must_fail("mq_open", lambda: call("mq_open", ${quoted(ground.bait.mq)}.lstrip("/").encode(), 0, 0, 0))`,
  },
  {
    name: "kernel keyrings of the host are out of reach",
    language: "python",
    source: `
for ring in (-1, -2, -3, -4, -5): must_fail("keyctl %d" % ring, lambda: call("keyctl", 0, ring, 0))
must_fail("joining a session", lambda: call("keyctl", 1, 0)); must_fail("add_key", lambda: call("add_key", b"user", b"escape", b"x", 1, -4))
must_fail("request_key", lambda: call("request_key", b"user", b"escape", 0, 0))`,
  },
  {
    name: "a fifo of the host in the workspace carries nothing across",
    language: "python",
    source: `
fd = os.open("/workspace/pipe", os.O_RDWR | os.O_NONBLOCK)
os.write(fd, b"from inside")`,
    prepare({ workspace }) {
      execFileSync("mkfifo", [`${workspace}/pipe`])
      readers.set(workspace, openSync(`${workspace}/pipe`, constants.O_RDONLY | constants.O_NONBLOCK))
    },
    breaches({ workspace }) {
      const reader = readers.get(workspace) as number
      try {
        return readSync(reader, Buffer.alloc(16)) > 0 ? ["the host's reader heard the program"] : []
      } catch {
        return ["the host's reader has a writer"]
      } finally {
        closeSync(reader)
        readers.delete(workspace)
      }
    },
  },
]
