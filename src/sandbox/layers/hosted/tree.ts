/**
 * A workspace with a call's own layer over it, as one tree, by descriptors.
 *
 * Guarantees: whatever is found lies in the workspace or in the layer, is seen by the call's patterns and open to the
 * workspace's owner. Links are read and followed here, step by step, each step judged like any path; what is found is then
 * opened without following any, so that a link put in its place meanwhile leads nowhere. Nothing is opened on another mount.
 * Assumes: the layer holds files and folders alone.
 */
import { type BigIntStats, closeSync, constants, fstatSync, lstatSync, readlinkSync } from "node:fs"
import { openat2Beneath } from "../../../linux/files.ts"
import { entry, errorCode, lstatIn, openFile, withDir } from "../../effects/beneath.ts"
import { baseOf, type BytePath, fromBuffer, join, parentOf, ROOT, toNative } from "../../effects/names.ts"
import { type ActsAs, may, MAY } from "./permission.ts"
import type { Sight } from "./sight.ts"

/** Why there is no answer. */
export type FileFault =
  | "absent"
  /** not the call's to see, whether it is there or not */
  | "hidden"
  /** a link leads out of the workspace, or another file system is mounted there */
  | "outside"
  | "not_a_file"
  | "not_a_folder"
  /** the workspace's owner may not */
  | "forbidden"
  /** swapped while it was being opened */
  | "changed"
  | "too_large"
  | "too_many"
  /** the call has written all that it may */
  | "full"
  /** the call is over */
  | "ended"

/** Stays within this room; a verb answers with its fault. */
export class Refused extends Error {
  readonly fault: FileFault
  constructor(fault: FileFault) {
    super(fault)
    this.fault = fault
  }
}

/** An entry, and the descriptor of the tree that has it. */
export interface Found {
  readonly path: BytePath
  readonly root: number
  readonly stats: BigIntStats
}
/** Nothing is there, and its folder is. */
export interface Free {
  readonly path: BytePath
  readonly root?: undefined
}

const FAULTS: Readonly<Record<string, FileFault>> = {
  ENOENT: "absent",
  ENOTDIR: "absent",
  ELOOP: "changed",
  EXDEV: "outside",
  EACCES: "forbidden",
  EPERM: "forbidden",
  EINVAL: "changed",
  ENAMETOOLONG: "absent",
}
/** What the kernel says of an entry, in our words; anything else is a fault of the machine's. */
export const refusing = <T>(look: () => T): T => {
  try {
    return look()
  } catch (error) {
    const fault = FAULTS[errorCode(error)]
    throw fault === undefined ? error : new Refused(fault)
  }
}

const MAX_LINKS = 40
const partsOf = (path: BytePath): BytePath[] => path.split("/") as BytePath[]
const plain = (parts: readonly BytePath[]): BytePath =>
  parts.filter((part) => part !== "" && part !== ".").join("/") as BytePath

export class Tree {
  readonly #lower: number
  readonly #sight: Sight
  readonly #as: ActsAs
  /** of the layer; undefined while nothing was written */
  upper: number | undefined
  constructor(lower: number, sight: Sight, as: ActsAs) {
    this.#lower = lower
    this.#sight = sight
    this.#as = as
  }

  get trees(): readonly number[] {
    return this.upper === undefined ? [this.#lower] : [this.upper, this.#lower]
  }

  /** Without following a link, and without asking whether the call may see it. */
  lookIn(root: number, path: BytePath): BigIntStats | undefined {
    if (path === ROOT) return lstatSync(`/proc/self/fd/${root}/.`, { bigint: true })
    try {
      return refusing(() => withDir(root, parentOf(path), (dir) => lstatIn(dir, baseOf(path))))
    } catch (error) {
      if (error instanceof Refused && error.fault === "absent") return undefined
      throw error
    }
  }

  #look(path: BytePath): Found | Free {
    let made: Found | undefined
    for (const root of this.trees) {
      const stats = this.lookIn(root, path)
      if (stats === undefined) continue
      // Folders of the layer are copies, which the host alone works in: what is true of one is said by what it copies.
      if (root !== this.upper || !stats.isDirectory()) return { path, root, stats }
      made = { path, root, stats }
    }
    return made ?? { path }
  }

  sees(path: BytePath, isFolder: boolean): boolean {
    return isFolder ? this.#sight.seesFolder(path) : this.#sight.seesFile(path)
  }
  #isSeen(found: Found | Free): boolean {
    const { path } = found
    return found.root === undefined
      ? this.sees(path, false) || this.sees(path, true)
      : this.sees(path, found.stats.isDirectory())
  }

  demand({ path, root, stats }: Found, want: number): void {
    const allowed = refusing(() =>
      path === ROOT
        ? may(this.#as, Buffer.from(`/proc/self/fd/${root}/.`), stats, want)
        : withDir(root, parentOf(path), (dir) => may(this.#as, entry(dir, baseOf(path)), stats, want)),
    )
    if (!allowed) throw new Refused("forbidden")
  }

  /** What a path leads to, links followed. */
  find(path: BytePath): Found | Free {
    const left = partsOf(path)
    if (!left.includes(".." as BytePath) && !this.#isSeen({ path: plain(left) })) throw new Refused("hidden")
    let links = 0
    let here = this.#look(ROOT)
    for (let name = left.shift(); name !== undefined; name = left.shift()) {
      if (name === "" || name === ".") continue
      if (here.root === undefined) throw new Refused("absent")
      if (!here.stats.isDirectory()) throw new Refused("not_a_folder")
      if (name === "..") {
        if (here.path === ROOT) throw new Refused("outside")
        here = this.#look(parentOf(here.path))
        continue
      }
      this.demand(here, MAY.enter)
      const next = this.#look(join(here.path, name))
      if (!this.#isSeen(next)) throw new Refused("hidden")
      if (next.root === undefined || !next.stats.isSymbolicLink()) {
        here = next
        continue
      }
      links += 1
      const target = this.#targetOf(next)
      if (links > MAX_LINKS || target.startsWith("/")) throw new Refused("outside")
      left.unshift(...partsOf(target))
    }
    return here
  }

  #targetOf({ root, path }: Found): BytePath {
    return refusing(() =>
      withDir(root, parentOf(path), (dir) =>
        fromBuffer(readlinkSync(entry(dir, baseOf(path)), { encoding: "buffer" })),
      ),
    )
  }

  existing(path: BytePath): Found {
    const found = this.find(path)
    if (found.root === undefined) throw new Refused("absent")
    return found
  }

  /** The caller closes it. */
  openFile(found: Found): number {
    if (!found.stats.isFile()) throw new Refused("not_a_file")
    this.demand(found, MAY.read)
    return this.#same(found, () => openFile(found.root, found.path))
  }

  /** The caller closes it. */
  openFolder(root: number, path: BytePath): number {
    return refusing(() =>
      openat2Beneath(
        root,
        toNative(path === ROOT ? ("." as BytePath) : path),
        constants.O_RDONLY | constants.O_DIRECTORY,
      ),
    )
  }

  /** What was opened is what was found. */
  #same({ stats }: Found, open: () => number): number {
    const fd = refusing(open)
    const now = fstatSync(fd, { bigint: true })
    if (now.ino === stats.ino && now.dev === stats.dev) return fd
    closeSync(fd)
    throw new Refused("changed")
  }
}
