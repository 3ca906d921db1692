/**
 * The exchange of files with a sandbox: a folder below its /tmp, filled before its program starts and emptied after it.
 *
 * Guarantees: inputs that the contract does not let the program change are read-only mounts, which nothing inside can
 * write to, replace or take away. Outputs are written to the call's layer as the workspace's owner could, through a view of
 * it that has nothing mounted over it, whatever the driver may see. Without outputs the layer is not touched.
 */
import { chownSync, closeSync, constants, fchmodSync, fchownSync, fstatSync, openSync } from "node:fs"
import { join } from "node:path"
import { mkdirat, openat2Beneath } from "../../../linux/files.ts"
import { MNT_DETACH, MS, mount, umount } from "../../../linux/mounts.ts"
import { openDir, openRoot, withDir } from "../../effects/beneath.ts"
import { baseOf, type BytePath, parentOf, ROOT, toNative } from "../../effects/names.ts"
import { makeFolder } from "../../exact-modes.ts"
import type { Identity } from "../owner-maps.ts"
import { MAY } from "../hosted/permission.ts"
import { sightOf } from "../hosted/sight.ts"
import { Refused, refusing, Tree } from "../hosted/tree.ts"
import type { View } from "../view/view-plan.ts"
import { copyBytes } from "./copy.ts"
import { stageInputs } from "./stage.ts"
import { type Sink, takeOutputs } from "./take.ts"
import { EXCHANGE, type Exchange, type Exchanged, type StagedInput } from "../../exchange.ts"

interface MountedOptions {
  readonly exchange: Exchange
  /** descriptor of the workspace */
  readonly workspace: number
  /** what the driver must not see is not handed over either */
  readonly view: View
  /** where the sandbox's /tmp lies */
  readonly tmp: string
  /** as root: who the sandbox runs as */
  readonly identity: Identity | undefined
  /** bytes of all inputs, and of all outputs */
  readonly most: number
}

/** Everything that is not hidden from the driver, since the contract names the file itself. */
const sightBut = ({ deny }: View) => sightOf({ read: ["**"], deny }, [])

const readOnly = (path: string): void => {
  mount(path, path, null, MS.BIND, null)
  mount("none", path, null, MS.BIND | MS.REMOUNT | MS.RDONLY | MS.NOSUID | MS.NODEV | MS.NOEXEC, null)
}

const withFd = async <T>(fd: number, use: (fd: number) => Promise<T>): Promise<T> => {
  try {
    return await use(fd)
  } finally {
    closeSync(fd)
  }
}

/** Before the program starts. Throws `NotStaged`. */
export const handOver = async (options: MountedOptions): Promise<readonly StagedInput[]> => {
  const { exchange, workspace, view, tmp, identity, most } = options
  const folder = join(tmp, EXCHANGE)
  makeFolder(folder, 0o700)
  const { uid, gid } = fstatSync(workspace)
  const tree = new Tree(workspace, sightBut(view), identity === undefined ? undefined : { uid, gid })
  const staged = await withFd(openRoot(folder), (fd) =>
    stageInputs({ tree, folder: fd, inputs: exchange.inputs, owner: identity, most }),
  )
  for (const { name, writable } of exchange.inputs) if (!writable) readOnly(join(folder, name))
  if (identity !== undefined) chownSync(folder, identity.uid, identity.gid)
  return staged
}

/** Files of the mounted layer, made and written as their owner could. */
class LayerSink implements Sink {
  readonly #root: number
  readonly #tree: Tree
  readonly #owner: Identity
  constructor(root: number, view: View, identity: Identity | undefined) {
    this.#root = root
    this.#owner = identity ?? { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
    this.#tree = new Tree(root, sightBut(view), this.#owner)
  }
  /** Of what is made in a folder: its group is the folder's where that says so. */
  #own(fd: number, mode: number, inFolder: number): void {
    const { uid, gid } = this.#owner
    const inherits = (fstatSync(inFolder).mode & 0o2000) !== 0
    fchownSync(fd, uid, inherits ? fstatSync(fd).gid : gid)
    fchmodSync(fd, mode | (inherits && fstatSync(fd).isDirectory() ? 0o2000 : 0))
  }
  #folder(path: BytePath): void {
    if (path === ROOT) return
    const there = this.#tree.lookIn(this.#root, path)
    if (there?.isDirectory() === true) return
    if (there !== undefined) throw new Refused(there.isSymbolicLink() ? "outside" : "not_a_folder")
    this.#folder(parentOf(path))
    this.#tree.demand(this.#tree.existing(parentOf(path)), MAY.write | MAY.enter)
    refusing(() => withDir(this.#root, parentOf(path), (dir) => mkdirat(dir, toNative(baseOf(path)), 0o755)))
    withDir(this.#root, parentOf(path), (dir) => {
      const made = openat2Beneath(dir, toNative(baseOf(path)), constants.O_RDONLY | constants.O_DIRECTORY)
      try {
        this.#own(made, 0o755, dir)
      } finally {
        closeSync(made)
      }
    })
  }
  #open(path: BytePath): number {
    const there = this.#tree.lookIn(this.#root, path)
    if (there !== undefined) {
      if (there.isSymbolicLink()) throw new Refused("outside")
      if (!there.isFile()) throw new Refused("not_a_file")
      this.#tree.demand(this.#tree.existing(path), MAY.write)
      const flags = constants.O_WRONLY | constants.O_TRUNC | constants.O_NONBLOCK
      return refusing(() => openat2Beneath(this.#root, toNative(path), flags))
    }
    this.#tree.demand(this.#tree.existing(parentOf(path)), MAY.write | MAY.enter)
    const dir = openDir(this.#root, parentOf(path))
    try {
      const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL
      const fd = refusing(() => openat2Beneath(dir, toNative(baseOf(path)), flags, 0o644))
      this.#own(fd, 0o644, dir)
      return fd
    } finally {
      closeSync(dir)
    }
  }
  async put(path: BytePath, from: number, most: number) {
    // Before anything is made: a file that does not fit leaves nothing in its place.
    if (fstatSync(from).size > most) throw new Refused("too_large")
    this.#folder(parentOf(path))
    return withFd(this.#open(path), (to) => copyBytes(from, to, most))
  }
}

interface TakeOptions extends Pick<MountedOptions, "exchange" | "view" | "tmp" | "identity" | "most"> {
  /** where the layer is mounted as a whole */
  readonly merged: string
  /** an empty folder of the caller's, for a mount of it */
  readonly at: string
  readonly staged: readonly StagedInput[]
}

/** After its last process is gone, while the layer is mounted. */
export const takeBack = async ({ exchange, staged, tmp, merged, at, ...rest }: TakeOptions): Promise<Exchanged> => {
  if (exchange.outputs.length === 0) return { inputs: staged, outputs: [] }
  const { view, identity, most } = rest
  makeFolder(at)
  // Not with what is mounted below it: entries that are hidden from the driver are covered there.
  mount(merged, at, null, MS.BIND, null)
  try {
    const outputs = await withFd(openSync(tmp, constants.O_RDONLY | constants.O_DIRECTORY), (root) =>
      withFd(openRoot(at), (layer) =>
        takeOutputs({
          left: { root, folder: EXCHANGE },
          outputs: exchange.outputs,
          staged,
          sink: new LayerSink(layer, view, identity),
          most,
        }),
      ),
    )
    return { inputs: staged, outputs }
  } finally {
    umount(at, MNT_DETACH)
  }
}
