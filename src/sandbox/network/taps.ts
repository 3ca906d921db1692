/**
 * Packet taps in a call's network namespace: each attempt to connect or to send a datagram, named and counted.
 *
 * Guarantees: only attempts that may be denials are let in, by a filter in the kernel; they are read while the call
 * runs and at its end, without being in the program's way. What a tap had no room for, or the record no room to name,
 * is counted as `unnamed`: a flood may hide where it went, never that it went. IPv4 and IPv6 alike.
 * Assumes: CAP_NET_RAW over the namespace of the calling thread.
 */
import { closeSync } from "node:fs"
import ipaddr from "ipaddr.js"
import type { NetworkChannelSpec } from "../backend.ts"
import {
  AF_INET,
  AF_INET6,
  attachSocketFilter,
  droppedBy,
  readable,
  recv,
  recvmsg,
  SOCK_CLOEXEC,
  SOCK_NONBLOCK,
  SOCK_RAW,
  SOL_SOCKET,
  setsockopt,
  socket,
} from "../../linux/sockets.ts"
import { SyscallError } from "../../linux/libc.ts"
import { TAPS } from "./limits.ts"
import { filterV4, filterV6 } from "./tap-filter.ts"

const SO_RCVBUF = 8
const IPPROTO_TCP = 6
const IPPROTO_UDP = 17
const IPPROTO_IPV6 = 41
const IPV6_RECVPKTINFO = 49
const IPV6_PKTINFO = 50

export interface Attempt {
  readonly protocol: "tcp" | "udp"
  readonly address: string
  readonly port: number
  /** the name a DNS query asked for, where the datagram was one */
  readonly name?: string
}

const queryName = (payload: Buffer): string | undefined => {
  const labels: string[] = []
  let at = 12
  for (;;) {
    const length = payload[at]
    if (length === undefined || length > 63) return undefined
    if (length === 0) return labels.length > 0 ? labels.join(".").toLowerCase() : undefined
    const label = payload.subarray(at + 1, at + 1 + length).toString("latin1")
    if (!/^[\w-]+$/.test(label)) return undefined
    labels.push(label)
    at += 1 + length
  }
}

const attempt = (protocol: number, address: string, payload: Buffer): Attempt => {
  const port = payload.readUInt16BE(2)
  if (protocol === IPPROTO_TCP) return { protocol: "tcp", address, port }
  const name = port === 53 ? queryName(payload.subarray(8)) : undefined
  return { protocol: "udp", address, port, ...(name === undefined ? {} : { name }) }
}

/** A raw IPv4 socket shows the packet with its header. */
const readV4 = (tap: number): Attempt | undefined => {
  const packet = recv(tap, 2048)
  const header = ((packet[0] ?? 0) & 15) * 4
  if (packet.length < header + 8) return undefined
  return attempt(packet[9] ?? 0, [...packet.subarray(16, 20)].join("."), packet.subarray(header))
}

/** A raw IPv6 socket shows what is behind the header, and tells apart from it where the packet was going. */
const readV6 =
  (protocol: number) =>
  (tap: number): Attempt | undefined => {
    const { data, control } = recvmsg(tap, 2048)
    const told = control.readUInt32LE(8) === IPPROTO_IPV6 && control.readUInt32LE(12) === IPV6_PKTINFO
    if (!told || data.length < 8) return undefined
    const address = new ipaddr.IPv6([...control.subarray(16, 32)]).toRFC5952String()
    return attempt(protocol, `[${address}]`, data)
  }

const openTap = (family: number, protocol: number, filter: Buffer): number => {
  const tap = socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol)
  setsockopt(tap, SOL_SOCKET, SO_RCVBUF, TAPS.bufferBytes)
  attachSocketFilter(tap, filter)
  if (family === AF_INET6) setsockopt(tap, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
  return tap
}

export interface Attempts {
  readonly named: readonly { readonly attempt: Attempt; readonly count: number }[]
  /** attempts that left no name: they came faster than they could be read, or at too many targets */
  readonly unnamed: number
}
interface Taps {
  /** The call that comes has these listeners: what they answer is not shown. From now on the taps are emptied. */
  watch(network: NetworkChannelSpec | "none"): void
  /** What was attempted so far, oldest first of each kind. */
  read(): Attempts
  /** The taps are not emptied any more by themselves. */
  stop(): void
  close(): void
}

/** Taps in the network namespace of the calling thread; those for IPv6 where it is there. */
export const openTaps = (ipv6: boolean): Taps => {
  const v4 = {
    tcp: openTap(AF_INET, IPPROTO_TCP, filterV4("tcp", "none")),
    udp: openTap(AF_INET, IPPROTO_UDP, filterV4("udp", "none")),
  }
  const taps = [
    { tap: v4.tcp, read: readV4 },
    { tap: v4.udp, read: readV4 },
  ]
  if (ipv6)
    taps.push(
      { tap: openTap(AF_INET6, IPPROTO_TCP, filterV6("tcp")), read: readV6(IPPROTO_TCP) },
      { tap: openTap(AF_INET6, IPPROTO_UDP, filterV6("udp")), read: readV6(IPPROTO_UDP) },
    )
  const named = new Map<string, { readonly attempt: Attempt; count: number }>()
  let unnamed = 0
  const record = (attempt: Attempt): void => {
    const key = `${attempt.protocol} ${attempt.address} ${attempt.port} ${attempt.name ?? ""}`
    const known = named.get(key)
    if (known !== undefined) known.count += 1
    else if (named.size < TAPS.targets) named.set(key, { attempt, count: 1 })
    else unnamed += 1
  }
  const drain = (): void => {
    const waiting = readable(taps.map(({ tap }) => tap))
    for (const { tap, read } of taps.filter((each) => waiting.has(each.tap))) {
      for (let turn = 0; turn < TAPS.perTurn; turn += 1) {
        try {
          const attempt = read(tap)
          if (attempt === undefined) unnamed += 1
          else record(attempt)
        } catch (error) {
          // Empty; anything else may have cost a record.
          if (!(error instanceof SyscallError && error.code === "EAGAIN")) unnamed += 1
          break
        }
      }
    }
  }
  let draining: NodeJS.Timeout | undefined
  const stop = (): void => {
    clearInterval(draining)
    draining = undefined
  }
  return {
    watch(network) {
      attachSocketFilter(v4.tcp, filterV4("tcp", network))
      attachSocketFilter(v4.udp, filterV4("udp", network))
      draining ??= setInterval(drain, TAPS.drainMs).unref()
    },
    stop,
    read() {
      drain()
      const dropped = taps.reduce((sum, { tap }) => sum + droppedBy(tap), 0)
      return { named: [...named.values()], unnamed: unnamed + dropped }
    },
    close() {
      stop()
      for (const { tap } of taps) closeSync(tap)
    },
  }
}
