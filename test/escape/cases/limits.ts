/** Taking more than one's share. Every bomb here is bounded, so that it stays harmless where its limit is off. */
import type { EscapeCase, Seen } from "../escape-case.ts"

const mebibyte = 1024 * 1024
const small = { limits: { diskBytes: 8 * mebibyte, memoryBytes: 64 * mebibyte, pids: 24 } } as const
/** the largest number that the program printed after a word */
const largest = (seen: Seen, word: string): number =>
  Math.max(-1, ...[...seen.stdout.matchAll(new RegExp(`${word}=(\\d+)`, "g"))].map((match) => Number(match[1])))
const atMost =
  (word: string, most: number) =>
  (seen: Seen): string[] => {
    const got = largest(seen, word)
    return got < 0 ? [`${word} was never told`] : got > most ? [`${word}: ${got}, allowed ${most}`] : []
  }
const fills = (name: string, source: string, more: Partial<EscapeCase> = {}): EscapeCase => ({
  name,
  language: "python",
  source: `
wrote = 0
def fill(path, chunks):
    global wrote
    try:
        fd = os.open(path, os.O_CREAT | os.O_WRONLY)
        for _ in range(chunks): wrote += os.write(fd, bytes(${mebibyte}))
    except OSError: pass
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
${source}
print("wrote=%d" % wrote, flush=True)
os._exit(7)`,
  profile: small,
  endings: ["limit disk"],
  cutShort: true,
  effects: ["create", "mkdir"],
  breaches: atMost("wrote", 8 * mebibyte),
  ...more,
})

export const limits: readonly EscapeCase[] = [
  {
    name: "a fork bomb stays below the process limit",
    language: "python",
    source: `
made = 0
for _ in range(120):
    try: pid = os.fork()
    except OSError: break
    if pid == 0: time.sleep(20); os._exit(0)
    made += 1
print("made=%d" % made, flush=True)`,
    profile: small,
    breaches: atMost("made", 26),
  },
  {
    name: "a fork bomb that doubles and leaves its session stays below the process limit",
    language: "python",
    source: `
end = time.time() + 1
for _ in range(7):
    try:
        if os.fork() == 0: os.setsid()
    except OSError: pass
time.sleep(0.3)
if os.getppid() == 1 or True: os.write(1, ("alive=%d\\n" % len([p for p in os.listdir("/proc") if p.isdigit()])).encode())
time.sleep(max(0, end - time.time()))`,
    profile: { limits: { pids: 24 } },
    breaches: atMost("alive", 27),
  },
  {
    name: "a thread bomb stays below the process limit",
    language: "python",
    source: `
threading.stack_size(65536)
made = 0; hold = threading.Event()
try:
    for _ in range(120):
        t = threading.Thread(target=hold.wait, daemon=True); t.start(); made += 1
except RuntimeError: pass
print("made=%d" % made, flush=True); hold.set()`,
    profile: small,
    breaches: atMost("made", 26),
  },
  {
    name: "a limit of memory is not raised by what may be written",
    language: "python",
    source: `
held = []
for n in range(160): held.append(bytearray(os.urandom(1)) * ${mebibyte}); print("held=%d" % (n + 1), flush=True)`,
    profile: { limits: { diskBytes: 512 * mebibyte, memoryBytes: 64 * mebibyte, pids: 24 } },
    endings: ["limit memory"],
    cutShort: true,
    denied: [`memory ${64 * mebibyte} bytes of memory`],
    breaches: atMost("held", 64),
    // Without control groups a process is limited by itself, and runs out of memory in its own words.
    only: ({ groups }) => groups,
  },
  {
    name: "one process does not get more memory than its limit",
    language: "python",
    source: `
held = []
try:
    for n in range(256): held.append(bytearray(os.urandom(1)) * ${mebibyte}); print("held=%d" % (n + 1), flush=True)
except MemoryError: pass`,
    profile: small,
    endings: ["limit memory", "exit 0"],
    cutShort: true,
    breaches: atMost("held", 64 + 8),
  },
  {
    name: "many processes together do not get more memory than the limit of the tree",
    language: "python",
    source: `
waiting, go = os.pipe()
ends = []
for _ in range(12):
    telling, told = os.pipe()
    if os.fork() == 0:
        os.close(go)
        held = bytearray(b"x") * (20 * ${mebibyte}); os.write(1, b"held=20\\n"); os.write(told, b"x")
        os.read(waiting, 1); os._exit(0)
    os.close(told); ends.append(telling)
for telling in ends: os.read(telling, 1)
os.close(go)
while True:
    try: os.wait()
    except ChildProcessError: break`,
    profile: small,
    endings: ["limit memory"],
    cutShort: true,
    // Without control groups only each process is limited, and a profile that needs the tree limited is refused.
    only: ({ groups }) => groups,
  },
  {
    name: "/dev/shm is no store beside the limits",
    language: "python",
    source: `
wrote = 0
try:
    fd = os.open("/dev/shm/big", os.O_CREAT | os.O_WRONLY)
    for _ in range(64): wrote += os.write(fd, bytes(${mebibyte}))
except OSError: pass
print("wrote=%d" % wrote, flush=True)`,
    profile: small,
    endings: ["limit disk", "exit 0"],
    cutShort: true,
    breaches: (seen) => (seen.stdout.includes("wrote=") ? atMost("wrote", 8 * mebibyte)(seen) : []),
  },
  fills("one big file in the workspace ends at the disk limit", `fill("/workspace/big", 64)`),
  fills(
    "many files everywhere end at one disk limit together",
    `
for n in range(200):
    for folder in ("/workspace", "/tmp", "/home/tool"): fill("%s/part%d" % (folder, n), 1)
    time.sleep(0.05)
print("finished", flush=True)`,
    { breaches: (seen) => (seen.stdout.includes("finished") ? ["nothing stopped it"] : []) },
  ),
  fills(
    "files that are deleted and held open count as well",
    `
for n in range(100):
    for folder in ("/workspace", "/tmp"):
        fill("%s/held%d" % (folder, n), 1); os.unlink("%s/held%d" % (folder, n))
    time.sleep(0.05)
print("finished", flush=True)`,
    { breaches: (seen) => (seen.stdout.includes("finished") ? ["nothing stopped it"] : []) },
  ),
  {
    name: "a file with holes cannot pretend to be larger than the disk limit",
    language: "python",
    source: `
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
for folder in ("/workspace", "/tmp"):
    fd = os.open(folder + "/sparse", os.O_CREAT | os.O_WRONLY)
    must_fail("a sparse gigabyte", lambda: os.ftruncate(fd, 1 << 30)); must_fail("allocation", lambda: os.posix_fallocate(fd, 0, 1 << 30))
    os.unlink(folder + "/sparse")`,
    profile: small,
    endings: ["exit 0", "limit disk"],
  },
  {
    name: "files without end run out of inodes",
    language: "python",
    source: `
made = 0
try:
    for n in range(20000): os.mknod("/tmp/f%d" % n); made += 1
except OSError: pass
print("made=%d" % made, flush=True); os._exit(0)`,
    profile: small,
    endings: ["limit disk"],
    cutShort: true,
  },
  {
    name: "a tree too deep for any path is refused, and nothing of it stays",
    language: "python",
    source: `
for _ in range(300):
    os.mkdir("d" * 100); os.chdir("d" * 100)`,
    endings: ["refused write-set"],
  },
  {
    name: "files made of holes do not keep the host reading, and nothing of them stays",
    language: "python",
    source: `
for n in range(700):
    with open("/workspace/s%d" % n, "w") as made: made.truncate(64 << 20)`,
    endings: ["refused write-set"],
  },
  {
    name: "one file under thousands of names does not keep the host reading",
    language: "python",
    source: `
put("/workspace/n", "x" * (32 << 20))
for n in range(2000): os.link("/workspace/n", "/workspace/n%d" % n)`,
    effects: ["create", "hardlink"],
  },
  {
    name: "descriptors run out at their limit",
    language: "python",
    source: `
made = 0
try:
    for _ in range(3000): os.open("/dev/null", 0); made += 1
except OSError: pass
print("made=%d" % made, flush=True)`,
    breaches: atMost("made", 256),
  },
  ...(["stdout", "stderr"] as const).map(
    (stream): EscapeCase => ({
      name: `a flood on ${stream} is stopped and does not fill the host`,
      language: "python",
      source: `
block = b"x" * 65536
for _ in range(4096): os.write(${stream === "stdout" ? 1 : 2}, block)`,
      profile: { limits: { outputBytes: 4096 } },
      endings: ["limit output"],
      cutShort: true,
      denied: ["output 4096 bytes of output"],
      breaches: ({ exited }) =>
        exited[stream].bytes.length <= 4096 && exited[stream].truncated ? [] : ["more was kept than the cap"],
    }),
  ),
  {
    name: "CPU time ends at a limit of whole seconds, and as that limit",
    language: "python",
    source: "while True: pass",
    profile: { limits: { cpuMs: 1000 } },
    endings: ["limit cpu"],
    cutShort: true,
    denied: ["cpu 1000 ms of CPU"],
  },
  {
    name: "CPU time ends at its limit in spite of a handler",
    language: "python",
    source: `
signal.signal(signal.SIGXCPU, signal.SIG_IGN)
end = time.process_time() + 6
while time.process_time() < end: pass`,
    profile: { limits: { cpuMs: 300 } },
    endings: ["limit cpu"],
    cutShort: true,
    denied: ["cpu 300 ms of CPU"],
  },
]
