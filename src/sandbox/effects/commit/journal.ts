/**
 * The record of one commit: what will be done, with enough identity to undo it from any state in between.
 *
 * A transaction folder holds `slots/N` (staged content before an operation, the old entry after it), `old/N` (the old
 * entry where the file system cannot exchange two names), `journal`, and `done` once everything is applied. Without
 * `journal` nothing was touched; with it and without `done`, undo; with `done`, only cleaning is left. Cleaning
 * begins by renaming the folder to `trash-…`, in one step.
 * Assumes: the folder is private to this user (mode 0700, owner checked on recovery).
 */
import { createHash, randomUUID } from "node:crypto"
import {
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  writeSync,
} from "node:fs"
import { join } from "node:path"
import type { Identity } from "./identity.ts"
import { ensureFolder } from "./tx-root.ts"

export type Values = Readonly<Record<string, string>>
/** Paths are in the lossless text form of `names.ts`; attribute values in base64. */
export type Operation =
  /** slot → a name that is free */
  | {
      readonly kind: "put"
      readonly path: string
      readonly slot: number
      readonly made: Identity
      readonly tree?: string
    }
  /** slot ↔ an entry that exists */
  | {
      readonly kind: "replace"
      readonly path: string
      readonly slot: number
      readonly was: Identity
      readonly made: Identity
      readonly tree?: string
    }
  /** an entry → slot */
  | { readonly kind: "remove"; readonly path: string; readonly slot: number; readonly was: Identity }
  /** mode and extended attributes, in place */
  | {
      readonly kind: "attributes"
      readonly path: string
      readonly was: Identity
      readonly mode: { readonly before: number; readonly after: number }
      readonly xattrs: { readonly before: Values; readonly after: Values }
    }

export interface Journal {
  readonly version: 1
  readonly workspace: string
  readonly operations: readonly Operation[]
}

/** Names the transactions of one workspace in a root shared by many, by whatever path it was reached. */
export const workspaceKey = (workspace: string): string =>
  createHash("sha256").update(realpathSync(workspace)).digest("hex").slice(0, 24)

export class Transaction {
  readonly root: string
  readonly name: string
  readonly dir: string
  constructor(root: string, name: string) {
    this.root = root
    this.name = name
    this.dir = join(root, name)
  }

  static begin(root: string, workspace: string): Transaction {
    ensureFolder(root)
    const transaction = new Transaction(root, `tx-${workspaceKey(workspace)}-${randomUUID()}`)
    for (const dir of ["", "slots", "old"]) mkdirSync(join(transaction.dir, dir), { mode: 0o700 })
    // The marker exists beforehand, so that the last step needs no new space on a full disk.
    closeSync(openSync(join(transaction.dir, "done.tmp"), "wx", 0o600))
    return transaction
  }

  slot(slot: number): string {
    return join(this.dir, "slots", String(slot))
  }
  old(slot: number): string {
    return join(this.dir, "old", String(slot))
  }

  /** After this returns, a crash is undone by recovery. */
  write(journal: Journal): void {
    const fd = openSync(join(this.dir, "journal.tmp"), "wx", 0o600)
    try {
      const bytes = Buffer.from(JSON.stringify(journal))
      for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(join(this.dir, "journal.tmp"), join(this.dir, "journal"))
    syncFolder(this.dir)
    syncFolder(this.root)
  }

  read(): Journal | undefined {
    const file = join(this.dir, "journal")
    return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Journal) : undefined
  }

  /** After this returns, a crash leaves the workspace as committed. */
  finish(): void {
    renameSync(join(this.dir, "done.tmp"), join(this.dir, "done"))
    syncFolder(this.dir)
  }
  get finished(): boolean {
    return existsSync(join(this.dir, "done"))
  }
}

export const syncFolder = (dir: string): void => {
  const fd = openSync(dir, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
