/**
 * A tunnel to one authority, however it was asked for: CONNECT, SOCKS5 or transparent TCP.
 *
 * Guarantees: on a `web` entry no byte goes upstream before the first flight was judged: TLS must name the tunnel's
 * host; on ports other than 443, plain HTTP is served request by request instead; anything else, an upstream that
 * speaks first included, is refused. A `tcp://` entry is relayed as it is.
 * Does not: look into TLS; a Host header inside it is seen only where TLS is ended here.
 */
import type { Socket } from "node:net"
import type { Authority } from "../policy/authority.ts"
import type { ByteSource } from "../connection/byte-source.ts"
import { denialResponse } from "../policy/denial.ts"
import { abort } from "../connection/endpoint.ts"
import type { Gate, Opened } from "../dial/gate.ts"
import { serveHttp } from "./http-session.ts"
import { BareConnection } from "../connection/bare-connection.ts"
import { linger } from "./linger.ts"
import type { ReasonCode } from "../policy/reasons.ts"
import { relayTunnel } from "../relay/relay.ts"
import { createPlaceholderScanner } from "../secrets/scanner.ts"
import { type ClientHello, createClientHelloReader } from "../tls/client-hello.ts"
import type { Protocol, Verdict } from "../types.ts"

export interface TunnelOptions {
  readonly gate: Gate
  readonly source: ByteSource
  readonly protocol: Protocol
  readonly target: Authority
  /** Tells the client that the tunnel stands. */
  readonly onOpen: (options: TunnelOptions) => void
  readonly onRefused: (options: TunnelOptions, verdict: Verdict) => Promise<void>
}

type Open = Extract<Opened<Socket | BareConnection>, { ok: true }>

export function serveTunnel(options: TunnelOptions): Promise<void> {
  return new Promise((resolve, reject) => openTunnel(options, reject, resolve))
}

/** The same without a promise for the usual course of things; whoever asked may be told when it is over. */
export function openTunnel(options: TunnelOptions, fail: (error: unknown) => void, over = nothing): void {
  const { gate, source, protocol, target } = options
  const onOpened = (opened: Opened<Socket | BareConnection>): void => {
    if (!opened.ok) return void options.onRefused(options, opened.verdict).then(over, fail)
    options.onOpen(options)
    if (opened.grant.protocol === "tcp") return relayPlain(options, opened, over)
    serveWeb(options, opened).then(over, fail)
  }
  gate.openTunnel({ protocol, target, client: source }, onOpened, fail)
}

const nothing = (): void => {}

async function serveWeb(options: TunnelOptions, opened: Open): Promise<void> {
  const { gate, source, protocol, target } = options
  const upstream = listenForBanner(opened.upstream, () => source.interrupt())
  const flight = await firstFlight(source, gate, opened)
  const early = upstream.stop()
  if (early === "spoke") return refuseInside(options, opened, "protocol_mismatch")
  if (flight.state === "gone" || early === "ended") return drop(opened, source)
  if (flight.state === "hello") return serveTls(options, opened, flight.hello)
  if (flight.state === "bad") return refuseInside(options, opened, "bad_client_hello")
  if (target.port === 443 && !gate.policy.off.has("tunnel.tls-only"))
    return refuseInside(options, opened, "protocol_mismatch", flight.bytes)
  source.unread(flight.bytes)
  const inside = { authority: target, protocol, opened: onSocket(opened) }
  return serveHttp({ gate, source, inside, onConnect: async () => {} })
}

/** Where bytes are looked at on their way, the upstream is read as a socket. */
const onSocket = (opened: Open): Extract<Opened, { ok: true }> => {
  const { upstream } = opened
  return { ...opened, upstream: upstream instanceof BareConnection ? upstream.toSocket() : upstream }
}

/** Any protocol, as it is; a secret's placeholder in the clear is the one thing that is looked for. */
function relayPlain({ gate, source, protocol, target }: TunnelOptions, opened: Open, over: () => void): void {
  const { placeholders } = gate.policy.substitutions
  const scanner = placeholders.length === 0 ? undefined : createPlaceholderScanner(placeholders)
  const refuses = (bytes: Buffer): boolean => {
    if (scanner?.push(bytes) === undefined) return false
    gate.refuse({ protocol, target, code: "secret_misuse", rule: opened.grant.rule })
    return true
  }
  relayTunnel({
    client: source,
    upstream: opened.upstream,
    passage: opened.passage,
    early: source.release(),
    refuses: scanner === undefined ? undefined : refuses,
    memory: gate.memory,
    over,
  })
}

async function serveTls(options: TunnelOptions, opened: Open, hello: ClientHello): Promise<void> {
  const code = judgeHello(options.target, hello)
  if (code !== undefined && !options.gate.policy.off.has(`tls.${code}`)) return refuseInside(options, opened, code)
  const { interceptor, policy, limits, turns } = options.gate
  const { tape } = options.gate
  const isBound = policy.substitutions.boundTo(options.target.hostText)
  const intercepts =
    interceptor !== undefined && (isBound || (tape !== undefined && options.target.host.kind === "name"))
  if (!intercepts && tape !== undefined) {
    tape.fault(`${options.target.text}: TLS to an address can neither be recorded nor replayed`)
    return refuseInside(options, opened, "not_recordable")
  }
  if (intercepts) {
    await turns.next(limits.handshakeCost)
    if (options.source.destroyed || opened.passage.finished) return drop(opened, options.source)
  }
  const late = options.source.release()
  const early = late.length === 0 ? hello.raw : Buffer.concat([hello.raw, late])
  if (intercepts) {
    const { serveIntercepted } = await import("./secure.ts")
    return serveIntercepted(options, interceptor, onSocket(opened), early)
  }
  const { upstream, passage } = opened
  const { memory } = options.gate
  return new Promise((over) => relayTunnel({ client: options.source, upstream, passage, early, memory, over }))
}

/** The server name must be the tunnel's host; an address has no server name, so none must be sent. */
export function judgeHello(target: Authority, hello: Pick<ClientHello, "sni">): ReasonCode | undefined {
  if (target.host.kind === "ip") return hello.sni === undefined ? undefined : "sni_mismatch"
  if (hello.sni === undefined) return "sni_missing"
  return hello.sni === target.host.name ? undefined : "sni_mismatch"
}

type Flight =
  | { readonly state: "gone" }
  | { readonly state: "hello"; readonly hello: ClientHello }
  | { readonly state: "plain"; readonly bytes: Buffer }
  | { readonly state: "bad" }

/** Neither TLS nor HTTP servers speak first; one that does, or that hangs up, settles what the tunnel is. */
function listenForBanner(
  upstream: Socket | BareConnection,
  onEarly: () => void,
): { stop(): "silent" | "spoke" | "ended" } {
  let heard: "silent" | "spoke" | "ended" = "silent"
  // A bare connection is not read yet; it is used on 443, where what a server says first reaches nobody anyway.
  if (upstream instanceof BareConnection) return { stop: () => heard }
  const onData = () => {
    heard = "spoke"
    upstream.pause()
    onEarly()
  }
  const onEnd = () => {
    if (heard === "silent") heard = "ended"
    onEarly()
  }
  upstream.on("end", onEnd).on("data", onData).on("close", onEnd)
  return {
    stop() {
      upstream.pause()
      upstream.off("data", onData).off("end", onEnd).off("close", onEnd)
      return heard
    },
  }
}

async function firstFlight(source: ByteSource, gate: Gate, opened: Open): Promise<Flight> {
  const { limits } = gate
  const reader = createClientHelloReader({ maxBytes: limits.helloBytes })
  /** what is no TLS is known by its first two bytes, so no more is kept here */
  let first: Buffer = Buffer.alloc(0)
  let deadline = 0
  for (;;) {
    const silent = first.length === 0
    const wait = silent ? limits.silentMs : deadline - performance.now()
    const chunk = wait > 0 ? await source.read(wait) : "timeout"
    if (opened.passage.finished) return { state: "gone" }
    if (typeof chunk === "string") return silent || chunk === "end" ? { state: "gone" } : { state: "bad" }
    if (silent) deadline = performance.now() + limits.headMs
    if (first.length < 2) first = silent ? chunk : Buffer.concat([first, chunk])
    const step = reader.push(chunk)
    if (step.state === "hello") return { state: "hello", hello: step }
    if (step.state === "not-tls") return { state: "plain", bytes: first }
    if (step.state === "bad") return { state: "bad" }
  }
}

function drop(opened: Open, source: ByteSource): void {
  opened.passage.finish()
  opened.upstream.destroy()
  source.destroy()
}

/** A fatal `unrecognized_name` alert, which TLS clients print by name. */
const alert = Buffer.from([21, 3, 1, 0, 2, 2, 112])

async function refuseInside(options: TunnelOptions, opened: Open, code: ReasonCode, plain?: Buffer): Promise<void> {
  const { gate, source, protocol, target } = options
  opened.passage.finish()
  abort(opened.upstream)
  const verdict = gate.refuse({ protocol, target, code, rule: opened.grant.rule })
  const isHttp = plain !== undefined && /^[A-Z]{3,20} /.test(plain.toString("latin1", 0, 24))
  await linger(source, isHttp ? denialResponse(verdict, { keepAlive: false, headOnly: false }) : alert, gate)
}
