/**
 * One statement to PostgreSQL, in a transaction of its own.
 *
 * Guarantees: what is bound is never part of the text, and more than one statement is refused by the protocol itself. The
 * transaction only reads unless the contract changes something; a statement that an input carries always only reads,
 * stands where nothing but a query can stand, and is asked as nobody who may run programs or touch files there, or become
 * somebody who may. It does not go on in the database for longer than its call may take.
 * It is kept with COMMIT where all went well, and else rolled back. Does not: know what functions of the database do that
 * its own rules for a read-only transaction let through.
 */
import type * as Pg from "pg"
import { shown } from "../../../manifest/values/diagnostics.ts"
import type { DatabaseCall, JsonObject, JsonValue } from "../../../manifest/types.ts"
import type { Failure, Success } from "../../failure.ts"
import type { Desk, KindCall } from "../kind.ts"
import { accountFor, noStatement, refusal, tooManyRows, tooMuch } from "./answers.ts"
import { goneMs, maxRows, wordChars } from "./limits.ts"
import { shaped, valueOf } from "./rows.ts"
import { openSession, type Session } from "./postgres-session.ts"

const bound = (value: JsonValue | undefined): string | null => {
  if (value === undefined || value === null) return null
  return typeof value === "object" ? JSON.stringify(value) : String(value)
}

/**
 * Whoever is one of these, or may become one by a word in a query, reaches beyond the database's own rules: a member of a
 * role can take it, a slot of replication outlives every transaction. Asks the server besides to end what nobody waits for.
 */
const MIGHTY = `SELECT EXISTS (SELECT FROM pg_roles r WHERE pg_has_role(session_user, r.oid, 'MEMBER')
  AND (r.rolsuper OR r.rolreplication OR r.rolname IN ('pg_execute_server_program', 'pg_read_server_files',
  'pg_write_server_files'))) AS mighty,
  (SELECT count(set_config(name, '${goneMs}', false)) FROM pg_settings WHERE name = 'client_connection_check_interval') AS told`

const fields = (result: Pg.QueryArrayResult<(string | null)[]>): readonly JsonObject[] =>
  result.rows.map((row) =>
    Object.fromEntries(result.fields.map(({ name, dataTypeID }, i) => [name, valueOf(dataTypeID, row[i] ?? null)])),
  )

const raw = { getTypeParser: () => (text: string) => text } as never

const stateOf = (error: unknown): string | undefined => {
  const code: unknown =
    typeof error === "object" && error !== null && "severity" in error && "code" in error ? error.code : undefined
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

const failed = (error: unknown, { isTooMuch }: Session, isSent: boolean): Failure => {
  if (isTooMuch()) return tooMuch
  const state = stateOf(error)
  if (state === "25006")
    return refusal(
      "the statement changes something, and the tool's contract changes nothing",
      "the operator can declare what it changes: `mutates` of its annotation",
    )
  if (state !== undefined)
    return {
      ok: false,
      code: state === "57014" ? "timeout" : "upstream_error",
      message: `the database refused the statement: ${shown(error instanceof Error ? error.message : "", wordChars)}`,
      hint: "read `details.sqlstate`",
      undone: true,
      details: { sqlstate: state },
    }
  return {
    ok: false,
    code: "upstream_error",
    message: "the connection to the database broke off",
    details: { sent: isSent, ...(isSent ? { commit: "unknown" } : {}) },
    ...(isSent ? {} : { undone: true as const }),
  }
}

interface Question {
  readonly text: string
  readonly values: readonly (string | null)[]
  readonly isForeign: boolean
}

const questionOf = (database: DatabaseCall, input: JsonObject): Question | Failure => {
  const { statement, bind, sqlInput } = database
  if (statement !== undefined)
    return { text: statement, values: bind.map((field) => bound(input[field])), isForeign: false }
  const sql = input[sqlInput ?? ""]
  if (typeof sql !== "string" || sql.trim() === "") return noStatement(sqlInput ?? "")
  // On lines of its own, so that no comment of it hides what closes it.
  return { text: `SELECT * FROM (\n${sql}\n) AS asked LIMIT ${maxRows + 1}`, values: [], isForeign: true }
}

export const askPostgres = async (call: KindCall, database: DatabaseCall, desk: Desk): Promise<Success | Failure> => {
  const { tool, input } = call
  const question = questionOf(database, input)
  if ("ok" in question) return question
  const account = await accountFor(call, database, desk)
  if (!account.ok) return account
  const opened = await openSession(desk, database, account.value, tool.timeoutMs)
  if (!opened.ok) return opened.code === "egress_denied" ? { ...opened, undone: true } : opened
  await using session = opened.value
  const { client } = session
  const isWriting = tool.mutates.length > 0 && !question.isForeign
  let isSent = false
  try {
    await client.query(isWriting ? "BEGIN READ WRITE" : "BEGIN READ ONLY")
    // Also fixes the snapshot: from here on no statement can make the transaction one that writes.
    const { rows } = await client.query<{ mighty: boolean }>(MIGHTY)
    if (question.isForeign && rows[0]?.mighty !== false)
      return refusal(
        "the database account may run programs or touch files there, replicate, or become one that may, and a statement of a caller's is not asked as such",
        "set the secret to an account that may only read the tables it needs",
      )
    isSent = isWriting
    const result = await client.query<(string | null)[]>({
      text: question.text,
      values: [...question.values],
      rowMode: "array",
      types: raw,
      queryMode: "extended",
    } as Pg.QueryArrayConfig)
    if (result.rows.length > maxRows) return tooManyRows(true)
    const value = shaped(fields(result), tool.outputs)
    await client.query(isWriting ? "COMMIT" : "ROLLBACK")
    desk.note({ rows: result.rows.length, transaction: isWriting ? "read write" : "read only" })
    return { ok: true, value, notes: [] }
  } catch (error) {
    return failed(error, session, isSent)
  }
}
