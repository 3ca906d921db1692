/**
 * Files of the workspace, copied to where a program finds them.
 *
 * Guarantees: each is opened once, below the workspace's own descriptor, and what was opened is what is copied and told by
 * its digest: whatever happens to its path afterwards. No link is followed, wherever it leads; nothing that the driver must
 * not see, the workspace's owner may not read, or that is no regular file is handed over. All of them or an error.
 */
import { closeSync, constants, fchmodSync, fchownSync } from "node:fs"
import { openat2Beneath } from "../../../linux/files.ts"
import { type BytePath, fromBuffer, parentOf, ROOT, toNative } from "../../effects/names.ts"
import type { Identity } from "../owner-maps.ts"
import { Refused, type Tree } from "../hosted/tree.ts"
import { copyBytes } from "./copy.ts"
import type { Exchange, StagedInput, StagingFault } from "../../exchange.ts"

/** An input cannot be handed over. */
export class NotStaged extends Error {
  readonly file: { readonly name: string; readonly path: string; readonly fault: StagingFault }
  constructor(file: NotStaged["file"]) {
    super(`${file.name}: ${file.fault}`)
    this.file = file
  }
}

const prefixesOf = (path: BytePath): BytePath[] => {
  const found: BytePath[] = []
  for (let up = path; up !== ROOT; up = parentOf(up)) found.unshift(up)
  return found
}

/** The caller closes it. */
const openInput = (tree: Tree, path: BytePath): number | "link" => {
  const [root = -1] = tree.trees
  // By what stands there now; what is opened in the end is opened without following any.
  if (prefixesOf(path).some((prefix) => tree.lookIn(root, prefix)?.isSymbolicLink() === true)) return "link"
  return tree.openFile(tree.existing(path))
}

interface StagingOptions {
  /** the workspace, as the driver may see it */
  readonly tree: Tree
  /** descriptor of the folder that they are put into */
  readonly folder: number
  readonly inputs: Exchange["inputs"]
  /** as root: who the program runs as */
  readonly owner: Identity | undefined
  /** bytes of all of them */
  readonly most: number
}

export const stageInputs = async (options: StagingOptions): Promise<readonly StagedInput[]> => {
  const staged: StagedInput[] = []
  let left = options.most
  for (const input of options.inputs) {
    const done = await stageOne(options, input, left)
    staged.push(done)
    left -= done.size
  }
  return staged
}

const stageOne = async (
  { tree, folder, owner }: StagingOptions,
  { name, path, writable }: Exchange["inputs"][number],
  most: number,
): Promise<StagedInput> => {
  const refuse = (fault: StagingFault): NotStaged => new NotStaged({ name, path, fault })
  using open = new DisposableStack()
  const opened = (fd: number): number => {
    open.defer(() => closeSync(fd))
    return fd
  }
  let from: number | "link"
  try {
    from = openInput(tree, fromBuffer(Buffer.from(path)))
  } catch (error) {
    throw error instanceof Refused ? refuse(error.fault) : error
  }
  if (from === "link") throw refuse("link")
  opened(from)
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL
  const to = opened(openat2Beneath(folder, toNative(fromBuffer(Buffer.from(name))), flags, 0o600))
  const copied = await copyBytes(from, to, most)
  if (!copied.ok) throw refuse(copied.fault)
  if (owner !== undefined) fchownSync(to, owner.uid, owner.gid)
  fchmodSync(to, writable ? 0o644 : 0o444)
  return { name, path, size: copied.size, digest: copied.digest }
}
