/**
 * The store on a PostgreSQL, which hosts share.
 *
 * Guarantees: see `../store.ts`. A verb that a serialization failure, a lost connection or a stopped server broke off is done
 * again until its time is over. Where the answer to a commit was lost, it is found out whether it took place before
 * anything is done again: each transaction leaves a word of its own, which whoever looks waits for.
 * Assumes: a primary that keeps what it committed; fsync is its operator's. A pooler between must keep sessions.
 */
import { randomUUID } from "node:crypto"
import { setTimeout as pause } from "node:timers/promises"
import { DatabaseError, type PoolClient } from "pg"
import { hostLimits } from "../../limits.ts"
import { type Store, StoreUnavailable } from "../store.ts"
import { storeOn } from "../store-on.ts"
import type { Answer, Engine, Statement, Verb } from "../verb.ts"
import { bringTables } from "./bring.ts"
import { statementOf, written } from "./dialect.ts"
import { openSessions, type Sessions } from "./sessions.ts"
import type { PostgresSettings } from "./settings.ts"
import { lasting, troubleOf } from "./trouble.ts"

export interface PostgresStoreOptions {
  /** whose rows this host's own are */
  readonly owner: string
  /** how long a verb is tried again */
  readonly waitMs?: number
  /** settled held calls that are remembered, of each tenant of this host */
  readonly settled?: number
  /** sessions at once */
  readonly connections?: number
}

const answer = async (client: PoolClient, { sql, values }: Statement): Promise<Answer> => {
  const { rows, rowCount } = await client.query<Record<string, unknown>>({
    ...statementOf(sql),
    values: values.map(written),
  })
  return { rows, changes: rowCount ?? 0 }
}

const carryOut = async <T>(client: PoolClient, verb: Verb<T>): Promise<T> => {
  for (let step = verb.next(); ; ) {
    if (step.done === true) return step.value
    step = verb.next(await answer(client, step.value))
  }
}

/** The end of a transaction was asked for, and not told. */
class Unsure extends Error {}

/** Gives the session back, whole only where nothing went wrong in it; `spoil` says that something did. */
const inSession = async <T>(
  sessions: Sessions,
  work: (client: PoolClient, spoil: () => void) => Promise<T>,
): Promise<T> => {
  const { client, giveBack } = await sessions.take()
  let isWhole = false
  let isSpoilt = false
  try {
    const result = await work(client, () => (isSpoilt = true))
    isWhole = !isSpoilt
    return result
  } catch (error) {
    // What the server refused is taken back, and the session goes on.
    isWhole =
      error instanceof DatabaseError &&
      troubleOf(error) !== "lost" &&
      (await client.query("ROLLBACK").then(
        () => true,
        () => false,
      ))
    throw error
  } finally {
    giveBack(isWhole)
  }
}

type Ended<B> = B extends () => Verb<infer T> ? T : never
type Made<T> = { readonly result: T } & ({ readonly sure: true } | { readonly sure: false; readonly cause: unknown })

const transaction = <T>(sessions: Sessions, id: string, begin: () => Verb<T>): Promise<Made<T>> =>
  inSession(sessions, async (client, spoil) => {
    await client.query("BEGIN ISOLATION LEVEL SERIALIZABLE")
    const result = await carryOut(client, begin())
    await answer(client, { sql: "INSERT INTO outcomes (id) VALUES (?)", values: [id] })
    try {
      await client.query("COMMIT")
      return { sure: true, result }
    } catch (error) {
      if (troubleOf(error) === "again") throw error
      spoil()
      return { sure: false, result, cause: error }
    }
  })

/** Waits for one that is still under way on the server. */
const tookPlace = (sessions: Sessions, id: string): Promise<boolean> =>
  inSession(sessions, async (client) => {
    await client.query("BEGIN")
    const sql = "INSERT INTO outcomes (id) VALUES (?) ON CONFLICT DO NOTHING"
    const { changes } = await answer(client, { sql, values: [id] })
    await client.query("ROLLBACK")
    return changes === 0
  })

const FORGET = `DELETE FROM outcomes WHERE at < now() - interval '1 hour'`
const FORGET_MS = 600_000

export const openPostgresStore = async (
  settings: PostgresSettings,
  {
    owner,
    waitMs = hostLimits.storeWaitMs.value,
    settled = hostLimits.settledCalls.value,
    connections = hostLimits.postgresConnections.value,
  }: PostgresStoreOptions,
): Promise<Store> => {
  const { host, port, database } = settings
  const where = host.startsWith("/") ? `${host} (${database})` : `${host}:${port} (${database})`
  /** Again and again while what is in the way may pass. */
  const patiently = async <T>(work: () => Promise<T>, isUnsure = () => false): Promise<T> => {
    const deadline = performance.now() + waitMs
    for (let wait = 2; ; wait = Math.min(wait * 2, 250)) {
      try {
        return await work()
      } catch (error) {
        const trouble = error instanceof Unsure ? "lost" : troubleOf(error)
        if (trouble === undefined) throw lasting(where, error)
        if (performance.now() > deadline) throw late(trouble, error as Error, isUnsure())
      }
      await pause(wait * (0.5 + Math.random()))
    }
  }
  const late = (trouble: "again" | "lost" | "busy", error: Error, isUnsure: boolean): StoreUnavailable => {
    const unsure = isUnsure ? "; whether what was asked was kept is not known" : ""
    return trouble === "lost"
      ? new StoreUnavailable(
          "unreachable",
          `the store on ${where} could not be reached for ${waitMs} ms (${error.message})${unsure}`,
          "start the server, or correct the URL in the file that `store.postgres.url_file` names",
        )
      : new StoreUnavailable(
          "busy",
          `the store on ${where} was kept busy by others for ${waitMs} ms (${error.message})`,
          "look for a session that holds its locks (pg_stat_activity), or a host of an older version, then try again",
        )
  }
  const version = await patiently(() => bringTables(settings, where))
  const sessions = openSessions(settings, version, connections)
  let forgotMs = Number.NEGATIVE_INFINITY
  const forget = (): void => {
    if (performance.now() - forgotMs < FORGET_MS) return
    forgotMs = performance.now()
    inSession(sessions, (client) => client.query(FORGET)).catch(() => undefined)
  }
  const repeatable = <T>(begin: () => Verb<T>): Promise<T> =>
    patiently(() => inSession(sessions, (client) => carryOut(client, begin())))
  const engine: Engine = {
    owner,
    read: repeatable,
    repeatable,
    async write(begin) {
      const id = randomUUID()
      /** what was to be committed where nobody heard whether it was */
      let unsure: (() => Ended<typeof begin>) | undefined
      const done = await patiently(
        async () => {
          if (unsure !== undefined && (await tookPlace(sessions, id))) return unsure
          unsure = undefined
          const made = await transaction(sessions, id, begin)
          const result = (): Ended<typeof begin> => made.result
          if (made.sure) return result
          unsure = result
          throw new Unsure("a commit was not answered", { cause: made.cause })
        },
        () => unsure !== undefined,
      )
      forget()
      return done()
    },
    [Symbol.asyncDispose]: () => sessions[Symbol.asyncDispose](),
  }
  return storeOn(engine, settled)
}
