/**
 * What an error of PostgreSQL, or of the way to it, means for a verb.
 *
 * Guarantees: no value of a row, no password and no address but the server's is in what is told.
 */
import { DatabaseError } from "pg"
import { StoreUnavailable } from "../store.ts"

/**
 * `again`: the transaction did not take place, because another one came between. `lost`: the connection is gone, and with
 * it the transaction, unless its end was asked for already. `busy`: something was kept too long by others.
 */
type Trouble = "again" | "lost" | "busy"

const AGAIN = new Set(["40001", "40P01"])
/** not there yet or not any more; a standby; too many others; the session was ended */
const LOST = new Set(["57P01", "57P02", "57P03", "57P05", "53300", "25006", "25P03"])
const BUSY = new Set(["55P03", "57014"])
const NO_ROOM = new Set(["53100", "53200"])

const WAYS = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ENOENT",
])
/** what the driver says, which gives these no codes */
const SAID =
  /^(?:Connection terminated|Query read timeout|timeout e|Client has encountered|Client was closed|timeout exp)/

export const troubleOf = (error: unknown): Trouble | undefined => {
  if (error instanceof DatabaseError) {
    const { code = "" } = error
    if (AGAIN.has(code)) return "again"
    if (LOST.has(code) || code.startsWith("08")) return "lost"
    return BUSY.has(code) ? "busy" : undefined
  }
  const { code, message = "" } = error as { code?: unknown; message?: string }
  return (typeof code === "string" && WAYS.has(code)) || SAID.test(message) ? "lost" : undefined
}

/** What is no trouble that passes by itself. */
export const lasting = (where: string, error: unknown): Error => {
  if (error instanceof StoreUnavailable) return error
  if (error instanceof DatabaseError) {
    const { code = "", message } = error
    if (NO_ROOM.has(code))
      return new StoreUnavailable(
        "full",
        `the store's server ${where} has no room (${message})`,
        "free disk space there",
      )
    if (code.startsWith("28"))
      return new StoreUnavailable(
        "trouble",
        `the store's server ${where} does not let this host in (${message})`,
        "correct user and password in the file that `store.postgres.url_file` names",
      )
    if (["3D000", "42501", "3F000", "42P01"].includes(code))
      return new StoreUnavailable(
        "trouble",
        `the store on ${where} cannot be used: ${message}`,
        "make the database, and let the user that the URL names create a schema in it (GRANT CREATE ON DATABASE)",
      )
    // A bug: its words, without the values that `detail` shows.
    return new Error(`PostgreSQL refuses what the store asks: ${message} (${code})`)
  }
  const { code, message = "" } = error as { code?: unknown; message?: string }
  if (message.includes("does not support SSL") || (typeof code === "string" && /TLS|SSL|CERT|SIGN/.test(code)))
    return new StoreUnavailable(
      "trouble",
      `the store's server ${where} cannot be trusted by TLS: ${message}`,
      "give the server a certificate for the name that the URL has, and name its authority by `store.postgres.ca_file`",
    )
  if (message.includes("password"))
    return new StoreUnavailable(
      "trouble",
      `the store's server ${where} wants a password`,
      "write it into the file that `store.postgres.url_file` names: postgres://user:password@host/database",
    )
  return error as Error
}
