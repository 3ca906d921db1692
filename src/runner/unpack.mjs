/**
 * Unpacks what comes in by standard input into the folder that it is started in: an archive (tar, zip), packed or not, or a
 * program by itself. Has no dependencies; runs inside a sandbox, for the host that started it.
 *
 * Guarantees: what it is, is told by its first bytes, not by a name. It reads its input to the end. Exits with 0 where all
 * is unpacked and the program is there; else says why in one line, `caisson: …`, and leaves what it wrote to be thrown away.
 */
import { spawn } from "node:child_process"
import { chmodSync, closeSync, openSync, statSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import * as zlib from "node:zlib"
import { isTar, unpackTar } from "./unpack-tar.mjs"
import { Refused, Tree } from "./unpack-to.mjs"
import { unpackZip } from "./unpack-zip.mjs"

const START = 512
const SPOOL = join(tmpdir(), "archive")

/** Bytes by the piece, of a stream whose pieces are of any size. */
class Source {
  #chunks
  #held = Buffer.alloc(0)
  constructor(stream) {
    this.#chunks = stream[Symbol.asyncIterator]()
  }
  async #more() {
    const { value, done } = await this.#chunks.next()
    if (done === true) return false
    this.#held = this.#held.length === 0 ? Buffer.from(value) : Buffer.concat([this.#held, value])
    return true
  }
  /** The beginning, which stays. */
  async peek(length) {
    while (this.#held.length < length && (await this.#more()));
    return this.#held.subarray(0, length)
  }
  /** So many; undefined where there are fewer. */
  async take(length) {
    while (this.#held.length < length) if (!(await this.#more())) return undefined
    const taken = this.#held.subarray(0, length)
    this.#held = this.#held.subarray(length)
    return taken
  }
  /** One or more, no more than that; undefined at the end. */
  async some(most) {
    if (this.#held.length === 0 && !(await this.#more())) return undefined
    const taken = this.#held.subarray(0, most)
    this.#held = this.#held.subarray(taken.length)
    return taken
  }
  async *[Symbol.asyncIterator]() {
    for (let next = await this.some(1 << 20); next !== undefined; next = await this.some(1 << 20)) yield next
  }
}

/** Run by a program that reads and writes as a pipe does. */
const through = (program) => (source) => {
  const child = spawn(program, ["-dc"], { stdio: ["pipe", "pipe", "ignore"] })
  const ended = new Promise((resolve, reject) => {
    child.once("error", () => reject(new Refused(`there is no ${program} on this machine to undo it with`)))
    child.once("close", (code) => (code === 0 ? resolve() : reject(new Refused("it is damaged"))))
  })
  ended.catch(() => {})
  pipeline(Readable.from(source), child.stdin).catch(() => {})
  return (async function* () {
    yield* child.stdout
    await ended
  })()
}
const byNode = (make) => (source) => {
  const undo = make()
  pipeline(Readable.from(source), undo).catch(() => {})
  return undo
}

const PACKED = [
  [Buffer.from([0x1f, 0x8b]), byNode(zlib.createGunzip)],
  [
    Buffer.from([0x28, 0xb5, 0x2f, 0xfd]),
    zlib.createZstdDecompress === undefined ? through("zstd") : byNode(zlib.createZstdDecompress),
  ],
  [Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00]), through("xz")],
  [Buffer.from("BZh"), through("bzip2")],
]
const beginsWith = (start, bytes) => start.subarray(0, bytes.length).equals(bytes)

const spool = async (source, tree) => {
  const fd = openSync(SPOOL, "wx+", 0o600)
  let size = 0
  for await (const bytes of source) {
    tree.count(bytes.length)
    for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done)
    size += bytes.length
  }
  return { fd, size }
}

const unpack = async (source, tree, { program, ...limits }, unpacked = false) => {
  const start = await source.peek(START)
  if (start.length === 0) throw new Refused("it is empty")
  const undo = unpacked ? undefined : PACKED.find(([magic]) => beginsWith(start, magic))?.[1]
  if (undo !== undefined) {
    try {
      return await unpack(new Source(undo(source)), tree, { program, ...limits }, true)
    } catch (error) {
      throw error instanceof Refused ||
        (!String(error.code).startsWith("Z_") && !String(error.code).startsWith("ZSTD_"))
        ? error
        : new Refused("it is damaged, or ends in the middle")
    }
  }
  if (isTar(start)) return await unpackTar(source, tree)
  if (beginsWith(start, Buffer.from("PK\x03\x04")) || beginsWith(start, Buffer.from("PK\x05\x06"))) {
    // What lies there meanwhile is not unpacked, and counts for itself.
    const { fd, size } = await spool(source, new Tree(limits))
    await unpackZip(fd, size, tree, limits)
    return closeSync(fd)
  }
  const file = tree.file(program, 0o755)
  for await (const bytes of source) {
    tree.count(bytes.length)
    file.write(bytes)
  }
  file.end()
}

/** The program is a file of the archive, whatever links lead to it, and can be run. */
const madeProgram = (program, tree) => {
  const facts = statSync(program, { throwIfNoEntry: false })
  if (facts?.isFile() === true) return chmodSync(program, 0o755)
  const some = tree.files.slice(0, 8).map((path) => JSON.stringify(path))
  throw new Refused(`it holds no program ${JSON.stringify(program)}; it holds ${some.join(", ") || "no files"}`)
}

const request = JSON.parse(process.argv[2] ?? "{}")
const tree = new Tree(request)
try {
  await unpack(new Source(process.stdin), tree, request)
  madeProgram(request.program, tree)
} catch (error) {
  const why = error instanceof Refused ? error.message : `it cannot be unpacked (${error.code ?? error.name})`
  process.stderr.write(`caisson: ${why}\n`)
  process.exit(3)
}
