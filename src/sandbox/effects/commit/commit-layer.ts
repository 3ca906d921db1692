/**
 * Writing a judged layer to its workspace: all of it or nothing.
 *
 * Guarantees: a crash, a full disk or an I/O error at any instant leaves the workspace as it was or as committed, the
 * latter only after every entry is in place (recovery finishes what a crash interrupted). Nothing that changed
 * underneath since the call began is overwritten: that is a `conflict`, and nothing is committed (`check.ts` says what
 * can be told). No symlink is ever followed. Effects marked `refused` make the whole commit fail. All goes to the folder
 * that is held open; if its path leads elsewhere by now, nothing is committed.
 * Takes turns with other work of the process, however much there is to write.
 * Assumes: the writers of the layer are dead, the write set is the one read from it, and only paths that passed
 * judgement are in it or pass `only`. Readers at work during the commit may see some entries new and others old, each
 * whole; a program that holds an old file open and writes to it after the check writes to the old file.
 */
import { closeSync, fstatSync, lstatSync, type BigIntStats } from "node:fs"
import type { CommitResult } from "../../terms.ts"
import { FolderReplaced, folderKey, isStillThere, openFolder, type OpenFolder } from "../../folder.ts"
import { syncfsApart } from "../../../linux/files.ts"
import { entry, lstatIn, withDir } from "../beneath.ts"
import { takingTurns } from "../breath.ts"
import { baseOf, below, displayName, parentOf } from "../names.ts"
import type { WriteSet } from "../types.ts"
import { readAttributes, type Xattrs, type XattrPrefix } from "../xattrs.ts"
import { apply, Conflict, syncParents } from "./apply.ts"
import { type BaseRow, changedSince } from "./base.ts"
import { type Baseline, beginSnapshot } from "./baseline.ts"
import { check, movedFolders, type Checked } from "./check.ts"
import { fingerprint, identify } from "./identity.ts"
import type { Journal, Operation, Values } from "./recovery/journal.ts"
import { type LockOptions, withFolderLock } from "./lock.ts"
import { absolute } from "./moves.ts"
import { layerOwners, ownerOf } from "./owners.ts"
import { noteFinished, noteUndone, undoneAt } from "./recovery/notes.ts"
import { plan, type Keep, type Move } from "./plan.ts"
import { rollBack } from "./recovery/rollback.ts"
import { Stage } from "./stage.ts"
import type { Staging } from "./staging.ts"
import { DATA_FOLDER, tellingAt, toldAt } from "./told.ts"
import { Transaction } from "./transaction.ts"
import { openTxRoot } from "./recovery/tx-root.ts"

export interface CommitOptions extends LockOptions {
  readonly workspace: string | OpenFolder
  readonly upper: string
  readonly writeSet: WriteSet
  readonly txRoot: string
  /** from `beginSnapshot`, taken before the overlay was mounted */
  readonly since: Baseline
  readonly xattrPrefix: XattrPrefix
  /** commit these paths only (home layers) */
  readonly only?: Keep
  /** what stood there when it was described; anything else now is a conflict too */
  readonly base?: readonly BaseRow[]
  /** the layer goes when the commit is over, however that ends: what it holds may be moved instead of copied */
  readonly takes?: boolean
  /** a commit of that name leaves a note when it stands, or when a crash made it be undone (`notes.ts`) */
  readonly name?: string
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
    using own = typeof options.workspace === "string" ? openFolder(options.workspace) : undefined
    const folder = own ?? (options.workspace as OpenFolder)
    const txRoot = openTxRoot(options.txRoot)
    try {
      return await withFolderLock(txRoot, folderKey(folder.identity), options, () => {
        if (!isStillThere(folder)) throw new FolderReplaced(folder.path)
        return commitLocked(folder, txRoot, moves, options)
      })
    } finally {
      closeSync(txRoot)
    }
  } catch (error) {
    return failed(error)
  }
}

const failed = (error: unknown): CommitResult => ({
  ok: false,
  reason: "failed",
  message: error instanceof Error ? error.message : String(error),
})

const commitLocked = async (
  folder: OpenFolder,
  txRoot: number,
  moves: readonly Move[],
  options: CommitOptions,
): Promise<CommitResult> => {
  const root = folder.fd
  const failpoint = options.failpoint ?? (() => {})
  const undone = options.name === undefined ? undefined : undoneAt(txRoot, options.name)
  const since = BigInt((undone ?? options.since).sinceNs)
  const looking = { root, upper: options.upper, prefix: options.xattrPrefix, since }
  const moved = movedFolders(looking)
  const turns = takingTurns()
  const checked: Checked[] = []
  for (const move of moves) {
    await turns.take()
    checked.push(check(move, looking, moved))
  }
  const conflicts = [
    ...(options.base === undefined
      ? []
      : changedSince(root, options.writeSet.effects, options.base, undone !== undefined)),
    ...checked.filter((item) => item.conflict).map((item) => displayName(item.move.path)),
  ]
  if (conflicts.length > 0) return { ok: false, reason: "conflict", paths: [...new Set(conflicts)] }

  failpoint("begin")
  using transaction = tellingAt(DATA_FOLDER, () =>
    Transaction.begin(txRoot, folderKey(folder.identity), root, failpoint),
  )
  const { staging } = transaction
  if (staging === undefined) throw new Error("a new transaction is not staged anywhere")
  let journal: Journal
  try {
    const many = moves.reduce((total, move) => total + move.content.length, 0) > MANY
    const stage = new Stage(options.upper, options.xattrPrefix, { durable: !many, takes: options.takes === true })
    journal = {
      version: 2,
      folder: folder.identity,
      operations: await prepare(root, checked, staging, stage, options, failpoint),
      ...(options.name === undefined ? {} : { name: options.name }),
    }
    failpoint("staged")
    if (many) await syncfsApart(root)
    tellingAt(DATA_FOLDER, () => transaction.write(journal))
  } catch (error) {
    transaction.clean()
    return failed(error)
  }
  try {
    failpoint("journal")
    for (const operation of journal.operations) {
      await turns.take()
      tellingAt(operation.path, () => apply(operation, { root, staging, since, failpoint }))
      failpoint("applied")
    }
    if (journal.operations.length > MANY) await syncfsApart(root)
    else syncParents(root, journal.operations)
    failpoint("synced")
    transaction.finish()
  } catch (error) {
    return undoAll(folder, txRoot, transaction, journal, error, failpoint)
  }
  cleanAfterwards(transaction, txRoot, journal, failpoint)
  return { ok: true }
}

/** The commit stands; what cannot be noted or cleaned now is by the next recovery. */
const cleanAfterwards = (
  transaction: Transaction,
  txRoot: number,
  { name }: Journal,
  failpoint: (name: string) => void,
): void => {
  try {
    failpoint("done")
    if (name !== undefined) noteFinished(txRoot, name)
    failpoint("noted")
    transaction.clean(failpoint)
    failpoint("cleaned")
  } catch {
    return
  }
}

const undoAll = (
  folder: OpenFolder,
  txRoot: number,
  transaction: Transaction,
  journal: Journal,
  cause: unknown,
  failpoint: (name: string) => void,
): CommitResult => {
  let foreign: readonly string[]
  try {
    foreign = rollBack(folder.fd, transaction.staging, journal, failpoint)
    if (journal.name !== undefined && foreign.length === 0) noteUndone(txRoot, journal.name, beginSnapshot(folder))
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return {
      ok: false,
      reason: "unknown",
      message: `the commit stopped half-way and will be undone by the next call: ${why}`,
    }
  }
  if (foreign.length > 0) transaction.keepAside()
  else transaction.clean()
  return cause instanceof Conflict ? { ok: false, reason: "conflict", paths: [cause.path] } : failed(cause)
}

/** Stage all content and write down every operation with the identities of both sides. */
const prepare = async (
  root: number,
  checked: readonly Checked[],
  staging: Staging,
  stage: Stage,
  options: CommitOptions,
  failpoint: (name: string) => void,
): Promise<Operation[]> => {
  const owners = layerOwners(fstatSync(root), options.upper)
  const operations: Operation[] = []
  const turns = takingTurns()
  for (const [slot, { move, was, parent }] of checked.entries()) {
    await turns.take()
    const path = displayName(move.path)
    if (move.kind === "remove" && was !== undefined) operations.push({ kind: "remove", path, slot, was: identify(was) })
    else if (move.kind === "attributes" && was !== undefined && isAlone(was) && owners.keeps(move.path, was))
      operations.push(attributesOperation(root, move, was, options))
    else {
      const place = staging.slot(slot)
      const content = move.kind === "attributes" ? [move.path] : move.content
      try {
        await stage.stage(content, place, ownerOf(owners, move.path, was, parent))
      } catch (error) {
        throw toldAt(path, error)
      }
      failpoint("slot")
      const made = lstatIn(place.dir, place.name)
      if (made === undefined) throw new Error(`nothing was staged for ${path}`)
      const tree = made.isDirectory() ? { tree: fingerprint(absolute(place)) } : {}
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

/** Mode and attributes belong to all names of a file; one of them may lie outside the workspace. */
const isAlone = (was: BigIntStats): boolean => was.isDirectory() || was.nlink === 1n

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
