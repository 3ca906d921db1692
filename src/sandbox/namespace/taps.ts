/**
 * Packet taps in a call's network namespace: each attempt to connect or to send a datagram, named.
 *
 * Guarantees: only attempts are let in, by a filter in the kernel; they are read once, after the call, so that nothing
 * is in the program's way. IPv4 and IPv6 alike.
 * Assumes: CAP_NET_RAW over the namespace of the calling thread.
 */
import { closeSync } from "node:fs"
import ipaddr from "ipaddr.js"
import { assemble, type Instruction, jump, statement } from "../classic-bpf.ts"
import {
  AF_INET,
  AF_INET6,
  attachSocketFilter,
  recv,
  recvmsg,
  SOCK_CLOEXEC,
  SOCK_NONBLOCK,
  SOCK_RAW,
  SOL_SOCKET,
  setsockopt,
  socket,
} from "../sockets.ts"

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

const [loadByte, loadHeaderLength, loadBehindHeader, and, isEqual, answer] = [0x30, 0xb1, 0x50, 0x54, 0x15, 0x06]
const SYN = 0x02
const SYN_ACK = 0x12

/** Segments that open a connection, SYN without ACK, once their flags are loaded. */
const opensConnection = (...loadFlags: readonly Instruction[]): Buffer =>
  assemble([
    ...loadFlags,
    statement(and, SYN_ACK),
    jump(isEqual, SYN, 0, 1),
    statement(answer, 0xffff),
    statement(answer, 0),
  ])
/** The length of an IPv4 header comes from the packet itself; an IPv6 packet is shown without its header. */
const opensConnectionV4 = opensConnection(statement(loadHeaderLength, 0), statement(loadBehindHeader, 13))
const opensConnectionV6 = opensConnection(statement(loadByte, 13))

const openTap = (family: number, protocol: number, filter?: Buffer): number => {
  const tap = socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol)
  setsockopt(tap, SOL_SOCKET, SO_RCVBUF, 256 * 1024)
  if (filter !== undefined) attachSocketFilter(tap, filter)
  if (family === AF_INET6) setsockopt(tap, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
  return tap
}

export interface Taps {
  /** What was attempted so far, oldest first of each kind; bounded by the taps' buffers. */
  read(): Attempt[]
  close(): void
}

/** Taps in the network namespace of the calling thread; those for IPv6 where it is there. */
export const openTaps = (ipv6: boolean): Taps => {
  const taps = [
    { tap: openTap(AF_INET, IPPROTO_TCP, opensConnectionV4), read: readV4 },
    { tap: openTap(AF_INET, IPPROTO_UDP), read: readV4 },
  ]
  if (ipv6)
    taps.push(
      { tap: openTap(AF_INET6, IPPROTO_TCP, opensConnectionV6), read: readV6(IPPROTO_TCP) },
      { tap: openTap(AF_INET6, IPPROTO_UDP), read: readV6(IPPROTO_UDP) },
    )
  return {
    read() {
      const found: Attempt[] = []
      for (const { tap, read } of taps) {
        for (;;) {
          try {
            const attempt = read(tap)
            if (attempt !== undefined) found.push(attempt)
          } catch {
            break
          }
        }
      }
      return found
    },
    close() {
      for (const { tap } of taps) closeSync(tap)
    },
  }
}
