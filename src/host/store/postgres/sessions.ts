/**
 * Sessions on one PostgreSQL: a bounded number, made when they are needed, and made again after the server was away.
 *
 * Guarantees: a session that failed is never used again; none waits for ever (to connect, for a lock, for an answer, in a
 * transaction that nobody goes on with). Whoever uses a session knows that the tables are of this version and stay so:
 * each holds a lock, shared, that whoever changes the tables needs alone. A commit is on the server's disk when it is told.
 */
import { type ClientConfig, Pool, type PoolClient } from "pg"
import { hostLimits } from "../../limits.ts"
import { StoreUnavailable } from "../store.ts"
import { types } from "./dialect.ts"
import type { PostgresSettings } from "./settings.ts"

/** Of the advisory locks, the one that the tables' version is under. */
export const VERSION_LOCK = "7017280452245743464"

export const configOf = ({ host, port, database, user, password, tls }: PostgresSettings): ClientConfig => ({
  host,
  port,
  database,
  user,
  // As a function it is asked for where the server wants it, and no other place is looked at.
  password: () => password ?? "",
  ssl: tls === undefined ? false : { rejectUnauthorized: true, ...(tls.ca === undefined ? {} : { ca: tls.ca }) },
  application_name: "caisson",
  client_encoding: "UTF8",
  options: "-c search_path=caisson -c standard_conforming_strings=on",
  types,
  keepAlive: true,
  connectionTimeoutMillis: hostLimits.postgresConnectMs.value,
  query_timeout: 2 * hostLimits.postgresStatementMs.value,
  statement_timeout: hostLimits.postgresStatementMs.value,
  lock_timeout: hostLimits.postgresStatementMs.value,
  idle_in_transaction_session_timeout: 2 * hostLimits.postgresStatementMs.value,
})

/** A server that does not wait for its disk by default waits for ours. */
const DURABLE =
  "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"

const prepare = async (client: PoolClient, version: number): Promise<void> => {
  await client.query(DURABLE)
  await client.query(`SELECT pg_advisory_lock_shared(${VERSION_LOCK})`)
  const found = await client.query<{ version: number }>("SELECT version FROM version")
  if (found.rows[0]?.version !== version)
    throw new StoreUnavailable(
      "newer",
      "the store's tables were brought to another version since this host opened them",
      "restart this host with the version of the program that did it",
    )
}

export interface Sessions extends AsyncDisposable {
  /** Throws what the way to the server throws; whoever has a session gives it back, and says whether it is whole. */
  take(): Promise<{ readonly client: PoolClient; readonly giveBack: (isWhole: boolean) => void }>
}

export const openSessions = (settings: PostgresSettings, version: number, most: number): Sessions => {
  const pool = new Pool({
    ...configOf(settings),
    max: most,
    idleTimeoutMillis: hostLimits.postgresIdleMs.value,
    allowExitOnIdle: true,
  })
  // One that nobody used broke; the pool has thrown it away.
  pool.on("error", () => undefined)
  const prepared = new WeakSet<PoolClient>()
  let ended: Promise<void> | undefined
  return {
    async take() {
      if (ended !== undefined)
        throw new StoreUnavailable("trouble", "the store was closed", "make the call on a host that is open")
      const client = await pool.connect()
      // While it is in use nobody else listens: what breaks is told to whoever waits for an answer.
      const quiet = (): void => undefined
      client.on("error", quiet)
      const giveBack = (isWhole: boolean): void => {
        client.off("error", quiet)
        client.release(!isWhole)
      }
      try {
        if (!prepared.has(client)) await prepare(client, version)
        prepared.add(client)
      } catch (error) {
        giveBack(false)
        throw error
      }
      return { client, giveBack }
    },
    async [Symbol.asyncDispose]() {
      await (ended ??= pool.end())
    },
  }
}
