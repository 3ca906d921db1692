/**
 * Writing a judged layer to its workspace: all of it or nothing.
 *
 * Guarantees: a crash, a full disk or an I/O error at any instant leaves the workspace as it was or as committed, the
 * latter only after every entry is in place (recovery finishes what a crash interrupted). Nothing that changed
 * underneath since the call began is overwritten: that is a `conflict`, and nothing is committed (`check.ts` says what can be told). No symlink is ever
 * followed. Effects marked `refused` make the whole commit fail.
 * Assumes: the writers of the layer are dead, the write set is the one read from it, and only paths that passed
 * judgement are in it or pass `only`. Readers at work during the commit may see some entries new and others old, each
 * whole; a program that holds an old file open and writes to it after the check writes to the old file.
 */
import { lstatSync, statSync, type BigIntStats } from "node:fs"
import type { CommitResult } from "../../backend.ts"
import { syncfs } from "../../syscalls.ts"
import { baseOf, below, displayName, parentOf } from "../names.ts"
import type { WriteSet } from "../types.ts"
import { readAttributes, type Xattrs, type XattrPrefix } from "../xattrs.ts"
import { apply, Conflict, syncParents } from "./apply.ts"
import type { Baseline } from "./baseline.ts"
import { check, movedFolders, type Checked } from "./check.ts"
import { clean, keepAside } from "./clean.ts"
import { fingerprint, identify } from "./identity.ts"
import { Transaction, type Journal, type Operation, type Values } from "./journal.ts"
import { withWorkspaceLock } from "./lock.ts"
import { plan, type Keep, type Move } from "./plan.ts"
import { rollBack } from "./rollback.ts"
import { Stage, type Owner } from "./stage.ts"
import { entry, withDir } from "../beneath.ts"

export interface CommitOptions {
  readonly workspace: string
  readonly upper: string
  readonly writeSet: WriteSet
  readonly txRoot: string
  /** from `beginSnapshot`, taken before the overlay was mounted */
  readonly since: Baseline
  readonly xattrPrefix: XattrPrefix
  /** owner of new entries; the workspace root's where not given */
  readonly owner?: Owner
  /** commit these paths only (home layers) */
  readonly only?: Keep
  /** called at every step that a crash could follow; tests stop or fail the commit there */
  readonly failpoint?: (name: string) => void
}

/** Above so many entries one sync of the file system is cheaper than one for each. */
const MANY = 4

export const commitLayer = async (options: CommitOptions): Promise<CommitResult> => {
  const only = options.only ?? (() => true)
  const refused = options.writeSet.effects.find((effect) => effect.refused !== undefined && only(effect.path))
  if (refused !== undefined) return { ok: false, reason: "failed", message: `${refused.path}: ${refused.refused}` }
  const moves = plan(options.writeSet.effects, only)
  if (moves.length === 0) return { ok: true }
  try {
    return await withWorkspaceLock(options.workspace, (root) => commitLocked(root, moves, options))
  } catch (error) {
    return failed(error)
  }
}

const failed = (error: unknown): CommitResult => ({
  ok: false,
  reason: "failed",
  message: error instanceof Error ? error.message : String(error),
})

const commitLocked = async (root: number, moves: readonly Move[], options: CommitOptions): Promise<CommitResult> => {
  const failpoint = options.failpoint ?? (() => {})
  const since = BigInt(options.since.sinceNs)
  const looking = { root, upper: options.upper, prefix: options.xattrPrefix, since }
  const moved = movedFolders(looking)
  const checked = moves.map((move) => check(move, looking, moved))
  const conflicts = checked.filter((item) => item.conflict).map((item) => displayName(item.move.path))
  if (conflicts.length > 0) return { ok: false, reason: "conflict", paths: conflicts }

  failpoint("begin")
  const transaction = Transaction.begin(options.txRoot, options.workspace)
  let journal: Journal
  try {
    const many = moves.reduce((total, move) => total + move.content.length, 0) > MANY
    const stage = new Stage(options.upper, options.xattrPrefix, !many)
    journal = {
      version: 1,
      workspace: options.workspace,
      operations: await prepare(root, checked, transaction, stage, options, failpoint),
    }
    failpoint("staged")
    if (many) syncfs(root)
    transaction.write(journal)
  } catch (error) {
    clean(transaction)
    return failed(error)
  }
  try {
    failpoint("journal")
    for (const operation of journal.operations) {
      apply(operation, { root, transaction, since, failpoint })
      failpoint("applied")
    }
    if (journal.operations.length > MANY) syncfs(root)
    else syncParents(root, journal.operations)
    failpoint("synced")
    transaction.finish()
  } catch (error) {
    return undoAll(root, transaction, journal, error, failpoint)
  }
  cleanAfterwards(transaction, failpoint)
  return { ok: true }
}

/** The commit stands; what cannot be cleaned now is cleaned by the next recovery. */
const cleanAfterwards = (transaction: Transaction, failpoint: (name: string) => void): void => {
  try {
    failpoint("done")
    clean(transaction)
    failpoint("cleaned")
  } catch {
    return
  }
}

const undoAll = (
  root: number,
  transaction: Transaction,
  journal: Journal,
  cause: unknown,
  failpoint: (name: string) => void,
): CommitResult => {
  let foreign: readonly string[]
  try {
    foreign = rollBack(root, transaction, journal, failpoint)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return {
      ok: false,
      reason: "unknown",
      message: `the commit stopped half-way and will be undone by the next call: ${why}`,
    }
  }
  if (foreign.length > 0) keepAside(transaction)
  else clean(transaction)
  return cause instanceof Conflict ? { ok: false, reason: "conflict", paths: [cause.path] } : failed(cause)
}

/** Stage all content and write down every operation with the identities of both sides. */
const prepare = async (
  root: number,
  checked: readonly Checked[],
  transaction: Transaction,
  stage: Stage,
  options: CommitOptions,
  failpoint: (name: string) => void,
): Promise<Operation[]> => {
  const rootOwner = options.owner ?? statSync(options.workspace)
  const operations: Operation[] = []
  for (const [slot, { move, was, parent }] of checked.entries()) {
    const path = displayName(move.path)
    if (move.kind === "attributes" && was !== undefined) operations.push(attributesOperation(root, move, was, options))
    else if (move.kind === "remove" && was !== undefined)
      operations.push({ kind: "remove", path, slot, was: identify(was) })
    else {
      await stage.stage(move.content, transaction.slot(slot), ownerOf(rootOwner, was, parent))
      failpoint("slot")
      const made = lstatSync(transaction.slot(slot), { bigint: true })
      const tree = made.isDirectory() ? { tree: fingerprint(Buffer.from(transaction.slot(slot))) } : {}
      if (was === undefined) operations.push({ kind: "put", path, slot, made: identify(made), ...tree })
      else operations.push({ kind: "replace", path, slot, was: identify(was), made: identify(made), ...tree })
    }
  }
  // Modes last: they may shut folders that entries are still to be moved into.
  return [
    ...operations.filter(({ kind }) => kind !== "attributes"),
    ...operations.filter(({ kind }) => kind === "attributes"),
  ]
}

/** A changed file keeps its owner; new entries get the workspace's, and a setgid folder's group. */
const ownerOf = (root: Owner, was: BigIntStats | undefined, parent: BigIntStats | undefined): Owner => {
  if (was !== undefined && !was.isDirectory()) return { uid: Number(was.uid), gid: Number(was.gid) }
  const setgid = parent !== undefined && (Number(parent.mode) & 0o2000) !== 0
  return { uid: root.uid, gid: setgid ? Number(parent.gid) : root.gid }
}

const attributesOperation = (root: number, move: Move, was: BigIntStats, options: CommitOptions): Operation => {
  const upper = below(options.upper, move.path)
  const before = withDir(
    root,
    parentOf(move.path),
    (dir) => readAttributes(entry(dir, baseOf(move.path)), undefined).payload,
  )
  return {
    kind: "attributes",
    path: displayName(move.path),
    was: identify(was),
    mode: { before: Number(was.mode) & 0o7777, after: lstatSync(upper).mode & 0o7777 },
    xattrs: { before: values(before), after: values(readAttributes(upper, options.xattrPrefix).payload) },
  }
}

const values = (xattrs: Xattrs): Values =>
  Object.fromEntries([...xattrs].map(([name, value]) => [name, value.toString("base64")]))
