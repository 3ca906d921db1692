/**
 * TLS ended at the proxy, for hosts that a secret is bound to, and only those.
 *
 * Guarantees: the interceptor gets the client with its whole first flight, dials through the gate only, counts and
 * records through it; it is over when its sockets are. Where a byte budget is set, upstream bytes pass through a
 * counting stream, so that the budget is exact; else they are read off the sockets.
 */
import type { Socket } from "node:net"
import { Duplex } from "node:stream"
import { guarded } from "./boundary.ts"
import { timerMs } from "./deadline.ts"
import type { Gate, Opened } from "./gate.ts"
import type { Passage } from "./passages.ts"
import type { CallAuthority } from "./tls/authority.ts"
import { interceptTls } from "./tls/intercept.ts"
import type { TunnelOptions } from "./tunnel.ts"

/** What a proxy with secrets has and others have not. */
export interface Interceptor {
  readonly authority: CallAuthority
  /** trust anchors beside the public ones, for upstreams with a private CA */
  readonly upstreamCa?: readonly string[]
}

type Open = Extract<Opened, { ok: true }>

export async function serveIntercepted(
  options: TunnelOptions,
  interceptor: Interceptor,
  opened: Open,
  early: Buffer,
): Promise<void> {
  const { gate, source, protocol, target } = options
  const client = source.socket
  let spare: Open | undefined = opened
  const upstream = async (): Promise<Socket> => {
    const next = spare ?? (await gate.open({ protocol, target, client: source, quiet: true }))
    spare = undefined
    if (!next.ok) throw Object.assign(new Error(next.verdict.reason), { code: next.verdict.reason })
    next.upstream.once("close", () => next.passage.finish())
    if (isBudgeted(gate)) return meteredStream(next.upstream, next.passage) as Socket
    next.passage.countBySocket(next.upstream)
    return next.upstream
  }
  client.unshift(early)
  const interception = interceptTls({
    client,
    name: target.hostText,
    port: target.port,
    authority: interceptor.authority,
    substitutions: gate.policy.substitutions,
    readOnlyHttp: gate.policy.source.readOnlyHttp,
    upstream,
    record: ({ protocol: kind, code, report }) =>
      gate.record({ protocol: kind, code, target, address: opened.address, rule: opened.grant.rule, report }),
    judge: () => gate.countRequest(target) ?? "allowed",
    ...(interceptor.upstreamCa !== undefined && { verifyCa: interceptor.upstreamCa }),
    limits: {
      headBytes: gate.limits.headBytes,
      headMs: gate.limits.silentMs,
      idleMs: Math.floor(timerMs(2 * gate.policy.source.budgets.idleTimeoutMs) / 2),
    },
  })
  const { end } = await interception.done
  const { rule } = opened.grant
  if (end === "sni_mismatch") gate.refuse({ protocol, target, code: "sni_mismatch", rule })
  // Not one request, and it was not us who ended it.
  if ((end === "client_tls" || end === "unused") && !opened.passage.finished)
    gate.refuse({ protocol, target, code: "client_tls", rule })
  opened.passage.finish()
  opened.upstream.destroy()
}

const isBudgeted = (gate: Gate): boolean =>
  Number.isFinite(gate.policy.source.budgets.bytesOut) || Number.isFinite(gate.policy.source.budgets.bytesIn)

/** The socket as a stream that counts each chunk before it goes on. */
function meteredStream(socket: Socket, passage: Passage): Duplex {
  const stream: Duplex = new Duplex({
    allowHalfOpen: true,
    read: () => void socket.resume(),
    write(chunk: Buffer, _encoding, done) {
      if (!passage.out(chunk.length)) return done(new Error("budget"))
      if (socket.write(chunk)) return done()
      socket.once("drain", done)
    },
    final(done) {
      socket.end()
      done()
    },
    destroy(error, done) {
      socket.destroy()
      done(error)
    },
  })
  const onData = (chunk: Buffer): void => {
    if (passage.in(chunk.length) && !stream.push(chunk)) socket.pause()
  }
  socket.on(
    "data",
    guarded(onData, () => stream.destroy()),
  )
  socket.on("end", () => stream.push(null))
  socket.on("close", () => stream.destroy())
  return stream
}
