/**
 * The sandbox's resolver: declared names get a synthetic address, every other name a no, at once.
 *
 * Guarantees: no query ever leaves this process, so a name can carry nothing out; each refused name is a verdict.
 * No datagram, whoever forged it, ends more than itself.
 * Assumes: the connections to the addresses it hands out come back through `transparent.ts`.
 */
import type { Socket as UdpSocket, RemoteInfo } from "node:dgram"
import { parseHost } from "../policy/authority.ts"
import { guarded } from "../connection/boundary.ts"
import type { ByteSource } from "../connection/byte-source.ts"
import { declaredPorts, isReservedName } from "../policy/decide.ts"
import { answer, type DnsQuery, parseQuery } from "../dns/message.ts"
import type { SyntheticAddresses } from "../dns/synthetic.ts"
import { createDnsStreamReader, frameDnsMessage } from "../dns/tcp-framing.ts"
import type { Gate } from "../dial/gate.ts"
import { receivingOf } from "../connection/handles.ts"

/** The reply to one message, or nothing. */
function respondToQuery(gate: Gate, names: SyntheticAddresses, message: Buffer): Buffer | undefined {
  const parsed = parseQuery(message)
  if (!parsed.ok) {
    gate.refuse({ protocol: "dns", code: "bad_dns" })
    return parsed.reply
  }
  const { query } = parsed
  const host = query.name === undefined ? undefined : parseHost(query.name)
  if (host?.ok === true && host.value.kind === "name") {
    const { name } = host.value
    const ports = declaredPorts(gate.policy, name)
    const open = ports.length > 0 && (gate.policy.services.has(name) || !isReservedName(gate.policy, name))
    if (open) {
      const address = names.addressFor(name)
      return address === undefined ? answer(query, { kind: "failure" }) : answer(query, { kind: "declared", address })
    }
    if (!isReverse(name))
      gate.refuse({
        protocol: "dns",
        code: isReservedName(gate.policy, name) ? "reserved_name" : "host_not_allowed",
        host: name,
      })
  } else {
    gate.refuse({ protocol: "dns", code: host === undefined || host.ok ? "bad_byte" : host.code, host: shown(query) })
  }
  return answer(query, { kind: "undeclared" })
}

/** Programs ask for the names of addresses on their own; that is answered no, and is nobody's attempt to get out. */
const isReverse = (name: string): boolean => name.endsWith(".in-addr.arpa") || name.endsWith(".ip6.arpa")

const shown = (query: DnsQuery): string => query.display.slice(0, 255)

export function serveDnsUdp(gate: Gate, names: () => SyntheticAddresses, socket: UdpSocket): () => void {
  const { requestCost, queriesAhead, queriesWaiting } = gate.limits
  const tap = receivingOf(socket)
  let waiting = 0
  let dropping = false
  let stopped = false
  const answerTo = guarded(
    (message: Buffer, from: RemoteInfo) => {
      if (stopped) return
      const reply = respondToQuery(gate, names(), message)
      if (reply !== undefined) socket.send(reply, from.port, from.address, () => {})
    },
    () => gate.refuse({ protocol: "dns", code: "internal" }),
  )
  const onMessage = (message: Buffer, from: RemoteInfo): void => {
    // Port 0 is nobody's: a datagram can carry it all the same, and no answer can be sent there.
    if (from.port === 0) return
    if (waiting >= queriesWaiting) {
      // Said once, until all that waited has been answered.
      if (!dropping) gate.refuse({ protocol: "dns", code: "budget", rule: "limits.queriesWaiting" })
      dropping = true
      return
    }
    waiting += 1
    // The kernel keeps a few and drops the rest, which costs nobody here anything.
    if (waiting === queriesAhead) tap?.pause()
    void gate.turns.next(requestCost).then(() => {
      waiting -= 1
      if (waiting === 0) {
        dropping = false
        if (!stopped) tap?.resume()
      }
      answerTo(message, from)
    })
  }
  const onError = () => {}
  socket.on("message", onMessage)
  socket.on("error", onError)
  return () => {
    stopped = true
    tap?.resume()
    socket.off("message", onMessage)
    socket.off("error", onError)
  }
}

export async function serveDnsTcp(gate: Gate, names: () => SyntheticAddresses, source: ByteSource): Promise<void> {
  const reader = createDnsStreamReader()
  const { socket } = source
  for (;;) {
    const chunk = await source.read(gate.limits.headMs)
    if (chunk === "timeout") return source.destroy()
    if (chunk === "end") {
      const patience = setTimeout(() => source.destroy(), gate.limits.headMs)
      source.on("close", () => clearTimeout(patience))
      return void socket.end()
    }
    const step = reader.push(chunk)
    if (step.state === "bad") {
      gate.refuse({ protocol: "dns", code: "bad_dns" })
      return source.destroy()
    }
    for (const message of step.messages) {
      await gate.turns.next(gate.limits.requestCost)
      if (source.destroyed) return
      const reply = respondToQuery(gate, names(), message)
      if (reply !== undefined) socket.write(frameDnsMessage(reply))
      if (socket.writableLength > gate.limits.unreadBytes) return source.destroy()
    }
  }
}
