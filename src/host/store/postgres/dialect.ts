/**
 * The store's own few words of SQL, and its values, as PostgreSQL takes them.
 *
 * Guarantees: texts come back as they went, also those with a NUL, which PostgreSQL has no room for; they are compared
 * byte by byte, as SQLite does. A number that no verb can have written reads as 0. Pure.
 * Assumes: SQL of `src/host/store` alone, whose literals hold neither `?` nor the word `user`.
 */
import type { CustomTypesConfig } from "pg"
import type { SqlValue } from "../verb.ts"

const words = (sql: string): string => sql.replaceAll(/\buser\b/g, '"user"')

/** A step of the tables. */
export const tableStep = (sql: string): string =>
  words(sql)
    .replaceAll("STRICT, WITHOUT ROWID", "")
    .replaceAll(/\bTEXT\b/g, 'TEXT COLLATE "C"')
    .replaceAll(/\bINTEGER\b/g, "BIGINT")
    .replaceAll(/\bREAL\b/g, "DOUBLE PRECISION")

interface Prepared {
  /** under which a session keeps its plan */
  readonly name: string
  readonly text: string
}
const known = new Map<string, Prepared>()

export const statementOf = (sql: string): Prepared => {
  const found = known.get(sql)
  if (found !== undefined) return found
  let count = 0
  const text = words(sql).replaceAll("?", () => `$${(count += 1)}`)
  const prepared = { name: `caisson_${known.size + 1}`, text }
  known.set(sql, prepared)
  return prepared
}

/** No character, and yet well-formed: stands before `0` for a NUL, before `1` for itself. */
const MARK = "\uFFFE"

export const written = (value: SqlValue): SqlValue =>
  typeof value === "string" && /[\0\uFFFE]/.test(value)
    ? value.replaceAll(MARK, `${MARK}1`).replaceAll("\0", `${MARK}0`)
    : value

const text = (value: string): string =>
  value.includes(MARK) ? value.replaceAll(`${MARK}0`, "\0").replaceAll(`${MARK}1`, MARK) : value

const MOST = 8_640_000_000_000_000
const whole = (value: string): number => {
  const number = Number(value)
  return number >= 0 && number <= MOST ? number : 0
}

const BIGINT = 20
const INTEGER = 23
const DOUBLE = 701

export const types: CustomTypesConfig = {
  getTypeParser: (oid: number) => (oid === BIGINT || oid === INTEGER ? whole : oid === DOUBLE ? Number : text),
}
