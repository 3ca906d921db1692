/**
 * A verb of the store, told statement by statement, so that each engine carries out the same one.
 *
 * A verb says what to ask next and is given the answer; who runs it decides how (`sqlite.ts` at once, `postgres/` over a
 * connection) and in which transaction. Pure: a verb that is run again asks the same of what it is told. Its SQL is what
 * SQLite and PostgreSQL both know, but for what `postgres/dialect.ts` translates; its texts are compared byte by byte.
 */

export type Row = Readonly<Record<string, unknown>>
export type SqlValue = string | number | null

export interface Statement {
  readonly sql: string
  readonly values: readonly SqlValue[]
}
export interface Answer {
  readonly rows: readonly Row[]
  /** how many rows were written */
  readonly changes: number
}
export type Verb<T> = Generator<Statement, T, Answer>

export function* allRows(sql: string, ...values: readonly SqlValue[]): Verb<readonly Row[]> {
  return (yield { sql, values }).rows
}
export function* oneRow(sql: string, ...values: readonly SqlValue[]): Verb<Row | undefined> {
  return (yield { sql, values }).rows[0]
}
/** How many rows it wrote. */
export function* change(sql: string, ...values: readonly SqlValue[]): Verb<number> {
  return (yield { sql, values }).changes
}

/** What carries verbs out. A verb is given as how it begins, because one may be begun again. */
export interface Engine extends AsyncDisposable {
  /** whose rows are this host's own */
  readonly owner: string
  /** Of one statement. */
  read<T>(begin: () => Verb<T>): Promise<T>
  /** One transaction, done once or not at all; verbs that are under way at once act as if one came after the other. */
  write<T>(begin: () => Verb<T>): Promise<T>
  /** Every statement stands by itself and is no harm when it is done again, or when others come between. */
  repeatable<T>(begin: () => Verb<T>): Promise<T>
}
