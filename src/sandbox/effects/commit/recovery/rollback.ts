/**
 * Undoing a journal from whatever state it was left in.
 *
 * Guarantees: works from the file system's state alone, so it can be run again after a crash of its own; with no other
 * program at work the workspace is exactly as before. A path that another program changed after the crash is left as
 * that program made it and reported; the entry that belongs there stays in the transaction's folder.
 */
import { closeSync, type BigIntStats } from "node:fs"
import { errorCode, lstatIn, openDir, withDir } from "../../beneath.ts"
import { baseOf, parentOf, parseName } from "../../names.ts"
import { setAttributes } from "../apply.ts"
import { fingerprint, isFolder, isSame, type Identity } from "../identity.ts"
import type { Journal, Operation } from "./journal.ts"
import { absolute, exchange, place, type Place } from "../moves.ts"
import type { Staging } from "../staging.ts"

type Attributes = Extract<Operation, { kind: "attributes" }>
const OWNER_ALL = 0o700

/**
 * Paths that another program changed meanwhile; empty when the workspace is as before. Without `staging` (somebody took it
 * away) no entry can be moved back, and all of them count.
 */
export const rollBack = (
  root: number,
  staging: Staging | undefined,
  journal: Journal,
  failpoint: (name: string) => void = () => {},
): string[] => {
  const foreign: string[] = []
  const operations = journal.operations.toReversed()
  const attributes = operations.filter((operation) => operation.kind === "attributes")
  for (const operation of attributes) openUp(root, operation)
  for (const operation of [...operations.filter(({ kind }) => kind !== "attributes"), ...attributes]) {
    failpoint("undo")
    if (!undo(root, staging, operation)) foreign.push(operation.path)
  }
  return foreign.sort()
}

/** The commit may have shut a folder that entries must be moved in and out of; its old mode comes back at the end. */
const openUp = (root: number, operation: Attributes): void => {
  if (!isFolder(operation.was) || (operation.mode.after & OWNER_ALL) === OWNER_ALL) return
  const path = parseName(operation.path)
  try {
    withDir(root, parentOf(path), (dir) => {
      const now = lstatIn(dir, baseOf(path))
      if (now === undefined || !isSame(operation.was, now) || !knownMode(operation, now)) return
      setAttributes({ dir, name: baseOf(path) }, operation.was, {}, {}, (Number(now.mode) & 0o7777) | OWNER_ALL)
    })
  } catch (error) {
    if (!["ENOENT", "ENOTDIR", "ELOOP", "EXDEV"].includes(errorCode(error))) throw error
  }
}

const knownMode = ({ mode }: Attributes, now: BigIntStats): boolean => {
  const current = Number(now.mode) & 0o7777
  return [mode.before, mode.after, mode.before | OWNER_ALL, mode.after | OWNER_ALL].includes(current)
}

/** False where another program stands in the way. */
const undo = (root: number, staging: Staging | undefined, operation: Operation): boolean => {
  const path = parseName(operation.path)
  let dir: number
  try {
    dir = openDir(root, parentOf(path))
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ELOOP", "EXDEV"].includes(errorCode(error))) return false
    throw error
  }
  try {
    const target: Place = { dir, name: baseOf(path) }
    const now = lstatIn(dir, target.name)
    if (operation.kind === "attributes") return undoAttributes(operation, target, now)
    return staging !== undefined && undoMove(operation, target, now, staging)
  } finally {
    closeSync(dir)
  }
}

const look = ({ dir, name }: Place): BigIntStats | undefined => lstatIn(dir, name)

const undoMove = (
  operation: Exclude<Operation, { kind: "attributes" }>,
  target: Place,
  now: BigIntStats | undefined,
  staging: Staging,
): boolean => {
  const slot = staging.slot(operation.slot)
  const inSlot = look(slot)
  if (operation.kind === "remove") {
    if (inSlot === undefined) return true
    if (now !== undefined) return false
    place(slot, target)
    return true
  }
  const staged = inSlot !== undefined && isSame(operation.made, inSlot)
  if (operation.kind === "put") {
    if (staged || now === undefined) return true
    if (!isOurs(operation, target, now)) return false
    place(target, slot)
    return true
  }
  const old = staging.old(operation.slot)
  if (staged) {
    // Not begun, or taken out without the new entry put in yet.
    if (look(old) === undefined) return true
    if (now !== undefined) return false
    place(old, target)
    return true
  }
  const held = inSlot === undefined ? old : slot
  const aside = staging.aside(operation.slot)
  if (look(held) === undefined) return isSame(operation.was, now)
  if (now === undefined && look(aside) !== undefined) {
    place(held, target)
    return true
  }
  if (!isOurs(operation, target, now)) return false
  if (held === slot && exchange(slot, target)) return true
  place(target, aside)
  place(held, target)
  return true
}

/** Is the entry the one that this transaction put there, unchanged since? */
const isOurs = (
  operation: { readonly made: Identity; readonly tree?: string },
  target: Place,
  now: BigIntStats | undefined,
): boolean =>
  isSame(operation.made, now) && (operation.tree === undefined || operation.tree === fingerprint(absolute(target)))

const undoAttributes = (operation: Attributes, target: Place, now: BigIntStats | undefined): boolean => {
  if (now === undefined || !isSame(operation.was, now)) return false
  if (!knownMode(operation, now)) return false
  try {
    setAttributes(target, operation.was, operation.xattrs.after, operation.xattrs.before, operation.mode.before)
    return true
  } catch (error) {
    if (["ENOENT", "ELOOP"].includes(errorCode(error))) return false
    throw error
  }
}
