/**
 * What became of a commit that was given a name, for whoever named it to find after a crash, and to remove.
 *
 * Guarantees: `finished-<name>` is there, on disk, before a commit that stands is cleaned up; `undone-<name>` before one
 * that a crash broke off and that was put back is. The latter says since when its entries are what they were: putting
 * them back renewed their records.
 * Assumes: the caller holds the folder's lock while noting. Notes lie in the folder of transactions.
 */
import { closeSync } from "node:fs"
import { unlinkat } from "../../../../linux/files.ts"
import { lstatIn, namesIn } from "../../beneath.ts"
import { fromBuffer } from "../../names.ts"
import type { Baseline } from "../baseline.ts"
import { COMMIT_NAME } from "./journal.ts"
import { writeDurably } from "../staging.ts"
import { findTxRoot, readOwnFile } from "./tx-root.ts"

const FINISHED = "finished-"
const UNDONE = "undone-"
const NOTE_BYTES = 64

export const noteFinished = (root: number, name: string): void =>
  writeDurably(root, `${FINISHED}${name}`, Buffer.alloc(0))
export const noteUndone = (root: number, name: string, since: Baseline): void =>
  writeDurably(root, `${UNDONE}${name}`, Buffer.from(since.sinceNs))

/** Since when the entries of a commit that was undone are what they were; undefined where none was. */
export const undoneAt = (root: number, name: string): Baseline | undefined => {
  if (!COMMIT_NAME.test(name)) throw new Error("a commit's name has letters and digits")
  const sinceNs = readOwnFile(root, `${UNDONE}${name}`, NOTE_BYTES)?.toString("latin1") ?? ""
  return /^\d{1,20}$/.test(sinceNs) ? { sinceNs } : undefined
}

const isThere = (root: number, name: string): boolean => lstatIn(root, fromBuffer(Buffer.from(name))) !== undefined

/** By the folder's path; where no commit has made it yet there is no note. */
const inRoot = <T>(txRoot: string, none: T, look: (root: number) => T): T => {
  const root = findTxRoot(txRoot)
  if (root === undefined) return none
  try {
    return look(root)
  } finally {
    closeSync(root)
  }
}

/** Does the commit of that name stand? Known once the folder that it wrote to was recovered. */
export const hasFinished = (txRoot: string, name: string): boolean =>
  inRoot(txRoot, false, (root) => COMMIT_NAME.test(name) && isThere(root, `${FINISHED}${name}`))

export const forgetNotes = (txRoot: string, name: string): void =>
  inRoot(txRoot, undefined, (root) => {
    if (!COMMIT_NAME.test(name)) return
    for (const note of [`${FINISHED}${name}`, `${UNDONE}${name}`]) if (isThere(root, note)) unlinkat(root, note)
  })

/** Names of commits that there are notes of. */
export const notedCommits = (txRoot: string): readonly string[] =>
  inRoot(txRoot, [], (root) => [
    ...new Set(namesIn(root).flatMap((name) => /^(?:finished|undone)-([0-9A-Za-z]{1,64})$/.exec(name)?.[1] ?? [])),
  ])
