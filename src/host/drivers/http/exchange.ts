/**
 * One request and the head of its answer, over a connection that the call's outlet made.
 *
 * Guarantees: the connection is dialled by the outlet and by nothing else, once a request; TLS proves the host that was
 * asked for, always; HTTP/1.1 alone is spoken. An answer's head is bounded, and so are interim answers. All of it ends
 * when the desk's signal does. No error carries a byte of what was sent or answered.
 */
import { isIP } from "node:net"
import { type Duplex, pipeline, type Readable, Transform } from "node:stream"
import type * as Undici from "undici"
import { connect as connectTls, type ConnectionOptions } from "node:tls"
import { onDemand } from "../../../manifest/schema/on-demand.ts"
import type { Take } from "../../../egress-proxy/tape/words.ts"
import type { Verdict } from "../../../egress-proxy/types.ts"
import { explainDenial } from "../../../egress-proxy/policy/explain.ts"
import type { Failure } from "../../failure.ts"
import type { Answer, Desk } from "../kind.ts"
import { maxHeadBytes, maxInterim } from "./limits.ts"
import type { HttpRequest } from "./request.ts"

/** As it goes over the wire. */
type Sent = Omit<HttpRequest, "own">

const undici = onDemand<typeof Undici>("undici")

export interface Origin {
  readonly secure: boolean
  readonly host: string
  readonly port: number
}

export interface HttpAnswer extends AsyncDisposable {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body: Readable
  /** what a rule that only reports would have refused the request with */
  readonly report?: string
}

/** Before anything was sent, or after: then nobody knows what the service did. */
export const brokenOff = (what: string, code: string, sent: boolean): Failure => ({
  ok: false,
  code: "upstream_error",
  message: `${what} (${code})`,
  hint: "try again later; if it stays, ask whoever runs the service",
  details: { reason: code, sent },
})

export const originText = ({ secure, host, port }: Origin): string => {
  const name = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host
  return `${secure ? "https" : "http"}://${name}${port === (secure ? 443 : 80) ? "" : `:${port}`}`
}

export const notDialled = ({ decision, reason }: Verdict, { host, port }: Origin): Failure => {
  const target = `${host}:${port}`
  const { message, hint } = explainDenial({ reason, target })
  if (decision !== "infrastructure")
    return {
      ok: false,
      code: "egress_denied",
      message: `the request was not sent: ${message}`,
      hint,
      details: { target, reason },
    }
  return { ok: false, code: "upstream_error", message, hint, retryable: true, details: { reason, target, sent: false } }
}

const codeOf = (error: unknown): string => {
  const code: unknown = typeof error === "object" && error !== null && "code" in error ? error.code : undefined
  return typeof code === "string" && /^[A-Z0-9_]{1,64}$/.test(code) ? code : "UNKNOWN"
}

/** A connection that breaks says nothing about the certificate. */
const isBroken = (code: string): boolean => /^(?:ECONN|EPIPE|ETIMEDOUT|EHOST|ENET)/.test(code)

const secured = (raw: Duplex, { host }: Origin, signal: AbortSignal): Promise<Answer<Duplex>> =>
  new Promise((resolve) => {
    const options: ConnectionOptions & { readonly signal: AbortSignal } = {
      socket: raw,
      host,
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ALPNProtocols: ["http/1.1"],
      minVersion: "TLSv1.2",
      rejectUnauthorized: true,
      signal,
    }
    const socket = connectTls(options)
    const settle = (answer: Answer<Duplex>): void => {
      socket.off("close", onClose)
      if (!answer.ok) {
        socket.destroy()
        raw.destroy()
      }
      resolve(answer)
    }
    const onClose = (): void =>
      settle(brokenOff("the service ended the connection before TLS stood", "ECONNRESET", false))
    const onAbort = (): void => settle(brokenOff("nobody waits for the answer any longer", "ABORT_ERR", false))
    signal.addEventListener("abort", onAbort, { once: true })
    socket.on("error", (error) => {
      const code = codeOf(error)
      settle(
        isBroken(code)
          ? brokenOff("the service ended the connection before TLS stood", code, false)
          : {
              ok: false,
              code: "upstream_error",
              message: `the service does not prove that it is ${host} (${code})`,
              hint: "have the service present a valid certificate; an authority of your own is trusted by NODE_EXTRA_CA_CERTS",
              details: { reason: code, sent: false },
            },
      )
    })
    socket.once("close", onClose)
    socket.once("secureConnect", () => {
      const spoken = socket.alpnProtocol
      settle(
        socket.authorized && (spoken === false || spoken === "http/1.1")
          ? { ok: true, value: socket }
          : brokenOff("the service does not speak HTTP/1.1 over a verified connection", "ERR_NOT_VERIFIED", false),
      )
    })
  })

/** What an exchange needs of a call's desk. */
type Way = Pick<Desk, "signal" | "outlet">

const connected = async (
  desk: Way,
  origin: Origin,
  request: Sent,
): Promise<Answer<{ socket: Duplex; report?: string }>> => {
  const { method, path, headers } = request
  const { host, port, secure } = origin
  const dialled = await desk.outlet.connect({ host, port, sends: { method, path, headers } })
  if (!dialled.ok) return notDialled(dialled.verdict, origin)
  const { connection, report, plain } = dialled
  const socket: Answer<Duplex> =
    secure && plain !== true ? await secured(connection, origin, desk.signal) : { ok: true, value: connection }
  if (!socket.ok) return socket
  return { ok: true, value: { socket: socket.value, ...(report === undefined ? {} : { report }) } }
}

/** What is kept is searched for secrets, so it is asked for as it is. */
const asItIs = (headers: Sent["headers"]): Sent["headers"] => [
  ...headers.filter(([name]) => name.toLowerCase() !== "accept-encoding"),
  ["accept-encoding", "identity"],
]

/** What comes, told as it is read. */
const through = (body: Readable, take: Take): Readable => {
  const heard = new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      take.came(chunk)
      done(null, chunk)
    },
    flush: (done) => {
      take.end()
      done()
    },
  })
  return pipeline(body, heard, () => undefined)
}

const takeOf = ({ outlet: { tape } }: Way, target: Origin, { method, path, headers, body }: Sent): Take | undefined => {
  if (tape?.mode !== "record") return undefined
  const take = tape.take({ target, method, path, headers })
  if (body !== undefined) take.sent(Buffer.from(body))
  return take
}

export const exchange = async (desk: Way, origin: Origin, request: Sent): Promise<Answer<HttpAnswer>> => {
  const made = await connected(desk, origin, request)
  if (!made.ok) return made
  const { socket, report } = made.value
  let isUsed = false
  const client = new (undici().Client)(originText(origin), {
    connect: (_options, callback) => {
      // The connection is for one request: another is dialled, and judged, anew. Called at once, undici would hang.
      const used = isUsed
      isUsed = true
      queueMicrotask(() =>
        used
          ? callback(Object.assign(new Error("used"), { code: "ECONNRESET" }), null)
          : callback(null, socket as never),
      )
    },
    allowH2: false,
    maxHeaderSize: maxHeadBytes,
    // The call's own time is the limit.
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: 1,
  })
  // An error may come at any time, also while nobody else listens.
  socket.on("error", () => undefined)
  const flood = new AbortController()
  let interim = 0
  const close = async (): Promise<void> => {
    socket.destroy()
    await client.destroy().catch(() => undefined)
  }
  const take = takeOf(desk, origin, request)
  try {
    const { statusCode, headers, body } = await client.request({
      method: request.method as "GET",
      path: request.path,
      headers: (take === undefined ? request.headers : asItIs(request.headers)).flat(),
      body: request.body ?? null,
      reset: true,
      signal: AbortSignal.any([desk.signal, flood.signal]),
      onInfo: () => {
        interim += 1
        if (interim > maxInterim) flood.abort()
      },
    })
    body.on("error", () => undefined)
    if (take !== undefined) {
      const told = Object.entries(headers).flatMap(([name, value]) =>
        [value ?? []].flat().map((each) => [name, each] as const),
      )
      take.answered(statusCode, "", told)
    }
    const heard = take === undefined ? body : through(body, take)
    return {
      ok: true,
      value: {
        status: statusCode,
        headers,
        body: heard,
        ...(report === undefined ? {} : { report }),
        [Symbol.asyncDispose]: async () => {
          body.destroy()
          await close()
        },
      },
    }
  } catch (error) {
    await close()
    if (flood.signal.aborted) return brokenOff("the service sent interim answers without end", "too_many_interim", true)
    return brokenOff("the service broke off or sent no proper answer", codeOf(error), true)
  }
}
