/**
 * The verified TLS connection from an intercepting proxy to the real host, and a small pool of it.
 *
 * Guarantees: the certificate must be valid for `name`, which is also the SNI; no option, variable or error turns that
 * off, and nothing is sent before it holds. A handshake that fails is `upstream_tls`, a connection that breaks
 * `connect_failed`; there is no second try without TLS. Connections come from the caller's vetted `upstream` only and are reused for one client connection at most.
 * Does not: resolve or dial.
 */
import { Agent, type AgentOptions } from "node:http"
import { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { attempt } from "../connection/boundary.ts"
import { aheadBytes, type Turns } from "../connection/turns.ts"
import {
  connect,
  type ConnectionOptions,
  createSecureContext,
  rootCertificates,
  type SecureContext,
  type TLSSocket,
} from "node:tls"

import { asSocket } from "../tape/as-socket.ts"
import { carrierOf, unmetered, watchEnd } from "./carrier.ts"

type UpstreamReason = "upstream_tls" | "connect_failed" | "connect_timeout"

export class UpstreamFailure extends Error {
  readonly reason: UpstreamReason
  /** a code such as CERT_HAS_EXPIRED; safe to show */
  readonly code: string
  constructor(reason: UpstreamReason, code: string) {
    super(`${reason}: ${code}`)
    this.reason = reason
    this.code = code
  }
}

export interface UpstreamTls {
  readonly name: string
  /** dials what was vetted: raw TCP */
  readonly upstream: () => Promise<Duplex>
  /** trust anchors beside the public ones */
  readonly verifyCa?: readonly string[] | undefined
  readonly handshakeTimeoutMs: number
  /** what is dialled answers in the clear: it is this process */
  readonly plain?: boolean
  /** when what it sends is worked on */
  readonly turns: Turns
}

/** Most servers close an idle connection after 5 s or more; ours goes first, so that no request meets a dead one. */
const idleMs = 4000

export function createUpstreamAgent(options: UpstreamTls): Agent {
  return new VettedAgent({ keepAlive: true, maxSockets: 1, maxFreeSockets: 1, timeout: idleMs }, options)
}

class VettedAgent extends Agent {
  readonly #upstream: UpstreamTls
  readonly #end = new AbortController()
  constructor(options: AgentOptions, upstream: UpstreamTls) {
    super(options)
    this.#upstream = upstream
  }
  override createConnection(_options: unknown, callback?: (error: Error | null, stream: Duplex) => void): undefined {
    connectUpstream(this.#upstream, this.#end.signal).then(
      (socket) =>
        attempt(
          () => callback?.(null, socket),
          () => socket.destroy(),
        ),
      (error: unknown) =>
        attempt(
          () => callback?.(error as Error, undefined as unknown as Duplex),
          () => undefined,
        ),
    )
  }
  override destroy(): void {
    this.#end.abort()
    super.destroy()
  }
}

async function connectUpstream(options: UpstreamTls, signal: AbortSignal): Promise<TLSSocket> {
  const dialled = await options.upstream().catch((error: unknown) => {
    throw new UpstreamFailure("connect_failed", codeOf(error))
  })
  if (options.plain === true) return asSocket(dialled) as TLSSocket
  const raw = dialled instanceof Socket ? carrierOf(dialled, unmetered, options.turns) : dialled
  // An error may come at any time, also while nobody else listens; the close that follows is what counts.
  if (dialled !== raw) dialled.on("error", () => undefined)
  raw.on("error", () => undefined)
  if (signal.aborted) {
    raw.destroy()
    throw new UpstreamFailure("connect_failed", "ABORT_ERR")
  }
  return await new Promise<TLSSocket>((resolve, reject) => {
    const settle = (): void => {
      clearTimeout(timer)
      signal.removeEventListener("abort", onAbort)
    }
    const fail = (reason: UpstreamReason, code: string): void => {
      settle()
      socket.destroy()
      raw.destroy()
      reject(new UpstreamFailure(reason, code))
    }
    watchEnd(raw, () => socket)
    const socket = connect({
      socket: raw,
      servername: options.name,
      ALPNProtocols: ["http/1.1"],
      minVersion: "TLSv1.2",
      rejectUnauthorized: true,
      highWaterMark: aheadBytes,
      ...(options.verifyCa === undefined ? {} : { secureContext: contextFor(options.verifyCa) }),
    } as ConnectionOptions)
    const timer = setTimeout(() => fail("connect_timeout", "ETIMEDOUT"), options.handshakeTimeoutMs)
    const onAbort = (): void => fail("connect_failed", "ABORT_ERR")
    signal.addEventListener("abort", onAbort)
    const onError = (error: unknown): void => {
      const code = codeOf(error)
      fail(broken.has(code) ? "connect_failed" : "upstream_tls", code)
    }
    const onClose = (): void => fail("connect_failed", "ECONNRESET")
    socket.on("error", () => undefined)
    socket.once("error", onError)
    socket.once("close", onClose)
    socket.once("secureConnect", () => {
      settle()
      socket.off("error", onError)
      socket.off("close", onClose)
      const spoken = socket.alpnProtocol
      if (socket.authorized && (spoken === false || spoken === "http/1.1")) resolve(socket)
      else fail("upstream_tls", "ERR_NOT_VERIFIED")
    })
  })
}

/** A connection that breaks says nothing about the certificate. */
const broken = new Set(["ECONNRESET", "EPIPE", "ETIMEDOUT", "ECONNABORTED", "EHOSTUNREACH", "ENETUNREACH"])

/** Building a context from all public roots is slow, so each list of extra anchors has its context made once. */
const contexts = new WeakMap<readonly string[], SecureContext>()

function contextFor(verifyCa: readonly string[]): SecureContext {
  const known = contexts.get(verifyCa)
  if (known !== undefined) return known
  const made = createSecureContext({ ca: [...rootCertificates, ...verifyCa], minVersion: "TLSv1.2" })
  contexts.set(verifyCa, made)
  return made
}

function codeOf(error: unknown): string {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined
  return typeof code === "string" ? code : "UNKNOWN"
}
