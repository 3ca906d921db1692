/**
 * One statement to MySQL or MariaDB, in a transaction of its own.
 *
 * Guarantees: as `postgres-ask.ts` for PostgreSQL; and since a read-only transaction there is left by procedures, `COMMIT`, `SET`
 * and files of the server, a statement that may change nothing is a query by its words too. What a caller wrote is asked
 * only where the server itself takes it for a query inside another, by an account without rights over the whole
 * server, and without its roles. Does not: take back what tables without transactions kept, DDL and procedures; the
 * failure then does not say that nothing was done.
 */
import type { FieldPacket, QueryResult, ResultSetHeader, RowDataPacket } from "mysql2/promise"
import { shown } from "../../../manifest/values/diagnostics.ts"
import type { DatabaseCall, JsonObject, JsonValue } from "../../../manifest/types.ts"
import type { Failure, Success } from "../../failure.ts"
import type { Desk, KindCall } from "../kind.ts"
import { accountFor, noStatement, refusal, tooManyRows, tooMuch } from "./answers.ts"
import { maxRows, mysqlStatementSeconds, statementChars, wordChars } from "./limits.ts"
import { isMighty, isTakenBack, refusedForeign, refusedReading } from "./mysql-statement.ts"
import { type MysqlSession, openMysql, troubleOf } from "./mysql-session.ts"
import { mysqlValue, shaped } from "./rows.ts"

interface Question {
  readonly text: string
  readonly values: readonly (string | null)[]
  readonly isForeign: boolean
  readonly isWriting: boolean
}

/** Texts all: beside a number, a server takes every other text for 0. */
const bound = (value: JsonValue | undefined): string | null => {
  if (value === undefined || value === null) return null
  if (typeof value === "boolean") return value ? "1" : "0"
  return typeof value === "object" ? JSON.stringify(value) : String(value)
}

const questionOf = ({ tool, input }: KindCall, database: DatabaseCall): Question | Failure => {
  const { statement, bind, sqlInput } = database
  if (statement !== undefined) {
    const isWriting = tool.mutates.length > 0
    const refused = isWriting ? undefined : refusedReading(statement)
    if (refused !== undefined)
      return refusal(
        `the tool's contract changes nothing, and its statement may: ${refused}`,
        "the operator can declare what it changes: `mutates` of its annotation",
      )
    return { text: statement, values: bind.map((field) => bound(input[field])), isForeign: false, isWriting }
  }
  const sql = input[sqlInput ?? ""]
  if (typeof sql !== "string" || sql.trim() === "") return noStatement(sqlInput ?? "")
  const refused = sql.length > statementChars ? "it is too long" : refusedForeign(sql)
  if (refused !== undefined)
    return refusal(`the statement is not asked: ${refused}`, "write one SELECT that calls nothing but plain functions")
  return { text: sql, values: [], isForeign: true, isWriting: false }
}

const READ_ONLY = 1792
const TIMEOUTS = new Set([1317, 1969, 3024])

const failed = (error: unknown, { isTooMuch }: MysqlSession, isSent: boolean, isUndone: boolean): Failure => {
  if (isTooMuch()) return tooMuch
  const trouble = troubleOf(error)
  if (trouble?.errno === READ_ONLY)
    return refusal(
      "the statement changes something, and the tool's contract changes nothing",
      "the operator can declare what it changes: `mutates` of its annotation",
    )
  if (trouble !== undefined)
    return {
      ok: false,
      code: TIMEOUTS.has(trouble.errno) ? "timeout" : "upstream_error",
      message: `the database refused the statement: ${shown(error instanceof Error ? error.message : "", wordChars)}`,
      hint: "read `details.sqlstate`",
      ...(isUndone ? { undone: true as const } : {}),
      details: { sqlstate: trouble.state, ...(isUndone ? {} : { commit: "unknown" }) },
    }
  return {
    ok: false,
    code: "upstream_error",
    message: "the connection to the database broke off",
    details: { sent: isSent, ...(isSent ? { commit: "unknown" } : {}) },
    ...(isSent ? {} : { undone: true as const }),
  }
}

/** From here on the text is read as `mysqlWords` reads it, and every transaction only reads unless it says otherwise. */
const begin = async ({ client }: MysqlSession, { isForeign, isWriting }: Question): Promise<Failure | undefined> => {
  await client.query("SET NAMES utf8mb4")
  await client.query(
    "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', autocommit = 1",
  )
  const [[row]] = await client.query<RowDataPacket[]>("SELECT VERSION() AS version")
  const isMaria = String(row?.["version"]).toLowerCase().includes("mariadb")
  await client.query(
    isMaria
      ? `SET SESSION max_statement_time = ${mysqlStatementSeconds}`
      : `SET SESSION max_execution_time = ${mysqlStatementSeconds * 1000}`,
  )
  if (isForeign) {
    await client.query("SET ROLE NONE")
    const [grants] = await client.query<RowDataPacket[][]>({ sql: "SHOW GRANTS", rowsAsArray: true })
    if (isMighty(grants.map(([grant]: readonly unknown[]) => (typeof grant === "string" ? grant : ""))))
      return refusal(
        "the database account has rights over the server itself, and a statement of a caller's is not asked as such",
        "set the secret to an account that may only read the tables it needs",
      )
    await client.query(`SET SESSION sql_select_limit = ${maxRows + 1}`)
  }
  if (!isWriting) await client.query("SET SESSION TRANSACTION READ ONLY")
  await client.query(isWriting ? "START TRANSACTION READ WRITE" : "START TRANSACTION READ ONLY")
  return undefined
}

const isHeader = (result: unknown): result is ResultSetHeader =>
  typeof result === "object" && result !== null && "affectedRows" in result

/** A procedure answers with several; the first that has rows counts. */
const rowsOf = (result: QueryResult, fields: FieldPacket[]): readonly JsonObject[] => {
  if (isHeader(result)) return []
  const isSeveral = Array.isArray((fields as readonly unknown[])[0])
  const rows = (isSeveral ? (result as unknown[])[0] : result) as readonly unknown[][]
  const names = (isSeveral ? (fields as unknown as FieldPacket[][])[0] : fields)?.map(({ name }) => name) ?? []
  return rows.map((row) => Object.fromEntries(names.map((name, i) => [name, mysqlValue(row[i])])))
}

/** Whether nothing is left of what was begun: tables without transactions are told as a warning. */
const rolledBack = async ({ client }: MysqlSession): Promise<boolean> => {
  try {
    const [done] = await client.query<ResultSetHeader>("ROLLBACK")
    return done.warningStatus === 0
  } catch {
    // It ends with the connection then, but nobody says so.
    return false
  }
}

export const askMysql = async (call: KindCall, database: DatabaseCall, desk: Desk): Promise<Success | Failure> => {
  const { tool } = call
  const question = questionOf(call, database)
  if ("ok" in question) return question
  const account = await accountFor(call, database, desk)
  if (!account.ok) return account
  const opened = await openMysql(desk, database, account.value)
  if (!opened.ok) return opened.code === "egress_denied" ? { ...opened, undone: true } : opened
  await using session = opened.value
  const { client } = session
  const { text, values, isForeign, isWriting } = question
  let isSent = false
  try {
    const refused = await begin(session, question)
    if (refused !== undefined) return refused
    // On lines of its own; the server's grammar has nothing but a query there.
    if (isForeign) await client.prepare(`SELECT EXISTS (\n${text}\n)`)
    isSent = isWriting
    const [result, fields] = await client.execute<QueryResult>({ sql: text, values: [...values], rowsAsArray: true })
    const rows = rowsOf(result, fields)
    if (rows.length > maxRows) return tooManyRows(!isWriting || ((await rolledBack(session)) && isTakenBack(text)))
    const value = shaped(rows, tool.outputs)
    await client.query(isWriting ? "COMMIT" : "ROLLBACK")
    desk.note({
      rows: isHeader(result) ? result.affectedRows : rows.length,
      transaction: isWriting ? "read write" : "read only",
    })
    return { ok: true, value, notes: [] }
  } catch (error) {
    const isUndone = !isWriting || (troubleOf(error) !== undefined && (await rolledBack(session)) && isTakenBack(text))
    return failed(error, session, isSent, isUndone)
  }
}
