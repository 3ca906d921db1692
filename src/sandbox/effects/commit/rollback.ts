/**
 * Undoing a journal from whatever state it was left in.
 *
 * Guarantees: works from the file system's state alone, so it can be run again after a crash of its own; with no other
 * program at work the workspace is exactly as before. A path that another program changed after the crash is left as
 * that program made it and reported; the entry that belongs there stays in the transaction's folder.
 */
import { closeSync, lstatSync, type BigIntStats } from "node:fs"
import { errorCode, lstatIn, openDir, withDir } from "../beneath.ts"
import { baseOf, parentOf, parseName } from "../names.ts"
import { setMode, setXattrs } from "./apply.ts"
import { fingerprint, isFolder, isSame, type Identity } from "./identity.ts"
import type { Journal, Operation, Transaction } from "./journal.ts"
import { absolute, exchange, place, slotPlace, type Place } from "./moves.ts"

type Attributes = Extract<Operation, { kind: "attributes" }>
const OWNER_ALL = 0o700

/** Paths that another program changed meanwhile; empty when the workspace is as before. */
export const rollBack = (
  root: number,
  transaction: Transaction,
  journal: Journal,
  failpoint: (name: string) => void = () => {},
): string[] => {
  const foreign: string[] = []
  const operations = journal.operations.toReversed()
  const attributes = operations.filter((operation) => operation.kind === "attributes")
  for (const operation of attributes) openUp(root, operation)
  for (const operation of [...operations.filter(({ kind }) => kind !== "attributes"), ...attributes]) {
    failpoint("undo")
    if (!undo(root, transaction, operation)) foreign.push(operation.path)
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
      setMode({ dir, name: baseOf(path) }, operation.was.ino, (Number(now.mode) & 0o7777) | OWNER_ALL)
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
const undo = (root: number, transaction: Transaction, operation: Operation): boolean => {
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
    return operation.kind === "attributes"
      ? undoAttributes(operation, target, now)
      : undoMove(operation, target, now, transaction)
  } finally {
    closeSync(dir)
  }
}

const look = (path: string): BigIntStats | undefined => lstatSync(path, { bigint: true, throwIfNoEntry: false })

const undoMove = (
  operation: Exclude<Operation, { kind: "attributes" }>,
  target: Place,
  now: BigIntStats | undefined,
  transaction: Transaction,
): boolean => {
  const slot = transaction.slot(operation.slot)
  const inSlot = look(slot)
  if (operation.kind === "remove") {
    if (inSlot === undefined) return true
    if (now !== undefined) return false
    place(slotPlace(slot), target)
    return true
  }
  const staged = inSlot !== undefined && isSame(operation.made, inSlot)
  if (operation.kind === "put") {
    if (staged || now === undefined) return true
    if (!isOurs(operation, target, now)) return false
    place(target, slotPlace(slot))
    return true
  }
  const old = transaction.old(operation.slot)
  if (staged) {
    // Not begun, or taken out without the new entry put in yet.
    if (look(old) === undefined) return true
    if (now !== undefined) return false
    place(slotPlace(old), target)
    return true
  }
  const held = inSlot === undefined ? old : slot
  const aside = `${slot}.new`
  if (look(held) === undefined) return isSame(operation.was, now)
  if (now === undefined && look(aside) !== undefined) {
    place(slotPlace(held), target)
    return true
  }
  if (!isOurs(operation, target, now)) return false
  if (held === slot && exchange(slotPlace(slot), target)) return true
  place(target, slotPlace(aside))
  place(slotPlace(held), target)
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
  setXattrs(target, operation.xattrs.after, operation.xattrs.before)
  setMode(target, operation.was.ino, operation.mode.before)
  return true
}
