/**
 * TLS ended at the proxy, for hosts that a secret is bound to, and only those.
 *
 * Guarantees: the interceptor gets the client with its whole first flight, dials through the gate only, counts and
 * records through it; it is over when its sockets are, and when another policy holds, between two requests too: what it
 * substitutes and refuses is of the policy that it began under. Upstream bytes pass through a stream that counts each chunk
 * before it goes on, so that budgets are exact.
 */
import type { Duplex } from "node:stream"
import { timerMs } from "../connection/deadline.ts"
import { abort } from "../connection/endpoint.ts"
import type { Opened } from "../dial/gate.ts"
import type { Interceptor } from "../tls/authority.ts"
import { carrierOf } from "../tls/carrier.ts"
import { interceptTls } from "../tls/intercept.ts"
import type { TunnelOptions } from "./tunnel.ts"

type Open = Extract<Opened, { ok: true }>

export async function serveIntercepted(
  options: TunnelOptions,
  interceptor: Interceptor,
  opened: Open,
  early: Buffer,
): Promise<void> {
  const { gate, source, protocol, target } = options
  const client = source.socket
  if (client.destroyed || opened.passage.finished) return void opened.upstream.destroy()
  let spare: Open | undefined = opened
  const upstream = async (): Promise<Duplex> => {
    await gate.turns.next(gate.limits.handshakeCost)
    const next = spare ?? (await gate.open({ protocol, target, client: source, quiet: true }))
    spare = undefined
    if (!next.ok) throw Object.assign(new Error(next.verdict.reason), { code: next.verdict.reason })
    next.upstream.once("close", () => next.passage.finish())
    return carrierOf(next.upstream, next.passage, gate.turns)
  }
  client.unshift(early)
  const { capture } = gate.policy.source
  const interception = interceptTls({
    client,
    name: target.hostText,
    port: target.port,
    authority: interceptor.authority,
    substitutions: gate.policy.substitutions,
    ...(capture !== undefined && gate.captured !== undefined && { capture, captured: gate.captured }),
    readOnlyHttp: gate.policy.source.readOnlyHttp,
    upstream,
    ...(gate.tape === undefined ? {} : { tape: gate.tape }),
    record: ({ protocol: kind, code, report }) =>
      gate.record({ protocol: kind, code, target, address: opened.address, rule: opened.grant.rule, report }),
    judge: () => gate.countRequest(target) ?? "allowed",
    turns: gate.turns,
    decoding: gate.decoding,
    ...(interceptor.upstreamCa !== undefined && { verifyCa: interceptor.upstreamCa }),
    limits: {
      headBytes: gate.limits.headBytes,
      headerLines: gate.limits.headerLines,
      headMs: gate.limits.silentMs,
      idleMs: Math.floor(timerMs(2 * gate.policy.source.budgets.idleTimeoutMs) / 2),
    },
  })
  const free = gate.heldTo(() => abort(client))
  const { end } = await interception.done
  free()
  const { rule } = opened.grant
  if (end === "sni_mismatch") gate.refuse({ protocol, target, code: "sni_mismatch", rule })
  // Not one request, and it was not us who ended it.
  if ((end === "client_tls" || end === "unused") && !opened.passage.finished) {
    gate.refuse({ protocol, target, code: "client_tls", rule })
    if (end === "client_tls")
      gate.tape?.fault(`${target.text}: the program does not take the certificate of this call's own authority`)
  }
  opened.passage.finish()
  opened.upstream.destroy()
}
