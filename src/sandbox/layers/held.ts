/**
 * A call's layer kept on disk after the call, with no process alive, to be written later or never.
 *
 * Guarantees: what is written later is the layer as it was held, on the folder that it was made for, and only if what
 * stood where it writes still stands there: a layer or description that is not what it was is `altered`, another folder
 * at the path is `replaced`, another base is a `conflict`; in each case nothing is written. All of it or nothing, as any
 * commit. A commit of a held layer is named, so that after a crash it can be told whether it stands.
 * Assumes: the folder it is kept in is closed to others. Whoever may write there is the user that the host runs as.
 */
import { createHash } from "node:crypto"
import { closeSync, constants, fsyncSync, openSync, renameSync, writeSync } from "node:fs"
import { dirname, join } from "node:path"
import { bootId } from "../../linux/boot-id.ts"
import { syncfs } from "../../linux/files.ts"
import type { CommitResult } from "../terms.ts"
import { errorCode, openRoot } from "../effects/beneath.ts"
import { type BaseRow, describeBase } from "../effects/commit/base.ts"
import { readOwnFile } from "../effects/commit/recovery/tx-root.ts"
import { type Baseline, commitLayer, type CommitOptions, LayerRefused } from "../effects/index.ts"
import { digestLayer } from "../effects/layer-digest.ts"
import type { WriteSet } from "../effects/types.ts"
import type { XattrPrefix } from "../effects/xattrs.ts"
import { type FolderIdentity, FolderReplaced, type OpenFolder, reopenFolder } from "../folder.ts"
import { HELD } from "./limits.ts"
import { lookAtLayer, type LookBounds, type Looked } from "./look.ts"
import { diskOf, isScarce } from "./meter.ts"
import { isOver, measure } from "./usage.ts"

export interface HoldRequest {
  /** an empty folder of this user's, closed to others, on the file system that layers lie on */
  readonly at: string
  /** the most that it may take there */
  readonly bytes: number
}

/** Plain data: it may cross process borders as JSON. */
export interface HeldLayer {
  /** of the description, which has that of the layer */
  readonly digest: string
  /** what it takes on disk */
  readonly bytes: number
}

export type HoldAnswer =
  | { readonly ok: true; readonly layer: HeldLayer }
  /** nothing was kept; the layer is where it was */
  | { readonly ok: false; readonly message: string }

export interface HeldCommit {
  readonly at: string
  readonly digest: string
  /** of the commit; one that stands leaves a note of this name in the folder of transactions */
  readonly name: string
}

/** Not the folder, or not the layer: nothing was written. */
interface Unfit {
  readonly ok: false
  readonly reason: "replaced" | "altered"
  readonly message: string
}
export type HeldCommitResult = CommitResult | Unfit

interface Description {
  readonly version: 1
  readonly folder: FolderIdentity
  readonly boot: string
  readonly since: Baseline
  readonly xattrPrefix: XattrPrefix
  readonly layer: string
  readonly writes: WriteSet
  readonly base: readonly BaseRow[]
}

const DESCRIPTION = "layer.json"
const LAYER = "upper"

const sha256 = (bytes: Uint8Array): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`

const writeWhole = (file: string, bytes: Uint8Array): void => {
  const fd = openSync(file, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600)
  try {
    for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** On disk with all that lies there, the name that leads to it included. */
const makeDurable = (at: string): void => {
  for (const folder of [at, dirname(at)]) {
    const fd = openRoot(folder)
    try {
      if (folder === at) syncfs(fd)
      else fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
  }
}

interface HoldableLayer {
  readonly folder: OpenFolder
  readonly upper: string
  readonly since: Baseline
  readonly xattrPrefix: XattrPrefix
  readonly writes: WriteSet
}

const no = (message: string): HoldAnswer => ({ ok: false, message })

/** The layer moves to `at`. Where it cannot, it stays; what was begun in `at` is the caller's to remove. */
export const holdLayer = async (held: HoldableLayer, { at, bytes }: HoldRequest): Promise<HoldAnswer> => {
  const { folder, upper, since, xattrPrefix, writes } = held
  if (writes.effects.length > HELD.effects) return no(`it changed more than ${HELD.effects} paths`)
  if (isScarce(diskOf(at))) return no("the disk of the data folder is nearly full")
  const budget = { bytes, allocated: bytes, entries: Number.MAX_SAFE_INTEGER }
  const used = await measure({ folders: [upper], budget })
  if (isOver(used, budget)) return no(`what it wrote takes more than ${bytes} bytes`)
  try {
    const description: Description = {
      version: 1,
      folder: folder.identity,
      boot: bootId(),
      since,
      xattrPrefix,
      layer: await digestLayer(upper),
      writes,
      base: describeBase(folder.fd, writes.effects),
    }
    const text = Buffer.from(JSON.stringify(description))
    const taken = Math.max(used.allocated, used.bytes) + text.length
    if (text.length > HELD.descriptionBytes || taken > bytes) return no(`it takes more than ${bytes} bytes to keep`)
    writeWhole(join(at, DESCRIPTION), text)
    renameSync(upper, join(at, LAYER))
    try {
      makeDurable(at)
    } catch (error) {
      renameSync(join(at, LAYER), upper)
      throw error
    }
    return { ok: true, layer: { digest: sha256(text), bytes: taken } }
  } catch (error) {
    if (!(error instanceof LayerRefused) && errorCode(error) === "") throw error
    return no((error as Error).message)
  }
}

type Read = { readonly ok: true; readonly description: Description } | Unfit

const altered = (message: string): Unfit => ({
  ok: false,
  reason: "altered",
  message,
})

const readDescription = (at: string, digest: string): Read => {
  let dir: number
  try {
    dir = openRoot(at)
  } catch (error) {
    if (errorCode(error) === "ENOENT") return altered("the held layer is gone")
    throw error
  }
  try {
    const bytes = readOwnFile(dir, DESCRIPTION, HELD.descriptionBytes)
    if (bytes === undefined || sha256(bytes) !== digest) return altered("its description is not what it was")
    return { ok: true, description: JSON.parse(bytes.toString("utf8")) as Description }
  } finally {
    closeSync(dir)
  }
}

/** Has the layer's content changed since it was held? */
const isAltered = async (upper: string, digest: string): Promise<boolean> => {
  try {
    return (await digestLayer(upper)) !== digest
  } catch (error) {
    if (errorCode(error) === "ENOENT") return true
    throw error
  }
}

/** What its files hold before and after; undefined where it is not what was held, or not there any more. */
export const lookAtHeld = async (
  { at, digest }: Pick<HeldCommit, "at" | "digest">,
  bounds: LookBounds,
): Promise<readonly Looked[] | undefined> => {
  try {
    const read = readDescription(at, digest)
    if (!read.ok) return undefined
    const { folder, boot, layer, writes } = read.description
    using workspace = reopenFolder(folder, boot !== "" && boot !== bootId())
    const upper = join(at, LAYER)
    if (await isAltered(upper, layer)) return undefined
    return await lookAtLayer(workspace, upper, writes.effects, bounds)
  } catch (error) {
    // The layer may still be whole: there is only nothing to hold it against.
    if (error instanceof FolderReplaced) return []
    if (errorCode(error) !== "") return undefined
    throw error
  }
}

/** Write a held layer to its workspace. The layer stays where it is. `signal` ends a wait for another commit, and no more. */
export const commitHeld = async (
  { at, digest, name }: HeldCommit,
  txRoot: string,
  { signal, failpoint }: Pick<CommitOptions, "signal" | "failpoint"> = {},
): Promise<HeldCommitResult> => {
  try {
    const read = readDescription(at, digest)
    if (!read.ok) return read
    const { folder, boot, since, xattrPrefix, layer, writes, base } = read.description
    using workspace = reopenFolder(folder, boot !== "" && boot !== bootId())
    const upper = join(at, LAYER)
    if (await isAltered(upper, layer)) return altered("what it holds is not what was held")
    return await commitLayer({
      workspace,
      upper,
      writeSet: writes,
      txRoot,
      since,
      xattrPrefix,
      base,
      name,
      signal,
      ...(failpoint === undefined ? {} : { failpoint }),
    })
  } catch (error) {
    if (error instanceof FolderReplaced) return { ok: false, reason: "replaced", message: error.message }
    return { ok: false, reason: "failed", message: error instanceof Error ? error.message : String(error) }
  }
}
