/**
 * Changes that come at once, committed at once: what a commit costs is the disk's word for it, and one word does for many.
 *
 * Guarantees: changes take place in the order they were asked for, each whole or not at all: one that fails takes nothing of
 * the others with it. Each is told of when the commit that it is in stands. Where a commit of many fails, each is tried by
 * itself, so that one that a full disk has no room for costs no other. In between, the event loop goes on.
 */
import type { DatabaseSync } from "node:sqlite"
import { setImmediate as turn } from "node:timers/promises"
import { hostLimits } from "../../limits.ts"
import { StoreUnavailable } from "../store.ts"

type Change<T> = (db: DatabaseSync) => T
/** In one transaction: committed when it resolves. */
type Commit = <T>(work: Change<T>) => Promise<T>

interface Asked {
  readonly change: Change<unknown>
  readonly done: (value: unknown) => void
  readonly failed: (error: unknown) => void
}

const isOfSqlite = (error: unknown): boolean => (error as { code?: unknown }).code === "ERR_SQLITE_ERROR"

/** Answers how to tell it, once the commit stands. */
const within = (db: DatabaseSync, { change, done, failed }: Asked): (() => void) => {
  db.exec("SAVEPOINT one")
  try {
    const value = change(db)
    db.exec("RELEASE one")
    return () => done(value)
  } catch (error) {
    // What the engine itself says no to may be no fault of this change alone.
    if (isOfSqlite(error) || !db.isTransaction) throw error
    db.exec("ROLLBACK TO one; RELEASE one")
    return () => failed(error)
  }
}

interface Group {
  readonly write: Commit
  /** Resolves once nothing waits any more. */
  idle(): Promise<void>
}

export const groupCommits = (commit: Commit): Group => {
  const waiting: Asked[] = []
  let running: Promise<void> | undefined
  const alone = async ({ change, done, failed }: Asked): Promise<void> => {
    try {
      done(await commit(change))
    } catch (error) {
      failed(error)
    }
  }
  const together = async (group: readonly Asked[]): Promise<void> => {
    let told: readonly (() => void)[]
    try {
      told = await commit((db) => group.map((asked) => within(db, asked)))
    } catch (error) {
      if (error instanceof StoreUnavailable && error.kind === "busy")
        return group.forEach(({ failed }) => failed(error))
      for (const asked of group) await alone(asked)
      return
    }
    for (const tell of told) tell()
  }
  const run = async (): Promise<void> => {
    while (waiting.length > 0) {
      await turn()
      const group = waiting.splice(0, hostLimits.storeGroup.value)
      const [first] = group
      if (first !== undefined) await (group.length === 1 ? alone(first) : together(group))
    }
    running = undefined
  }
  return {
    write: <T>(change: Change<T>): Promise<T> =>
      new Promise<T>((resolve, reject) => {
        waiting.push({ change, done: (value) => resolve(value as T), failed: reject })
        running ??= run()
      }),
    idle: async () => await running,
  }
}
