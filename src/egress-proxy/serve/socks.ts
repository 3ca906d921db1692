/**
 * A SOCKS5 connection: one CONNECT by name or address, without authentication.
 *
 * Guarantees: names arrive as raw bytes and go through the same grammar as everywhere else; BIND and UDP are refused
 * with their own code; the reply is the nearest SOCKS5 code to the reason.
 */
import { authorityOf, type Host, type Parsed, parseName } from "../policy/authority.ts"
import { parseIp } from "../policy/address.ts"
import type { ByteSource } from "../connection/byte-source.ts"
import type { Gate } from "../dial/gate.ts"
import { linger } from "./linger.ts"
import { type ReasonCode, reasons } from "../policy/reasons.ts"
import { createSocks5Reader, type Socks5Step, type Socks5Target, socks5Codes, socks5Reply } from "../socks/socks5.ts"
import { serveTunnel } from "./tunnel.ts"
import type { Verdict } from "../types.ts"

type Request = Extract<Socks5Step, { state: "request" }>

export async function serveSocks(gate: Gate, source: ByteSource): Promise<void> {
  const request = await readRequest(gate, source)
  if (request === undefined) return
  await gate.turns.next(gate.limits.requestCost)
  const refuse = (_: unknown, verdict: Verdict) =>
    linger(source, socks5Reply(replyCode(verdict.reason as ReasonCode)), gate)
  const host = hostOf(request.target, gate)
  if (request.command !== "connect") {
    // For UDP, and mostly for BIND, clients send 0.0.0.0:0, which is no target; it says nothing then.
    const target = host.ok && request.port > 0 ? { target: authorityOf(host.value, request.port) } : undefined
    return refuse(undefined, gate.refuse({ protocol: "socks5", code: "command_not_allowed", ...target }))
  }
  if (request.port < 1) return refuse(undefined, gate.refuse({ protocol: "socks5", code: "bad_port" }))
  if (!host.ok) return refuse(undefined, gate.refuse({ protocol: "socks5", code: host.code }))
  const target = authorityOf(host.value, request.port)
  source.unread(request.rest)
  await serveTunnel({
    gate,
    source,
    protocol: "socks5",
    target,
    onOpen: () => source.write(socks5Reply(socks5Codes.succeeded)),
    onRefused: refuse,
  })
}

function hostOf(target: Socks5Target, gate: Gate): Parsed<Host> {
  if (target.kind === "name") return parseName(target.bytes, gate.policy.off)
  const ip = parseIp(target.address)
  return ip === undefined ? { ok: false, code: "bad_socks" } : { ok: true, value: { kind: "ip", ip } }
}

async function readRequest(gate: Gate, source: ByteSource): Promise<Request | undefined> {
  const reader = createSocks5Reader()
  const deadline = performance.now() + gate.limits.headMs
  for (;;) {
    const wait = deadline - performance.now()
    const chunk = wait > 0 ? await source.read(wait) : "timeout"
    if (chunk === "end") {
      source.destroy()
      return undefined
    }
    const step = chunk === "timeout" ? ({ state: "bad", reason: "too slow" } as const) : reader.push(chunk)
    if (step.state === "bad") {
      gate.refuse({ protocol: "socks5", code: "bad_socks" })
      await linger(source, ("reply" in step && step.reply) || Buffer.alloc(0), gate)
      return undefined
    }
    if (step.reply !== undefined) source.write(step.reply)
    if (step.state === "request") return step
  }
}

function replyCode(code: ReasonCode): number {
  if (code === "command_not_allowed") return socks5Codes.commandNotSupported
  if (code === "dns_failure") return socks5Codes.hostUnreachable
  if (code === "connect_failed") return socks5Codes.connectionRefused
  if (code === "connect_timeout") return socks5Codes.ttlExpired
  return reasons[code].class === "infrastructure" ? socks5Codes.generalFailure : socks5Codes.notAllowed
}
