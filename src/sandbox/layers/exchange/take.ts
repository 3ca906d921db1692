/**
 * What a program left in its folder of files, written to the call's layer.
 *
 * Guarantees: only plain files are taken, by descriptors below the folder, and no link is followed on either side: what a
 * program put in the folder's place, a link, a pipe, a device or a folder, is told and left. What is written lies in the
 * layer alone, and is read, judged and committed with the rest of it. One that cannot be written does not stop the others.
 * Assumes: nobody writes to the folder or the layer any more.
 */
import { type BigIntStats, closeSync } from "node:fs"
import { errorCode, lstatIn, openFile, withDir } from "../../effects/beneath.ts"
import { type BytePath, fromBuffer } from "../../effects/names.ts"
import { Refused } from "../hosted/tree.ts"
import { type Copied, copyBytes } from "./copy.ts"
import type { Exchange, StagedInput, TakenOutput } from "../../exchange.ts"

/** Where outputs go. */
export interface Sink {
  /** The bytes of an open file, at most so many, as the file at this path. Throws `Refused`, or what the kernel says. */
  put(path: BytePath, from: number, most: number): Promise<Copied>
}

const bytesOf = (text: string): BytePath => fromBuffer(Buffer.from(text))

const KINDS: readonly (readonly [(stats: BigIntStats) => boolean, string])[] = [
  [(stats) => stats.isSymbolicLink(), "a symbolic link"],
  [(stats) => stats.isDirectory(), "a folder"],
  [(stats) => stats.isFIFO(), "a pipe"],
  [(stats) => stats.isSocket(), "a socket"],
]
const kindOf = (stats: BigIntStats): string => KINDS.find(([is]) => is(stats))?.[1] ?? "a device"

/** `folder`: by its name below a descriptor, since the program may have put something else there. */
interface Left {
  readonly root: number
  readonly folder: string
}

const look = ({ root, folder }: Left, name: string): BigIntStats | "not a folder" | undefined => {
  const place = lstatIn(root, bytesOf(folder))
  if (place === undefined) return undefined
  if (!place.isDirectory()) return "not a folder"
  return withDir(root, bytesOf(folder), (dir) => lstatIn(dir, bytesOf(name)))
}

const NO_ROOM = ["ENOSPC", "EDQUOT", "EFBIG"]
const WORDS: Readonly<Record<string, string>> = {
  absent: "a folder on the way is none",
  hidden: "the driver may not see it",
  outside: "a link stands on the way, or another file system",
  not_a_file: "something that is no file is in its place",
  not_a_folder: "a folder on the way is none",
  forbidden: "the workspace's owner may not write there",
  changed: "a link stands on the way",
  too_large: "it is more than the call may write",
}
const whyOf = (error: unknown): string => {
  if (error instanceof Refused) return WORDS[error.fault] ?? error.fault
  const code = errorCode(error)
  return NO_ROOM.includes(code) ? "there is no room for it" : `the system answered ${code || "with an error"}`
}

interface TakingOptions {
  readonly left: Left
  readonly outputs: Exchange["outputs"]
  /** what was handed over: a file that goes out as it came in is not written again */
  readonly staged: readonly StagedInput[]
  readonly sink: Sink
  /** bytes of all of them */
  readonly most: number
}

export const takeOutputs = async ({
  left,
  outputs,
  staged,
  sink,
  most,
}: TakingOptions): Promise<readonly TakenOutput[]> => {
  const taken: TakenOutput[] = []
  let room = most
  for (const output of outputs) {
    const before = staged.find(({ name, path }) => name === output.name && path === output.path)
    const done = await takeOne(left, output, before, sink, room)
    taken.push(done)
    if (done.state === "written") room -= done.size
  }
  return taken
}

const takeOne = async (
  left: Left,
  { name, path }: Exchange["outputs"][number],
  before: StagedInput | undefined,
  sink: Sink,
  most: number,
): Promise<TakenOutput> => {
  const found = look(left, name)
  if (found === undefined) return { name, path, state: "absent" }
  if (found === "not a folder") return { name, path, state: "refused", why: "its folder was replaced" }
  if (!found.isFile()) return { name, path, state: "refused", why: kindOf(found) }
  let from: number
  try {
    from = openFile(left.root, bytesOf(`${left.folder}/${name}`))
  } catch (error) {
    return { name, path, state: "refused", why: `no readable file (${errorCode(error)})` }
  }
  try {
    if (before !== undefined && BigInt(before.size) === found.size) {
      const now = await copyBytes(from, undefined, before.size)
      if (now.ok && now.digest === before.digest) return { ...before, state: "unchanged" }
    }
    const put = await sink.put(bytesOf(path), from, most)
    if (!put.ok) return { name, path, state: "failed", why: WORDS[put.fault] ?? put.fault }
    return { name, path, state: "written", size: put.size, digest: put.digest }
  } catch (error) {
    return { name, path, state: "failed", why: whyOf(error) }
  } finally {
    closeSync(from)
  }
}
