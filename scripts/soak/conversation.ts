/**
 * A soak of a running sandbox: a program that answers line by line for a minute, on both backends, with a reader that
 * stops for ten seconds while the program has far more to say than anybody keeps for it.
 *
 * Passes only if every answer came, in order and whole, what was said meanwhile arrived to the last byte, the program
 * waited for its reader, and memory, descriptors and processes are back where they were. Options: `--seconds=60`,
 * `--backend=namespace|docker`.
 */
import { once } from "node:events"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Readable } from "node:stream"
import { setTimeout as pause } from "node:timers/promises"
import type { SandboxBackend } from "../../src/sandbox/backend.ts"
import { createDockerBackend } from "../../src/sandbox/docker/backend.ts"
import { createNamespaceBackend } from "../../src/sandbox/namespace/backend.ts"
import { jobOf, shapeOf } from "../../src/sandbox/profile.ts"
import { acquireEngine } from "../../test/support/docker-engine.ts"
import { descendants, profileOf } from "../../test/support/sealed.ts"

const option = (name: string): string | undefined =>
  process.argv.find((word) => word.startsWith(`--${name}=`))?.split("=")[1]
const seconds = Number(option("seconds") ?? 60)
const STOPPED_MS = 10_000
/** what the program says while nobody reads */
const FLOOD = 256 << 20
/** what this process and its launcher together may grow by while nobody reads, and each of them in the end */
const BOUND = 24 << 20
const mega = (bytes: number): string => `${(bytes / (1 << 20)).toFixed(1)} MiB`

/** Answers each line; `flood N` says N bytes, and then how long that took. */
const program = `
import sys, time
out = sys.stdout.buffer
for line in sys.stdin.buffer:
    words = line.split()
    if words[0] == b"flood":
        left, began = int(words[1]), time.monotonic()
        while left > 0:
            left -= out.write(b"x" * min(left, 65536))
        out.write(b"\\ntook %d\\n" % (1000 * (time.monotonic() - began)))
    else:
        out.write(b"you said " + line)
    out.flush()
`

const rssOf = (pid: number): number => {
  try {
    return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}
/** This process and those that serve its sandboxes; the program itself has its own limit. */
const memory = (): number => {
  ;(globalThis as { gc?: () => void }).gc?.()
  const serving = descendants(process.pid).filter(({ pid }) => {
    try {
      return /launcher\.|unshare/.test(readFileSync(`/proc/${pid}/cmdline`, "latin1"))
    } catch {
      return false
    }
  })
  return process.memoryUsage.rss() + serving.reduce((sum, { pid }) => sum + rssOf(pid), 0)
}
const files = (): number => readdirSync("/proc/self/fd").length

const faults: string[] = []
const need = (holds: boolean, what: string): void => {
  if (!holds) faults.push(what)
}

/** What the program says, a line or so many bytes at a time; between that nobody reads. */
class Reader {
  readonly #stream: Readable
  #have: Buffer = Buffer.alloc(0)
  constructor(stream: Readable) {
    this.#stream = stream
  }
  async #more(): Promise<Buffer> {
    for (;;) {
      const chunk = this.#stream.read() as Buffer | null
      if (chunk !== null) return chunk
      if (this.#stream.readableEnded || this.#stream.destroyed) throw new Error("the program said no more")
      const over = new AbortController()
      const heard = ["readable", "end", "close"].map((event) => once(this.#stream, event, { signal: over.signal }))
      await Promise.race(heard)
      over.abort()
      await Promise.allSettled(heard)
    }
  }
  async line(): Promise<string> {
    for (let at = this.#have.indexOf(10); ; at = this.#have.indexOf(10)) {
      if (at >= 0) {
        const line = this.#have.toString("utf8", 0, at)
        this.#have = this.#have.subarray(at + 1)
        return line
      }
      this.#have = Buffer.concat([this.#have, await this.#more()])
    }
  }
  /** Read and keep nothing; how many of them were what was to be said. */
  async skip(bytes: number): Promise<number> {
    let right = 0
    for (let left = bytes; left > 0; ) {
      const chunk = this.#have.length > 0 ? this.#have : await this.#more()
      const part = chunk.subarray(0, left)
      right += part.equals(EXES.subarray(0, part.length)) ? part.length : 0
      left -= part.length
      this.#have = chunk.subarray(part.length)
    }
    return right
  }
}
const EXES = Buffer.alloc(1 << 20, "x")

const soak = async (name: string, backend: SandboxBackend, workspace: string): Promise<void> => {
  const limits = { wallMs: (seconds + 120) * 1000 }
  const profile = profileOf({ program: "/usr/bin/python3", children: false, limits })
  const begin = async () => {
    const prepared = await backend.prepare(shapeOf(profile))
    if (!prepared.ok) throw new Error(`${prepared.control}: ${prepared.message}`)
    const job = jobOf(profile, { argv: ["/usr/bin/python3", "-c", program], workspace })
    const running = await prepared.start(job, new AbortController().signal)
    if (!running.ok) throw new Error(`${running.control}: ${running.message}`)
    running.stderr.pipe(process.stderr)
    const reader = new Reader(running.stdout)
    let told = 0
    const talkUntil = async (ms: number): Promise<number> => {
      while (Date.now() < ms) {
        told += 1
        const line = `line ${told} ${"é".repeat(told % 200)}`
        running.stdin.write(`${line}\n`)
        const answer = await reader.line()
        if (answer === `you said ${line}`) continue
        need(false, `${name}: line ${told} was answered with ${JSON.stringify(answer.slice(0, 80))}`)
        break
      }
      return told
    }
    return { running, reader, talkUntil }
  }
  // A start that has seen work, so that growth is growth.
  const first = await begin()
  await first.talkUntil(Date.now() + 2_000)
  await first.running[Symbol.asyncDispose]()
  await pause(1_000)
  const before = { memory: memory(), files: files() }
  const { running, reader, talkUntil } = await begin()
  const began = Date.now()
  await talkUntil(began + (seconds * 1000 - STOPPED_MS) / 2)
  const talked = memory()
  running.stdin.write(`flood ${FLOOD}\n`)
  let peak = 0
  for (const end = Date.now() + STOPPED_MS; Date.now() < end; await pause(250)) peak = Math.max(peak, memory())
  const right = await reader.skip(FLOOD)
  await reader.line()
  const took = Number(/^took (\d+)$/.exec(await reader.line())?.[1] ?? 0)
  const told = await talkUntil(began + seconds * 1000)
  running.stdin.end()
  const exited = await running.exited
  if (!exited.ok) throw new Error(exited.message)
  const { ending, usage } = exited
  await exited.discard()
  await running[Symbol.asyncDispose]()
  await pause(1_000)
  const after = { memory: memory(), files: files() }
  need(right === FLOOD, `${name}: only ${right} of ${FLOOD} bytes arrived as they were said`)
  need(took >= STOPPED_MS * 0.9, `${name}: the program did not wait for its reader: it was done after ${took} ms`)
  need(peak - talked <= BOUND, `${name}: a reader that stops cost ${mega(peak - talked)}`)
  need(after.memory - before.memory <= 2 * BOUND, `${name}: memory grew by ${mega(after.memory - before.memory)}`)
  need(after.files <= before.files, `${name}: ${after.files} files are open, ${before.files} were`)
  need(ending.by === "exit" && ending.code === 0, `${name}: it ended by ${JSON.stringify(ending)}`)
  console.log(
    `${name}: ${told} lines said and answered in ${((Date.now() - began) / 1000).toFixed(0)} s; the reader stopped for ${STOPPED_MS / 1000} s before ${mega(FLOOD)}: the program took ${took} ms for them, memory of host and launcher ${mega(talked)} before, ${mega(peak)} at most, grown by ${mega(Math.max(0, peak - talked))}; in the end ${mega(after.memory)} (${mega(before.memory)} at the start), files ${after.files} (${before.files}); the program had ${mega(usage.peakMemoryBytes ?? 0)} at most`,
  )
}

const wanted = option("backend")
const folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-soak-")))
const workspace = join(folder, "work")
mkdirSync(workspace)
try {
  if (wanted !== "docker") {
    await using backend = createNamespaceBackend({ data: join(folder, "data") })
    await soak("namespace", backend, workspace)
  }
  if (wanted !== "namespace") {
    const engine = await acquireEngine()
    if (engine.ok) {
      await using _engine = engine
      await using backend = createDockerBackend({ data: join(folder, "data"), engine: `unix://${engine.socket}` })
      await soak("docker", backend, workspace)
    } else if (wanted === "docker") need(false, `docker: ${engine.reason}`)
    else console.log(`docker: left out: ${engine.reason}`)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
for (const fault of faults) console.log(`FAILED ${fault}`)
console.log(faults.length === 0 ? "passed: every line was answered, and memory and descriptors are back" : "failed")
process.exitCode = faults.length === 0 ? 0 : 1
