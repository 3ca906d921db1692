/**
 * A question about entries, as a statement over the index.
 *
 * Guarantees: pure; every value is bound, none is text of the statement. `wrote` finds what was committed, at the path and
 * below it. Answers are in the order of the log, from the cursor on, the latest first unless the first are asked for.
 */
import type { SQLInputValue } from "node:sqlite"
import { ANY_HOST, hostAndPort } from "./index-tables.ts"

export interface ReceiptQuery {
  readonly call?: string
  /** `id@major`, or `id` */
  readonly tool?: string
  readonly user?: string
  readonly verdict?: string
  /** milliseconds; `until` is not included */
  readonly since?: number
  readonly until?: number
  /** an absolute path: what wrote there, or below it */
  readonly wrote?: string
  /** `host`, or `host:port`: what was reached there */
  readonly host?: string
  /** something was denied: a host, a program, a path; or the call itself */
  readonly denied?: boolean
}

export interface Statement {
  readonly sql: string
  readonly values: readonly SQLInputValue[]
}

/** The path itself and every folder above it. */
const withAbove = (path: string): readonly string[] => {
  const parts = path.split("/").filter((part) => part !== "")
  return ["/", ...parts.map((_, index) => `/${parts.slice(0, index + 1).join("/")}`)]
}

const inTool = (tool: string): Statement =>
  tool.includes("@")
    ? { sql: "tool = ?", values: [tool] }
    : { sql: "(tool = ? OR (tool >= ? AND tool < ?))", values: [tool, `${tool}@`, `${tool}A`] }

const wroteAt = (given: string): Statement => {
  const path = given.replace(/\/+$/, "") || "/"
  const above = withAbove(path)
  const below = path === "/" ? "/" : `${path}/`
  return {
    sql: `seq IN (
      SELECT seq FROM paths WHERE committed = 1 AND path = ?
      UNION SELECT seq FROM paths WHERE committed = 1 AND path >= ? AND path < ?
      UNION SELECT seq FROM paths WHERE committed = 1 AND below = 1 AND path IN (${above.map(() => "?").join(", ")}))`,
    values: [path, below, `${below.slice(0, -1)}0`, ...above],
  }
}

const reachedAt = (target: string): Statement => {
  const { host, port } = hostAndPort(target)
  return {
    sql: `seq IN (SELECT seq FROM hosts WHERE (host = ? ${port === "" ? "" : "AND port = ?"}) OR host = ?)`,
    values: [host, ...(port === "" ? [] : [port]), ANY_HOST],
  }
}

const equal = (column: string, value: SQLInputValue): Statement => ({ sql: `${column} = ?`, values: [value] })

/** `whose`: a tenant, and the one user in it who asks; absent: everything in the log. */
export const statementOf = (
  { call, tool, user, verdict, since, until, wrote, host, denied }: ReceiptQuery,
  whose: { readonly tenant: string; readonly user?: string | undefined } | undefined,
  { after, limit, first }: { readonly after?: number; readonly limit: number; readonly first: boolean },
): Statement => {
  const parts: readonly (Statement | undefined)[] = [
    whose && equal("tenant", whose.tenant),
    whose?.user === undefined ? undefined : equal("user", whose.user),
    call === undefined ? undefined : equal("call", call),
    tool === undefined ? undefined : inTool(tool),
    user === undefined ? undefined : equal("user", user),
    verdict === undefined ? undefined : equal("verdict", verdict),
    since === undefined ? undefined : { sql: "ms >= ?", values: [since] },
    until === undefined ? undefined : { sql: "ms < ?", values: [until] },
    wrote === undefined ? undefined : wroteAt(wrote),
    host === undefined ? undefined : reachedAt(host),
    denied === undefined ? undefined : equal("denied", denied ? 1 : 0),
    after === undefined ? undefined : { sql: first ? "seq > ?" : "seq < ?", values: [after] },
  ]
  const asked = parts.filter((part) => part !== undefined)
  const where = asked.length === 0 ? "" : ` WHERE ${asked.map(({ sql }) => sql).join(" AND ")}`
  return {
    sql: `SELECT seq, start, bytes, hash FROM entries${where} ORDER BY seq ${first ? "ASC" : "DESC"} LIMIT ?`,
    values: [...asked.flatMap(({ values }) => values), limit],
  }
}
