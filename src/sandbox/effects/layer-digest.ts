/**
 * One digest over a layer as it lies on disk, so that what is written later is what was seen before.
 *
 * Guarantees: any change to a name, kind, mode, owner, time, content, link target, extended attribute or shared inode
 * of what a commit reads gives another digest; being moved as a whole does not. Owners count by whether they are the
 * layer's own, so that the digest is the same in a user namespace and outside it. Takes turns with other work, follows no
 * symlink, and gives up after the time allowed.
 * Assumes: nobody writes to the layer meanwhile, and its paths are short enough for a write set to have been read from it.
 */
import { closeSync, constants, lstatSync, openSync, readdirSync, readlinkSync, type BigIntStats } from "node:fs"
import { createHash, type Hash } from "node:crypto"
import { lgetxattr, llistxattr } from "../../linux/files.ts"
import { Breath } from "./breath.ts"
import { digestFd } from "./digest.ts"
import { DEFAULT_LAYER_LIMITS, LayerRefused } from "./limits.ts"
import { below, fromBuffer, join, ROOT, type BytePath } from "./names.ts"

/** Labels of the system's own, which it may set anew when a file is moved. */
const isSystems = (name: string): boolean => name.startsWith("security.") && name !== "security.capability"

const attributesOf = (path: Buffer): readonly (readonly [string, string])[] => {
  const native = Buffer.concat([path, Buffer.from([0])]) as unknown as string
  return llistxattr(native)
    .filter((name) => !isSystems(name))
    .sort()
    .map((name) => [name, lgetxattr(native, name)?.toString("base64") ?? ""])
}

class LayerDigest {
  readonly #upper: string
  readonly #hash: Hash = createHash("sha256")
  readonly #breath: Breath
  readonly #own: { readonly uid: bigint; readonly gid: bigint }
  /** the first path of each inode with several names */
  readonly #linked = new Map<bigint, BytePath>()

  constructor(upper: string, allowedMs: number) {
    this.#upper = upper
    const { uid, gid } = lstatSync(upper, { bigint: true })
    this.#own = { uid, gid }
    this.#breath = new Breath(
      allowedMs,
      () => new LayerRefused("too-slow", `the layer could not be read within ${allowedMs} ms`),
    )
  }

  async #contentOf(path: Buffer, at: BytePath, stats: BigIntStats): Promise<string> {
    if (stats.isSymbolicLink()) return readlinkSync(path, { encoding: "buffer" }).toString("base64")
    if (!stats.isFile()) return String(stats.rdev)
    if (stats.nlink > 1n) {
      const first = this.#linked.get(stats.ino)
      if (first !== undefined) return `as ${Buffer.from(first, "latin1").toString("base64")}`
      this.#linked.set(stats.ino, at)
    }
    const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      return await digestFd(fd, Number(stats.size), () => this.#breath.take())
    } finally {
      closeSync(fd)
    }
  }

  async #add(at: BytePath): Promise<void> {
    const path = below(this.#upper, at)
    const stats = lstatSync(path, { bigint: true })
    const owner = stats.uid === this.#own.uid && stats.gid === this.#own.gid ? "own" : `${stats.uid}:${stats.gid}`
    const row = [
      Buffer.from(at, "latin1").toString("base64"),
      String(stats.mode),
      owner,
      stats.isFile() ? String(stats.size) : "",
      // Moving a folder may touch the folder itself.
      at === ROOT ? "" : String(stats.mtimeNs),
      stats.isDirectory() ? "" : await this.#contentOf(path, at, stats),
      attributesOf(path),
    ]
    this.#hash.update(`${JSON.stringify(row)}\n`)
    if (!stats.isDirectory()) return
    for (const name of readdirSync(path, { encoding: "buffer" }).map(fromBuffer).sort()) {
      await this.#breath.take()
      await this.#add(join(at, name))
    }
  }

  async digest(): Promise<string> {
    await this.#add(ROOT)
    return `sha256:${this.#hash.digest("hex")}`
  }
}

export const digestLayer = (upper: string, allowedMs = DEFAULT_LAYER_LIMITS.maxReadMs): Promise<string> =>
  new LayerDigest(upper, allowedMs).digest()
