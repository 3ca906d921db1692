/**
 * Carrying out a journal's operations on the workspace.
 *
 * Guarantees: every operation acts below a folder descriptor opened without symlinks; what was moved out is looked at
 * once more, and if it is not what the journal says, the operation counts as a conflict. The caller rolls back.
 */
import { chmodSync, closeSync, constants, fstatSync, fsyncSync, openSync } from "node:fs"
import { openat2Beneath, removexattrOf, setxattrOf } from "../../../linux/files.ts"
import { errorCode, lstatIn, openDir, withDir } from "../beneath.ts"
import { baseOf, parentOf, parseName, toNative, type BytePath } from "../names.ts"
import { unchangedBelow } from "./check.ts"
import { type Identity, isFolder, isSame } from "./identity.ts"
import type { Operation, Values } from "./recovery/journal.ts"
import { absolute, exchange, place, type Place } from "./moves.ts"
import type { Staging } from "./staging.ts"

export class Conflict extends Error {
  readonly path: string
  constructor(path: string) {
    super(`${path} changed underneath`)
    this.path = path
  }
}

interface ApplyContext {
  readonly root: number
  readonly staging: Staging
  readonly since: bigint
  readonly failpoint: (name: string) => void
}

export const apply = (operation: Operation, context: ApplyContext): void => {
  const path = parseName(operation.path)
  const dir = openParent(context.root, path, operation.path)
  try {
    const target: Place = { dir, name: baseOf(path) }
    if (operation.kind === "attributes") applyAttributes(operation, target)
    else applyMove(operation, target, context)
  } catch (error) {
    if (["EEXIST", "ENOENT", "ENOTDIR", "ELOOP", "ENOTEMPTY"].includes(errorCode(error)))
      throw new Conflict(operation.path)
    throw error
  } finally {
    closeSync(dir)
  }
}

const openParent = (root: number, path: BytePath, shown: string): number => {
  try {
    return openDir(root, parentOf(path))
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ELOOP", "EXDEV"].includes(errorCode(error))) throw new Conflict(shown)
    throw error
  }
}

const applyMove = (
  operation: Exclude<Operation, { kind: "attributes" }>,
  target: Place,
  context: ApplyContext,
): void => {
  const slot = context.staging.slot(operation.slot)
  if (operation.kind === "put") {
    place(slot, target)
    return
  }
  let out = slot
  if (operation.kind === "remove") place(target, slot)
  else if (!exchange(slot, target)) {
    out = context.staging.old(operation.slot)
    place(target, out)
    context.failpoint("between")
    place(slot, target)
  }
  context.failpoint("moved")
  const stats = lstatIn(out.dir, out.name)
  const changedInside = isFolder(operation.was) && !unchangedBelow(absolute(out), context.since)
  if (!isSame(operation.was, stats) || changedInside) throw new Conflict(operation.path)
}

const applyAttributes = (operation: Extract<Operation, { kind: "attributes" }>, target: Place): void => {
  setAttributes(target, operation.was, operation.xattrs.before, operation.xattrs.after, operation.mode.after)
}

/** By inode: the entry is opened without following a link and must be the one that is meant; else `ENOENT`. */
export const setAttributes = (target: Place, was: Identity, from: Values, to: Values, mode: number): void => {
  const O_PATH = 0o10000000
  const fd = openat2Beneath(target.dir, toNative(target.name), O_PATH | constants.O_NOFOLLOW)
  try {
    const stats = fstatSync(fd, { bigint: true })
    if (!isSame(was, stats)) throw Object.assign(new Error("ENOENT: the entry was swapped"), { code: "ENOENT" })
    setXattrs(fd, from, to)
    if ((Number(stats.mode) & 0o7777) !== mode) chmodSync(`/proc/self/fd/${fd}`, mode)
  } finally {
    closeSync(fd)
  }
}

const setXattrs = (fd: number, from: Values, to: Values): void => {
  for (const name of new Set([...Object.keys(from), ...Object.keys(to)])) {
    const value = to[name]
    if (value === from[name]) continue
    if (value !== undefined) setxattrOf(fd, name, Buffer.from(value, "base64"))
    else {
      try {
        removexattrOf(fd, name)
      } catch (error) {
        if (errorCode(error) !== "ENODATA") throw error
      }
    }
  }
}

/** The folders that the operations changed, made durable. */
export const syncParents = (root: number, operations: readonly Operation[]): void => {
  for (const parent of new Set(operations.map((operation) => parentOf(parseName(operation.path))))) {
    withDir(root, parent, (dir) => {
      const fd = openSync(`/proc/self/fd/${dir}`, constants.O_RDONLY | constants.O_DIRECTORY)
      try {
        fsyncSync(fd)
      } finally {
        closeSync(fd)
      }
    })
  }
}
