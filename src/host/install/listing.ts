/**
 * What a folder holds, as one text: its digest names a layer, and comparing it names what changed.
 *
 * Guarantees: every entry is a line with its kind, path, executable bit, size and content (a file's SHA-256, a link's
 * target), in one order whatever the file system's; times, owners and inode numbers are no part of it. `factsOf` is the
 * cheap side: what the kernel says of each entry (inode, change time, mode, size), which nobody can keep while changing
 * one. Folders are bounded in entries, bytes and depth before they are read. No link is followed.
 * Assumes: nobody sets this machine's clock back between two looks to the same nanosecond.
 */
import { createHash } from "node:crypto"
import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readlinkSync, readSync } from "node:fs"
import { join } from "node:path"
import { setImmediate as breath } from "node:timers/promises"
import { installLimits } from "../limits.ts"

/** Why a folder can be no layer, in words for people. */
export class NotALayer extends Error {}

export interface Entry {
  /** relative, `/`-separated; empty for the folder itself */
  readonly path: string
  readonly kind: "folder" | "file" | "link"
  readonly executable: boolean
  readonly size: number
  readonly ino: bigint
  readonly ctimeNs: bigint
  readonly mode: bigint
}

const SLICE = 512
const CHUNK = 1024 * 1024

const kindOf = (path: string, stat: ReturnType<typeof lstat>): Entry["kind"] => {
  if (stat.isFile()) return "file"
  if (stat.isDirectory()) return "folder"
  if (stat.isSymbolicLink()) return "link"
  throw new NotALayer(`${path} is no file, folder or link`)
}
const lstat = (path: string) => lstatSync(path, { bigint: true })
const byName = (a: string, b: string): number => (a < b ? -1 : 1)

/** Every entry, folders before what is in them. */
export const entriesOf = async (root: string): Promise<readonly Entry[]> => {
  const found: Entry[] = []
  let bytes = 0
  const visit = async (path: string, depth: number): Promise<void> => {
    const at = path === "" ? root : join(root, path)
    const stat = lstat(at)
    const kind = kindOf(path, stat)
    if (found.length >= installLimits.layerFiles.value)
      throw new NotALayer(`it holds more than ${installLimits.layerFiles.value} files`)
    if (kind === "file") bytes += Number(stat.size)
    if (bytes > installLimits.layerBytes.value)
      throw new NotALayer(`it holds more than ${installLimits.layerBytes.value / CHUNK} MiB`)
    if (depth > installLimits.layerDepth.value)
      throw new NotALayer(`its folders lie deeper than ${installLimits.layerDepth.value} within one another`)
    if (path.includes("\ufffd")) throw new NotALayer(`the name of ${path} is not UTF-8`)
    found.push({
      path,
      kind,
      executable: kind === "file" && (stat.mode & 0o100n) !== 0n,
      size: kind === "file" ? Number(stat.size) : 0,
      ino: stat.ino,
      ctimeNs: stat.ctimeNs,
      mode: stat.mode,
    })
    if (found.length % SLICE === 0) await breath()
    if (kind !== "folder") return
    for (const name of readdirSync(at).sort(byName)) await visit(path === "" ? name : `${path}/${name}`, depth + 1)
  }
  await visit("", 0)
  return found
}

/** What the kernel says of every entry, as one digest. */
export const factsOf = (entries: readonly Entry[]): string => {
  const hash = createHash("sha256")
  for (const { path, ino, ctimeNs, mode, size } of entries)
    hash.update(`${JSON.stringify(path)} ${ino} ${ctimeNs} ${mode} ${size}\n`)
  return hash.digest("hex")
}

const digestFile = async (path: string, size: number): Promise<string> => {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    if (!fstatSync(fd).isFile()) throw new NotALayer(`${path} was replaced while it was read`)
    const hash = createHash("sha256")
    const buffer = Buffer.allocUnsafe(Math.min(CHUNK, Math.max(1, size)))
    let read = 0
    for (let got = readSync(fd, buffer); got > 0; got = readSync(fd, buffer)) {
      read += got
      if (read > size) throw new NotALayer(`${path} grew while it was read`)
      hash.update(buffer.subarray(0, got))
      if (size > CHUNK) await breath()
    }
    return hash.digest("hex")
  } finally {
    closeSync(fd)
  }
}

/** The listing: its SHA-256 is the layer's digest. */
export const listingOf = async (root: string, entries: readonly Entry[], signal?: AbortSignal): Promise<string> => {
  const lines: string[] = []
  for (const { path, kind, executable, size } of entries) {
    const at = join(root, path)
    const content =
      kind === "file" ? await digestFile(at, size) : kind === "link" ? JSON.stringify(readlinkSync(at)) : ""
    lines.push([kind, JSON.stringify(path), executable ? "x" : "-", size, content].join(" ").trimEnd())
    if (lines.length % 64 === 0) {
      await breath()
      signal?.throwIfAborted()
    }
  }
  return `${lines.join("\n")}\n`
}

export const digestOfListing = (listing: string): string => createHash("sha256").update(listing).digest("hex")

/** The path of the first line that only one of the two has. */
export const firstDifference = (expected: string, found: string): string => {
  const [known, now] = [new Set(expected.split("\n")), new Set(found.split("\n"))]
  const line = [...now].find((each) => !known.has(each)) ?? [...known].find((each) => !now.has(each)) ?? ""
  return /^\w+ ("(?:[^"\\]|\\.)*")/.exec(line)?.[1] ?? "the layer"
}
