/**
 * What files hold before and after a call, for a person who is to decide about it: looked at, never written.
 *
 * Guarantees: both sides are reached by descriptors, below the workspace's and the layer's folders, without following a
 * link; only regular files are read, and of them no more than the bounds. What cannot be read says so, and hides nothing
 * else. Base and layer are looked at as they are now: whoever commits later checks by itself that they are still that.
 */
import { closeSync, fstatSync, readSync } from "node:fs"
import { errorCode, openFile, openRoot } from "../effects/beneath.ts"
import { parseRelative } from "../effects/names.ts"
import type { Effect } from "../effects/types.ts"
import type { OpenFolder } from "../folder.ts"

export interface LookBounds {
  /** of one side of one file */
  readonly fileBytes: number
  /** of all that is read */
  readonly totalBytes: number
  readonly files: number
}
/** One side of a file. `size` is what it holds, whether or not it is told. */
export interface Side {
  readonly size: number
  /** absent: it is larger than the bounds, is no text, or cannot be read */
  readonly text?: string
  readonly why?: "binary" | "large" | "unreadable"
}
export interface Looked {
  readonly path: string
  readonly before?: Side
  readonly after?: Side
}

const CONTENT = new Set<Effect["kind"]>(["create", "modify", "delete", "rename", "hardlink"])

const decoder = new TextDecoder("utf-8", { fatal: true })
const textOf = (bytes: Buffer): string | undefined => {
  if (bytes.includes(0)) return undefined
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

class Budget {
  left: number
  readonly #most: number
  constructor({ totalBytes, fileBytes }: LookBounds) {
    this.left = totalBytes
    this.#most = fileBytes
  }
  read(fd: number): Side {
    const { size } = fstatSync(fd)
    if (size > this.#most || size > this.left) return { size, why: "large" }
    const bytes = Buffer.alloc(size)
    let done = 0
    while (done < size) {
      const read = readSync(fd, bytes, done, size - done, done)
      if (read === 0) break
      done += read
    }
    this.left -= done
    const text = textOf(bytes.subarray(0, done))
    return text === undefined ? { size, why: "binary" } : { size, text }
  }
}

/** Undefined where there is no regular file. */
const sideOf = (root: number, path: string, budget: Budget): Side | undefined => {
  const bytePath = parseRelative(path)
  if (bytePath === undefined) return undefined
  let fd: number
  try {
    fd = openFile(root, bytePath)
  } catch (error) {
    return ["ENOENT", "ENOTDIR", "EINVAL", "ELOOP", "ENXIO"].includes(errorCode(error))
      ? undefined
      : { size: 0, why: "unreadable" }
  }
  try {
    return budget.read(fd)
  } catch {
    return { size: 0, why: "unreadable" }
  } finally {
    closeSync(fd)
  }
}

/** Deletions first, as they are shown; what the bounds leave no room for is left out. */
export const lookAtLayer = async (
  folder: OpenFolder,
  upper: string,
  effects: readonly Effect[],
  bounds: LookBounds,
): Promise<readonly Looked[]> => {
  const budget = new Budget(bounds)
  const looked: Looked[] = []
  const of = effects.filter(({ kind }) => CONTENT.has(kind))
  const ordered = [...of.filter(({ kind }) => kind === "delete"), ...of.filter(({ kind }) => kind !== "delete")]
  const [base, layer] = [openRoot(folder), openRoot(upper)]
  try {
    for (const { kind, path, from } of ordered.slice(0, bounds.files)) {
      if (budget.left <= 0) break
      const before = kind === "create" ? undefined : sideOf(base, from ?? path, budget)
      const after = kind === "delete" ? undefined : sideOf(layer, path, budget)
      // A rename whose content the layer shares with its base: there is nothing to show but the name.
      looked.push({ path, ...(before === undefined ? {} : { before }), ...(after === undefined ? {} : { after }) })
      await new Promise((resolve) => setImmediate(resolve))
    }
    return looked
  } finally {
    closeSync(base)
    closeSync(layer)
  }
}
