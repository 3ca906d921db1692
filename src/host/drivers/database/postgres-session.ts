/**
 * One connection to PostgreSQL over the call's own way out.
 *
 * Guarantees: it is dialled by the outlet, so to the declared address alone, vetted; TLS proves the host unless the author
 * gave it up in so many words; what comes is counted, and ends the connection where it is more than may be kept. pg reads
 * nothing but whole messages of their own form, so that no server stops or ends this process by what it says; without TLS
 * none gets the password in the clear.
 */
import { EventEmitter } from "node:events"
import type { Duplex } from "node:stream"
import type * as Pg from "pg"
import { onDemand } from "../../../manifest/schema/on-demand.ts"
import type { DatabaseCall } from "../../../manifest/types.ts"
import type { Failure } from "../../failure.ts"
import { notDialled } from "../http/exchange.ts"
import type { Answer, Desk } from "../kind.ts"
import type { Account } from "./account.ts"
import { mostStatementMs, wireFactor } from "./limits.ts"
import { createFrames } from "./postgres-frames.ts"

const pg = onDemand<typeof Pg>("pg")

export interface Session extends AsyncDisposable {
  readonly client: Pg.Client
  /** more came than may be kept */
  readonly isTooMuch: () => boolean
}

/** What pg asks of a socket and a stream does not have; it stands already. */
const asSocket = (connection: Duplex, count: (chunk: Buffer) => void): Duplex =>
  Object.assign(connection, {
    // Once pg listens, so that nothing is read before that; a server says nothing until it is spoken to.
    connect: () =>
      queueMicrotask(() => {
        connection.on("data", count)
        connection.emit("connect")
      }),
    setNoDelay: () => connection,
    setKeepAlive: () => connection,
    ref: () => connection,
    unref: () => connection,
  })

/** What it said is nothing to go on with. */
class Untaken extends Error {}

/** pg's own reader loops or throws over what is malformed: it is given what was looked at. Tells what was wrong, if anything. */
const readFramed = (client: Pg.Client, isHidden: boolean): (() => Untaken | undefined) => {
  let fault: Untaken | undefined
  const connection = client.connection as unknown as { attachListeners(from: EventEmitter): void }
  const attach = connection.attachListeners.bind(connection)
  connection.attachListeners = (from) => {
    const stream = from as Duplex
    const told = new EventEmitter()
    attach(told)
    const frames = createFrames(isHidden)
    const read = (chunk: Buffer): string | undefined => {
      const framed = frames(chunk)
      if (!framed.ok) return framed.why
      try {
        if (framed.whole.length > 0) told.emit("data", framed.whole)
        return undefined
      } catch {
        return "says what nobody asked it"
      }
    }
    stream.on("data", (chunk: Buffer) => {
      const why = stream.destroyed ? undefined : read(chunk)
      if (why === undefined) return
      fault ??= new Untaken(why)
      stream.destroy(fault)
    })
    // A server that has said its last word is not waited for.
    stream.once("end", () => stream.destroy())
  }
  return () => fault
}

export const openSession = async (
  desk: Pick<Desk, "outlet" | "signal" | "outputBytes">,
  { host, port, name, tls }: DatabaseCall,
  { user, password }: Account,
  timeoutMs: number,
): Promise<Answer<Session>> => {
  const dialled = await desk.outlet.connect({ host, port, signal: desk.signal })
  if (!dialled.ok) return notDialled(dialled.verdict, { secure: tls, host, port })
  const { connection } = dialled
  let bytes = 0
  let tooMuch = false
  const most = desk.outputBytes * wireFactor
  const count = (chunk: Buffer): void => {
    bytes += chunk.length
    if (bytes <= most) return
    tooMuch = true
    connection.destroy()
  }
  const client = new (pg().Client)({
    host,
    user,
    password,
    database: name,
    application_name: "caisson",
    stream: () => asSocket(connection, count) as never,
    ssl: tls ? { rejectUnauthorized: true, minVersion: "TLSv1.2" } : false,
    // Read-only until a transaction says otherwise; and whoever dialled may be gone before a statement has ended.
    options: `-c default_transaction_read_only=on -c statement_timeout=${Math.min(Math.ceil(timeoutMs), mostStatementMs)}`,
  })
  client.on("error", () => undefined)
  const fault = readFramed(client, tls)
  const end = async (): Promise<void> => {
    connection.destroy()
    await client.end().catch(() => undefined)
  }
  const stop = (): void => void connection.destroy()
  desk.signal.addEventListener("abort", stop, { once: true })
  try {
    await client.connect()
  } catch (error) {
    await end()
    return notOpened(fault() ?? error, `${host}:${port}`)
  }
  return { ok: true, value: { client, isTooMuch: () => tooMuch, [Symbol.asyncDispose]: end } }
}

/** SQLSTATE class 28: it does not take the name or the password. */
const notOpened = (error: unknown, target: string): Failure => {
  const code = error instanceof pg().DatabaseError ? (error.code ?? "") : ""
  if (code.startsWith("28"))
    return {
      ok: false,
      code: "auth_required",
      message: `the database at ${target} does not take the login`,
      hint: 'set the secret to `{"user": …, "password": …}` as it is there',
      details: { sqlstate: code },
    }
  if (error instanceof Untaken)
    return {
      ok: false,
      code: "upstream_error",
      message: `the database at ${target} ${error.message}`,
      retryable: false,
      undone: true,
      details: { sent: false },
    }
  return {
    ok: false,
    code: "upstream_error",
    message: `the database at ${target} could not be talked with${code === "" ? "" : ` (${code})`}`,
    retryable: true,
    undone: true,
    details: { sent: false, ...(code === "" ? {} : { sqlstate: code }) },
  }
}
