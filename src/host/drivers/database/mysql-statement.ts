/**
 * Statements that MySQL's read-only transaction does not hold by itself: found by their words, before anything is sent.
 *
 * Guarantees: where a call changes nothing, its statement is a query: a procedure, a `COMMIT`, a `SET` or a file of the
 * server would leave that transaction. What a caller wrote is held closer: one query, no locks, no sequences, no
 * variables, and no function but those that only compute. Pure. Does not: parse; the server is asked besides whether what
 * a caller wrote can stand where only a query can.
 */
import { mysqlWords, type SqlWord } from "../../../manifest/sql/mysql-words.ts"
import { beforeBracket } from "./mysql-functions.ts"

/** What of it is refused, in words; undefined: nothing. */
type Refused = string | undefined

const READING = new Set(["SELECT", "WITH", "VALUES", "TABLE", "SHOW", "EXPLAIN", "DESCRIBE", "DESC"])
const CHANGING = new Set(["INSERT", "UPDATE", "DELETE", "REPLACE", "SELECT", "WITH"])

const is = (word: SqlWord | undefined, text: string, kind: SqlWord["kind"] = "word"): boolean =>
  word?.kind === kind && word.text === text

const firstOf = (words: readonly SqlWord[]): string => {
  const first = words.find((word) => !is(word, "(", "mark"))
  return first?.kind === "word" ? first.text : ""
}

const unclosed = "a quote or a comment is not closed"

const leaves = (words: readonly SqlWord[], first: ReadonlySet<string>): Refused => {
  if (words.some(({ kind }) => kind === "command")) return "it has a comment that the server carries out"
  if (!first.has(firstOf(words))) return "it is no query"
  if (words.some((word) => is(word, "INTO"))) return "`INTO` writes files or variables"
  const end = words.findIndex((word) => is(word, ";", "mark"))
  return end === -1 || end === words.length - 1 ? undefined : "it is more than one statement"
}

/** Of the author's statement, where the contract changes nothing. */
export const refusedReading = (sql: string): Refused => {
  const words = mysqlWords(sql)
  return words === undefined ? unclosed : leaves(words, READING)
}

const PAIRS: readonly (readonly [string, string])[] = [
  ["FOR", "UPDATE"],
  ["FOR", "SHARE"],
  ["LOCK", "IN"],
  ["VALUE", "FOR"],
  ["PROCEDURE", "ANALYSE"],
]
const ONE_QUERY = new Set(["SELECT", "WITH"])

const calls = (words: readonly SqlWord[]): Refused => {
  for (const [i, word] of words.entries()) {
    if (!is(words[i + 1], "(", "mark")) continue
    const isOwnName = word.kind === "name" || is(words[i - 1], ".", "mark")
    const isPlain = word.kind !== "word" || beforeBracket.has(word.text)
    if (isOwnName || !isPlain) return "it calls a function that is not known to only compute"
  }
  return undefined
}

/** Of a statement that a caller wrote. */
export const refusedForeign = (sql: string): Refused => {
  const words = mysqlWords(sql)
  if (words === undefined) return unclosed
  if (words.some((word) => is(word, ";", "mark"))) return "it is more than one statement"
  if (words.some((word) => is(word, ":=", "mark"))) return "it sets a variable"
  const pair = PAIRS.find(([one, other]) => words.some((word, i) => is(word, one) && is(words[i + 1], other)))
  if (pair !== undefined) return `\`${pair.join(" ")}\` is more than a query`
  return leaves(words, ONE_QUERY) ?? calls(words)
}

/** Whether a failure of it leaves nothing that a rollback does not take back, where all its tables can do that. */
export const isTakenBack = (sql: string): boolean => CHANGING.has(firstOf(mysqlWords(sql) ?? []))

/** A role is taken off before anything is asked. */
const ROLE = /^(?:GRANT [^ ]+ TO|SET DEFAULT ROLE) /

/** Rights of an account, as the server lists them: more than reading and writing tables of the operator's own. */
export const isMighty = (grants: readonly string[]): boolean =>
  grants.some((grant) => {
    if (ROLE.test(grant)) return false
    const [, rights = "", target = ""] = /^GRANT (.+?) ON (\S+) TO /.exec(grant) ?? []
    if (target === "" || rights === "PROXY" || /^(?:`mysql`|mysql)\./.test(target)) return true
    return target === "*.*" && rights.split(", ").some((right) => !HARMLESS.has(right))
  })
const HARMLESS = new Set(["USAGE", "SHOW DATABASES"])
