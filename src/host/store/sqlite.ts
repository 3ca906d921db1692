/**
 * The store of one host: SQLite, in the data folder.
 *
 * Guarantees: see `store.ts`; processes on one data folder share it.
 */
import { hostLimits } from "../limits.ts"
import { carryOut } from "./sqlite/rows.ts"
import type { Schema } from "./sqlite/schema.ts"
import { openSqliteFile } from "./sqlite/sqlite-file.ts"
import { singleHost, type Store } from "./store.ts"
import { storeOn } from "./store-on.ts"
import { tables } from "./tables.ts"
import type { Engine, Verb } from "./verb.ts"

export const schema: Schema = { applicationId: 0x43616973, steps: tables }

export interface SqliteStoreOptions {
  /** how long another process is waited for */
  readonly waitMs?: number
  /** settled calls that are remembered */
  readonly settled?: number
}

export const openSqliteStore = async (
  file: string,
  { waitMs = hostLimits.storeWaitMs.value, settled = hostLimits.settledCalls.value }: SqliteStoreOptions = {},
): Promise<Store> => {
  const open = await openSqliteFile(file, schema, waitMs)
  const write = <T>(begin: () => Verb<T>): Promise<T> => open.write((db) => carryOut(db, begin()))
  const engine: Engine = {
    owner: singleHost.owner,
    read: (begin) => open.read((db) => carryOut(db, begin())),
    write,
    repeatable: write,
    async [Symbol.asyncDispose]() {
      await open.idle()
      open[Symbol.dispose]()
    },
  }
  return storeOn(engine, settled)
}
