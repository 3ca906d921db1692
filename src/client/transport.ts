/**
 * One request over the Unix socket or TCP, and its answer.
 *
 * Guarantees: nothing is sent twice and nothing is followed elsewhere; a token goes nowhere but to the address it was
 * given for. While an answer is waited for, the daemon is asked for a sign of life on another connection, so that a
 * long call may be long and a daemon that hangs is found out. Every request has a connection of its own: where
 * it broke is where the answer ended. An abort ends the connection, which ends a call that was made without a key.
 */
import { type IncomingMessage, request as overHttp, type RequestOptions } from "node:http"
import { request as overHttps } from "node:https"
import { Unreachable } from "./faults.ts"
import { clientLimits } from "./limits.ts"

export type Place =
  | { /** path of the daemon's Unix socket */ readonly socket: string }
  | {
      /** such as `http://127.0.0.1:7433` */
      readonly address: string
      readonly token: string
      /** PEM, of who signed the daemon's certificate where the system does not know them */
      readonly ca?: string
    }

interface Sent {
  readonly method: string
  /** with its query */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal?: AbortSignal
}

const NOBODY = new Set(["ECONNREFUSED", "ENOENT", "ENOTFOUND", "EHOSTUNREACH", "EACCES", "EAI_AGAIN"])

const optionsOf = (place: Place, { method, path, headers = {}, body }: Sent): RequestOptions => {
  const sent = {
    ...headers,
    ...(body === undefined
      ? {}
      : { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) }),
  }
  if ("socket" in place) return { socketPath: place.socket, method, path, headers: sent, agent: false }
  const { protocol, hostname, port } = new URL(place.address)
  return {
    protocol,
    hostname: hostname.replace(/^\[|\]$/g, ""),
    port,
    method,
    path,
    agent: false,
    headers: { ...sent, authorization: `Bearer ${place.token}` },
    ...(place.ca === undefined ? {} : { ca: place.ca }),
  }
}

const silent = (): Unreachable => new Unreachable("silent", "the daemon does not answer")

/** Any answer is a sign of life. */
const livesAt = (place: Place): Promise<void> =>
  new Promise((resolve, reject) => {
    const options = optionsOf(place, { method: "GET", path: "/healthz" })
    const asked = open(place, options, (answer) => {
      answer.resume()
      clearTimeout(late)
      resolve()
    })
    const late = setTimeout(() => asked.destroy(silent()), clientLimits.signMs.value)
    asked.on("error", (error) => {
      clearTimeout(late)
      reject(error)
    })
    asked.end()
  })

const open = (
  place: Place,
  options: RequestOptions,
  take: (answer: IncomingMessage) => void,
): ReturnType<typeof overHttp> =>
  !("socket" in place) && place.address.startsWith("https:") ? overHttps(options, take) : overHttp(options, take)

/** Ends with `stop`, or calls `fail` once nobody is there any more. */
const watch = (place: Place, fail: (error: Error) => void): (() => void) => {
  let isOver = false
  let next: NodeJS.Timeout | undefined
  const look = (): void => {
    livesAt(place).then(
      () => {
        if (!isOver) next = setTimeout(look, clientLimits.signEveryMs.value)
      },
      () => {
        if (!isOver) fail(silent())
      },
    )
  }
  next = setTimeout(look, clientLimits.signEveryMs.value)
  return () => {
    isOver = true
    clearTimeout(next)
  }
}

const faultOf = (error: NodeJS.ErrnoException, signal: AbortSignal | undefined): Error => {
  if (signal?.aborted === true) return signal.reason instanceof Error ? signal.reason : new Error("aborted")
  if (error instanceof Unreachable) return error
  if (NOBODY.has(error.code ?? "")) return new Unreachable("absent", `nobody listens there (${error.code})`)
  return new Unreachable("broken", `the connection ended before the answer did (${error.code ?? error.message})`)
}

/** The answer's beginning; its body is the caller's to read, and its errors are told there. */
export const send = (place: Place, sent: Sent): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const { signal, body } = sent
    if (signal?.aborted === true) return reject(faultOf(new Error("aborted"), signal))
    let end = (error: Error): void => void asked.destroy(error)
    const asked = open(place, optionsOf(place, sent), (answer) => {
      end = (error) => void answer.destroy(error)
      resolve(answer)
    })
    const stop = watch(place, (error) => end(error))
    const leave = (): void => end(new Error("aborted"))
    signal?.addEventListener("abort", leave, { once: true })
    asked.on("error", (error) => reject(faultOf(error, signal)))
    asked.on("close", () => {
      stop()
      signal?.removeEventListener("abort", leave)
    })
    asked.end(body)
  })

/** A whole body, as text. */
export const textOf = async (answer: IncomingMessage, signal?: AbortSignal): Promise<string> => {
  const pieces: Buffer[] = []
  let bytes = 0
  try {
    for await (const piece of answer) {
      bytes += (piece as Buffer).length
      if (bytes > clientLimits.answerBytes.value)
        throw new Unreachable("strange", `the answer is longer than ${clientLimits.answerBytes.value} bytes`)
      pieces.push(piece as Buffer)
    }
  } catch (error) {
    throw faultOf(error as NodeJS.ErrnoException, signal)
  }
  return Buffer.concat(pieces).toString("utf8")
}
