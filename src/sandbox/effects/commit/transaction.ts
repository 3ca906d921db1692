/**
 * One transaction's folder in the data folder, and the states it goes through.
 *
 * It holds `slots` (or `place`, where content had to be staged in the workspace), `journal`, and `done` once everything
 * is applied. Without `journal` nothing was touched; with it and without `done`, undo; with `done`, only cleaning is
 * left. Cleaning begins by renaming the folder to `trash-…`, in one step. `kept-…` holds what could not be put back, and
 * `bad-…` what could not be understood, both for a person to look at.
 * Assumes: the caller holds the folder's lock.
 */
import { randomUUID } from "node:crypto"
import { closeSync, constants, fsyncSync } from "node:fs"
import { openat2Beneath, renameat2 } from "../../../linux/files.ts"
import { lstatIn, namesIn } from "../beneath.ts"
import { fromBuffer, type BytePath } from "../names.ts"
import { JournalMalformed, parseJournal, type Journal } from "./recovery/journal.ts"
import { JOURNAL_BYTES } from "./limits.ts"
import { removeTree } from "./recovery/remove.ts"
import { dropStaging, findStaging, makeStaging, type Staging, writeDurably } from "./staging.ts"
import { isOwnFolder, makePrivateFolder, openFolderIn, readOwnFile } from "./recovery/tx-root.ts"

const TRASH = "trash-"
const KEPT = "kept-"
const BAD = "bad-"
const DONE = "done"
const JOURNAL = "journal"
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const moveFolder = (root: number, from: string, to: string): void => renameat2(root, from, root, to)

const nameOf = (text: string): BytePath => fromBuffer(Buffer.from(text))

/** The transactions of one folder, cleaned ones that were not removed to the end included. */
export const transactionsOf = (root: number, key: string): { live: string[]; trash: string[] } => {
  const mine = (name: string): boolean => name.startsWith(`${key}-`) && UUID.test(name.slice(key.length + 1))
  const names: string[] = namesIn(root)
  return {
    live: names.filter(mine),
    trash: names.filter((name) => name.startsWith(TRASH) && mine(name.slice(TRASH.length))),
  }
}

export class Transaction implements Disposable {
  readonly name: string
  readonly #root: number
  readonly #dir: number
  readonly #workspace: number
  #staging: Staging | undefined
  private constructor(root: number, name: string, dir: number, workspace: number) {
    this.#root = root
    this.name = name
    this.#dir = dir
    this.#workspace = workspace
  }

  /** `root` and `workspace` are descriptors that the caller keeps open. */
  static begin(root: number, key: string, workspace: number, failpoint: (name: string) => void): Transaction {
    const name = `${key}-${randomUUID()}`
    const transaction = new Transaction(root, name, makePrivateFolder(root, name), workspace)
    try {
      const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL
      // The marker exists beforehand, so that the last step needs no new space on a full disk.
      closeSync(openat2Beneath(transaction.#dir, `${DONE}.tmp`, flags, 0o600))
      transaction.#staging = makeStaging(transaction.#dir, workspace, failpoint)
      return transaction
    } catch (error) {
      transaction.clean()
      transaction[Symbol.dispose]()
      throw error
    }
  }

  /** Undefined for what is no folder of ours. Throws `JournalMalformed`. */
  static find(root: number, name: string, workspace: number): Transaction | undefined {
    const dir = openFolderIn(root, name)
    const transaction = new Transaction(root, name, dir, workspace)
    try {
      if (isOwnFolder(dir)) {
        transaction.#staging = understood(() => findStaging(dir, workspace))
        return transaction
      }
    } catch (error) {
      transaction[Symbol.dispose]()
      throw error
    }
    transaction[Symbol.dispose]()
    return undefined
  }

  /** Undefined where what was staged is gone. */
  get staging(): Staging | undefined {
    return this.#staging
  }

  /** After this returns, a crash is undone by recovery. */
  write(journal: Journal): void {
    const bytes = Buffer.from(JSON.stringify(journal))
    if (bytes.length > JOURNAL_BYTES) throw new Error(`the commit needs a journal of more than ${JOURNAL_BYTES} bytes`)
    writeDurably(this.#dir, JOURNAL, bytes)
    fsyncSync(this.#root)
  }

  /** Throws `JournalMalformed`. */
  read(): Journal | undefined {
    const bytes = understood(() => readOwnFile(this.#dir, JOURNAL, JOURNAL_BYTES))
    return bytes === undefined ? undefined : parseJournal(bytes)
  }

  /** After this returns, a crash leaves the workspace as committed. */
  finish(): void {
    renameat2(this.#dir, `${DONE}.tmp`, this.#dir, DONE)
    fsyncSync(this.#dir)
  }
  get finished(): boolean {
    return lstatIn(this.#dir, nameOf(DONE)) !== undefined
  }

  clean(failpoint: (name: string) => void = () => {}): void {
    const trash = this.name.startsWith(TRASH) ? this.name : `${TRASH}${this.name}`
    if (trash !== this.name) moveFolder(this.#root, this.name, trash)
    failpoint("trash")
    if (this.#staging !== undefined) dropStaging(this.#staging, this.#workspace)
    failpoint("dropped")
    removeTree(this.#root, nameOf(trash))
  }

  /** Keep the transaction aside, for a person to look at: it holds entries that could not be put back. */
  keepAside(): { readonly name: string; readonly inside: string | undefined } {
    moveFolder(this.#root, this.name, `${KEPT}${this.name}`)
    return { name: `${KEPT}${this.name}`, inside: this.#staging?.inside?.name }
  }

  [Symbol.dispose](): void {
    this.#staging?.close()
    closeSync(this.#dir)
  }
}

/** Set a transaction aside that cannot be understood, so that it is in nobody's way. */
export const quarantine = (root: number, name: string): string => {
  moveFolder(root, name, `${BAD}${name}`)
  return `${BAD}${name}`
}

const understood = <T>(read: () => T): T => {
  try {
    return read()
  } catch (error) {
    if (error instanceof JournalMalformed || (error as { code?: unknown }).code !== undefined) throw error
    throw new JournalMalformed(error instanceof Error ? error.message : String(error))
  }
}
