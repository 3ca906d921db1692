/**
 * The store's tables on a PostgreSQL, in a schema of their own: made, or brought to this version.
 *
 * Guarantees: of hosts that come at once one does it, in one transaction, and none while a host of another version is
 * connected. Tables of a newer version, or of another program, are left as they are and refused.
 */
import { Client } from "pg"
import { StoreUnavailable } from "../store.ts"
import { tables } from "../tables.ts"
import { tableStep } from "./dialect.ts"
import { configOf, VERSION_LOCK } from "./sessions.ts"
import type { PostgresSettings } from "./settings.ts"

/** Which transactions were committed, for whoever did not hear it. */
const outcomes = `CREATE TABLE outcomes (id TEXT COLLATE "C" PRIMARY KEY, at TIMESTAMPTZ NOT NULL DEFAULT now());
  CREATE INDEX outcomes_by_at ON outcomes (at)`

/** `steps[n]` brings version n to version n + 1. */
export const steps: readonly string[] = tables.map(tableStep)

const LEAST_SERVER = 150_000

interface Found {
  readonly server: number
  readonly encoding: string
  readonly standby: boolean
  readonly schema: boolean
  readonly ours: boolean
  readonly others: number
}

const look = async (client: Client): Promise<Found> => {
  const { rows } = await client.query<Record<keyof Found, unknown>>(
    `SELECT current_setting('server_version_num')::int AS server, current_setting('server_encoding') AS encoding,
       (pg_is_in_recovery())::int AS standby, (to_regnamespace('caisson') IS NOT NULL)::int AS schema,
       (to_regclass('caisson.version') IS NOT NULL)::int AS ours,
       (SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace('caisson')) AS others`,
  )
  const [found] = rows
  return {
    server: Number(found?.server),
    encoding: String(found?.encoding),
    standby: found?.standby === 1,
    schema: found?.schema === 1,
    ours: found?.ours === 1,
    others: Number(found?.others),
  }
}

const refuse = (where: string, { server, encoding, standby, ours, others }: Found): void => {
  const refused = (kind: StoreUnavailable["kind"], what: string, fix: string): never => {
    throw new StoreUnavailable(kind, `the store on ${where} cannot be used: ${what}`, fix)
  }
  if (server < LEAST_SERVER)
    refused("trouble", `the server's version is ${Math.floor(server / 10_000)}`, "use PostgreSQL 15 or later")
  if (encoding !== "UTF8")
    refused("trouble", `the database's encoding is ${encoding}`, "make one with ENCODING 'UTF8' TEMPLATE template0")
  if (standby) refused("unreachable", "the server is a standby", "name the primary in the URL, or promote this one")
  if (!ours && others > 0)
    refused(
      "foreign",
      "its schema `caisson` is not of this program",
      "use a database of its own, or rename that schema",
    )
}

const versionIn = async (client: Client, where: string): Promise<number> => {
  const { rows } = await client.query<{ version: number }>("SELECT version FROM caisson.version")
  const version = rows[0]?.version ?? 0
  if (version > steps.length)
    throw new StoreUnavailable(
      "newer",
      `the store on ${where} was written by a newer version of this program (schema ${version}; this one knows ${steps.length})`,
      "use that version, or a database of its own",
    )
  return version
}

const migrate = async (client: Client, where: string, wanted: readonly string[]): Promise<void> => {
  await client.query("BEGIN")
  await client.query(`SELECT pg_advisory_xact_lock(${VERSION_LOCK})`)
  const found = await look(client)
  refuse(where, found)
  if (!found.schema) await client.query("CREATE SCHEMA caisson")
  if (!found.ours)
    await client.query(`CREATE TABLE version (version BIGINT NOT NULL); INSERT INTO version VALUES (0); ${outcomes}`)
  for (const step of wanted.slice(await versionIn(client, where))) await client.query(step)
  await client.query(`UPDATE version SET version = ${wanted.length}`)
  await client.query("COMMIT")
}

/** Answers the version that the tables have then. */
export const bringTables = async (settings: PostgresSettings, where: string, wanted = steps): Promise<number> => {
  const client = new Client(configOf(settings))
  // What breaks is told to whoever waits for an answer.
  client.on("error", () => undefined)
  try {
    await client.connect()
    const found = await look(client)
    refuse(where, found)
    if (!found.ours || (await versionIn(client, where)) < wanted.length) await migrate(client, where, wanted)
    return wanted.length
  } finally {
    await client.end().catch(() => undefined)
  }
}
