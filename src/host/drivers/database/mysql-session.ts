/**
 * One connection to MySQL or MariaDB over the call's own way out.
 *
 * Guarantees: it is dialled by the outlet, so to the declared address alone, vetted; TLS proves the host unless the author
 * gave it up in so many words; what comes is counted, and ends the connection where it is more than may be kept. The server
 * gets no file of this machine, no password in the clear, and one statement at a time; answers are read without
 * code made for them.
 */
import { once } from "node:events"
import { isIP } from "node:net"
import type * as Mysql from "mysql2"
import type { Connection } from "mysql2/promise"
import type { DatabaseCall } from "../../../manifest/types.ts"
import { onDemand } from "../../../manifest/schema/on-demand.ts"
import type { Failure } from "../../failure.ts"
import { notDialled } from "../http/exchange.ts"
import type { Answer, Desk } from "../kind.ts"
import { countedStream } from "./counted-stream.ts"
import { wireFactor } from "./limits.ts"
import type { Account } from "./account.ts"

const mysql = onDemand<typeof Mysql>("mysql2")

export interface MysqlSession extends AsyncDisposable {
  readonly client: Connection
  /** more came than may be kept */
  readonly isTooMuch: () => boolean
}

interface MysqlTrouble {
  readonly errno: number
  readonly state: string
}

/** What the server itself said, told from what happened on the way. */
export const troubleOf = (error: unknown): MysqlTrouble | undefined => {
  if (!(error instanceof Error) || !("errno" in error) || !("sqlState" in error)) return undefined
  const { errno, sqlState } = error
  return typeof errno === "number" && typeof sqlState === "string" && /^[0-9A-Z]{5}$/.test(sqlState)
    ? { errno, state: sqlState }
    : undefined
}

const unproven = (host: string): Failure => ({
  ok: false,
  code: "tool_unavailable",
  message: `a certificate cannot prove the bare address ${host} to MySQL's protocol as it is spoken here`,
  hint: "name the database by a host name of its certificate; `egress.services` can map it",
  undone: true,
  details: {},
})

export const openMysql = async (
  desk: Pick<Desk, "outlet" | "signal" | "outputBytes">,
  { host, port, name, tls }: DatabaseCall,
  { user, password }: Account,
): Promise<Answer<MysqlSession>> => {
  if (tls && isIP(host) !== 0) return unproven(host)
  const dialled = await desk.outlet.connect({ host, port, signal: desk.signal })
  if (!dialled.ok) return notDialled(dialled.verdict, { secure: tls, host, port })
  const { connection } = dialled
  let bytes = 0
  let tooMuch = false
  const most = desk.outputBytes * wireFactor
  const stream = countedStream(connection, (chunk) => {
    bytes += chunk.length
    if (bytes <= most) return
    tooMuch = true
    connection.destroy()
  })
  const stop = (): void => void stream.destroy()
  desk.signal.addEventListener("abort", stop, { once: true })
  const close = (): void => {
    desk.signal.removeEventListener("abort", stop)
    stream.destroy()
  }
  try {
    const core = mysql().createConnection({
      host,
      port,
      user,
      password,
      database: name,
      stream,
      charset: "utf8mb4",
      multipleStatements: false,
      flags: ["-LOCAL_FILES", "-MULTI_STATEMENTS"],
      disableEval: true,
      supportBigNumbers: true,
      dateStrings: true,
      connectAttributes: { program_name: "caisson" },
      ...(tls ? { ssl: { rejectUnauthorized: true, verifyIdentity: true, minVersion: "TLSv1.2" } } : {}),
    })
    // It tells one failure several times; what nobody hears would end the process.
    core.on("error", () => undefined)
    await once(core, "connect")
    const client = core.promise()
    return {
      ok: true,
      value: {
        client,
        isTooMuch: () => tooMuch,
        [Symbol.asyncDispose]: async () => {
          client.destroy()
          close()
        },
      },
    }
  } catch (error) {
    close()
    return notOpened(error, `${host}:${port}`)
  }
}

/** 1045, 1698: it does not take the name or the password. */
const notOpened = (error: unknown, target: string): Failure => {
  const trouble = troubleOf(error)
  const state = trouble?.state
  if (state?.startsWith("28") === true)
    return {
      ok: false,
      code: "auth_required",
      message: `the database at ${target} does not take the login`,
      hint: 'set the secret to `{"user": …, "password": …}` as it is there',
      details: { sqlstate: state },
    }
  return {
    ok: false,
    code: "upstream_error",
    message: `the database at ${target} could not be talked with${state === undefined ? "" : ` (${state})`}`,
    retryable: true,
    undone: true,
    details: { sent: false, ...(state === undefined ? {} : { sqlstate: state }) },
  }
}
