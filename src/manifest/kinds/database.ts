/**
 * `metadata.builtin.database` of a driver entry: one statement to one database, which the host itself asks.
 *
 * Guarantees: the text of the statement is the author's and nothing of a call is put into it; what is bound are fields of
 * the contract's input. Or the statement is an input of its own: then there is no other, and it only reads.
 */
import { mysqlPlaces } from "../sql/mysql-words.ts"
import { joinPath, shown } from "../values/diagnostics.ts"
import type { Report } from "../values/diagnostics.ts"
import { defined, optionalText, text, texts } from "../values/fields.ts"
import type { JsonObject } from "../base-types.ts"

export interface DatabaseCall {
  readonly engine: "postgresql" | "mysql"
  readonly host: string
  readonly port: number
  readonly name: string
  readonly statement?: string
  readonly bind: readonly string[]
  readonly sqlInput?: string
  /** false only where the author wrote so: names, passwords and rows then travel in the clear */
  readonly tls: boolean
}

/** The host's functions, by the database that they ask. MariaDB speaks MySQL's protocol. */
export const DATABASE_HOSTS = { postgresql: "caisson.postgresql", mysql: "caisson.mysql" } as const

/** How many values the statement asks for, and how they are written. */
const places = (engine: DatabaseCall["engine"], statement: string): readonly [count: number, written: string] =>
  engine === "mysql"
    ? [mysqlPlaces(statement), "each `?`"]
    : [Math.max(0, ...[...statement.matchAll(/\$(\d{1,3})/g)].map(([, n]) => Number(n))), "each of `$1`, `$2`, …"]

export function readDatabase(
  engine: DatabaseCall["engine"],
  block: JsonObject,
  path: string,
  report: Report,
): DatabaseCall {
  const refuse = (key: string, message: string, fix: string): void =>
    report.error("database", joinPath(path, key), message, fix)
  const [host = "", port = ""] = text(block, "address").split(":")
  if (!/^[a-z0-9][a-z0-9.-]*$/.test(host) || !(Number(port) >= 1 && Number(port) <= 65_535))
    refuse("address", "it is no address of a host and a port", "write `db.example.com:5432`")
  if (text(block, "name") === "") refuse("name", "the database has no name", "write `name: shop`")
  const statement = optionalText(block, "statement")
  const sqlInput = optionalText(block, "sql_input")
  if ((statement === undefined) === (sqlInput === undefined))
    refuse(
      "statement",
      "a call asks one statement: the author's, or the one of an input",
      "write either `statement` or `sql_input`",
    )
  const bind = texts(block, "bind")
  const [wanted, written] = places(engine, statement ?? "")
  if (statement !== undefined && wanted !== bind.length)
    refuse(
      "bind",
      `the statement names ${wanted} values, and ${bind.length} are bound: ${shown(bind.join(", "), 100)}`,
      `name a field of the input for ${written}, in their order`,
    )
  const tls = block["tls"] !== false
  if (!tls)
    report.warn(
      "database-plaintext",
      joinPath(path, "tls"),
      "the password and the rows travel in the clear",
      "remove `tls: false`",
    )
  return defined({ engine, host, port: Number(port), name: text(block, "name"), statement, bind, sqlInput, tls })
}
