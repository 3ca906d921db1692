/**
 * The call's own network namespace: loopback only, every address local, listeners that the host owns.
 *
 * Guarantees: nothing inside can reach the host or the world; each connection attempt either lands on a listener
 * made here or is refused at once, and is recorded either way by a packet tap that only sees connection attempts.
 * Assumes: CAP_SYS_ADMIN and CAP_NET_ADMIN over the namespace (the launcher is root in its own). Acts on the
 * calling thread, synchronously.
 */
import { closeSync, openSync } from "node:fs"
import {
  attachSocketFilter,
  bind,
  CLONE,
  ioctl,
  listen,
  recv,
  SyscallError,
  sendto,
  setns,
  setsockopt,
  socket,
  unshare,
} from "../syscalls.ts"

const AF_INET = 2
const AF_NETLINK = 16
const SOCK_STREAM = 1
const SOCK_DGRAM = 2
const SOCK_RAW = 3
const SOCK_CLOEXEC = 0o2000000
const SOCK_NONBLOCK = 0o4000
const IPPROTO_TCP = 6
const IPPROTO_UDP = 17

/** The one address of the sandbox, and the range that is local there: names get synthetic addresses from it. */
export const insideAddress = "198.18.0.1"

const socketAddress = (address: string, port: number): Buffer => {
  const bytes = Buffer.alloc(16)
  bytes.writeUInt16LE(AF_INET, 0)
  bytes.writeUInt16BE(port, 2)
  Buffer.from(address.split(".").map(Number)).copy(bytes, 4)
  return bytes
}

const SIOCGIFFLAGS = 0x8913
const SIOCSIFFLAGS = 0x8914
const SIOCSIFADDR = 0x8916
const SIOCSIFNETMASK = 0x891c
const IFF_UP = 1
const interfaceRequest = (name: string): Buffer => {
  const bytes = Buffer.alloc(40)
  bytes.write(name, 0, "latin1")
  return bytes
}
const configureLoopback = (control: number): void => {
  const flags = interfaceRequest("lo")
  ioctl(control, SIOCGIFFLAGS, flags)
  flags.writeUInt16LE(flags.readUInt16LE(16) | IFF_UP, 16)
  ioctl(control, SIOCSIFFLAGS, flags)
  const address = interfaceRequest("lo:1")
  socketAddress(insideAddress, 0).copy(address, 16)
  ioctl(control, SIOCSIFADDR, address)
  const mask = interfaceRequest("lo:1")
  socketAddress("255.254.0.0", 0).copy(mask, 16)
  ioctl(control, SIOCSIFNETMASK, mask)
}

/** `ip route add local 0.0.0.0/0 dev lo`: a raw address leads to our own listeners instead of nowhere. */
const routeEverythingLocal = (): void => {
  const RTM_NEWROUTE = 24
  const NLM_F_REQUEST_ACK_CREATE = 0x1 | 0x4 | 0x400
  const message = Buffer.alloc(16 + 12 + 8)
  message.writeUInt32LE(message.length, 0)
  message.writeUInt16LE(RTM_NEWROUTE, 4)
  message.writeUInt16LE(NLM_F_REQUEST_ACK_CREATE, 6)
  message.writeUInt32LE(1, 8)
  message.writeUInt8(AF_INET, 16)
  message.writeUInt8(255, 20) // table: local
  message.writeUInt8(3, 21) // protocol: boot
  message.writeUInt8(254, 22) // scope: host
  message.writeUInt8(2, 23) // type: local
  message.writeUInt16LE(8, 28) // RTA_OIF, the loopback interface, always index 1
  message.writeUInt16LE(4, 30)
  message.writeUInt32LE(1, 32)
  const netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0)
  try {
    const kernel = Buffer.alloc(12)
    kernel.writeUInt16LE(AF_NETLINK, 0)
    sendto(netlink, message, kernel)
    const answer = recv(netlink, 256)
    const errno = answer.length >= 20 ? -answer.readInt32LE(16) : 0
    if (errno !== 0) throw new SyscallError("route add", errno, "")
  } finally {
    closeSync(netlink)
  }
}

const SOL_SOCKET = 1
const SO_REUSEADDR = 2
const SO_RCVBUF = 8

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
const attemptOf = (packet: Buffer): Attempt | undefined => {
  const header = ((packet[0] ?? 0) & 15) * 4
  if (packet.length < header + 8) return undefined
  const address = [...packet.subarray(16, 20)].join(".")
  const port = packet.readUInt16BE(header + 2)
  if (packet[9] === IPPROTO_TCP) return { protocol: "tcp", address, port }
  const name = port === 53 ? queryName(packet.subarray(header + 8)) : undefined
  return { protocol: "udp", address, port, ...(name === undefined ? {} : { name }) }
}

/** A raw socket whose filter lets only the wanted packets in, read once, after the call. */
const openTap = (protocol: number): number => {
  const tap = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol)
  setsockopt(tap, SOL_SOCKET, SO_RCVBUF, 256 * 1024)
  return tap
}
/** Keep segments that open a connection: SYN without ACK. The header length comes from the packet itself. */
const synOnly = (): Buffer => {
  const program: readonly (readonly [number, number, number, number])[] = [
    [0xb1, 0, 0, 0], // x = ip header length
    [0x50, 0, 0, 13], // a = tcp flags
    [0x54, 0, 0, 0x12], // a &= SYN|ACK
    [0x15, 0, 1, 0x02], // a == SYN ?
    [0x06, 0, 0, 0xffff],
    [0x06, 0, 0, 0],
  ]
  const bytes = Buffer.alloc(program.length * 8)
  program.forEach(([code, jt, jf, k], index) => {
    bytes.writeUInt16LE(code, index * 8)
    bytes.writeUInt8(jt, index * 8 + 2)
    bytes.writeUInt8(jf, index * 8 + 3)
    bytes.writeUInt32LE(k, index * 8 + 4)
  })
  return bytes
}

export interface NetworkNamespace {
  /** descriptor of the namespace, for `setns` */
  readonly fd: number
  /** Make listening descriptors inside; the caller owns them. */
  listenTcp(address: string, port: number): number
  bindUdp(address: string, port: number): number
  /** What was attempted so far, oldest first; bounded by the tap's buffer. */
  attempts(): Attempt[]
  close(): void
}

/** The namespace a thread returns to. */
export const currentNetwork = (): number => openSync("/proc/thread-self/ns/net", "r")

const inside = <T>(home: number, fd: number, work: () => T): T => {
  setns(fd, CLONE.NEWNET)
  try {
    return work()
  } finally {
    setns(home, CLONE.NEWNET)
  }
}

const finish = (home: number, fd: number): NetworkNamespace => {
  const control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)
  try {
    configureLoopback(control)
    routeEverythingLocal()
  } finally {
    closeSync(control)
  }
  const taps = [openTap(IPPROTO_TCP), openTap(IPPROTO_UDP)]
  attachSocketFilter(taps[0] as number, synOnly())
  const open = (type: number, address: string, port: number): number =>
    inside(home, fd, () => {
      const made = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
      setsockopt(made, SOL_SOCKET, SO_REUSEADDR, 1)
      bind(made, socketAddress(address, port))
      if (type === SOCK_STREAM) listen(made, 512)
      return made
    })
  return {
    fd,
    listenTcp: (address, port) => open(SOCK_STREAM, address, port),
    bindUdp: (address, port) => open(SOCK_DGRAM, address, port),
    attempts() {
      const found: Attempt[] = []
      for (const tap of taps) {
        for (;;) {
          try {
            const attempt = attemptOf(recv(tap, 2048))
            if (attempt !== undefined) found.push(attempt)
          } catch {
            break
          }
        }
      }
      return found
    },
    close() {
      for (const descriptor of [...taps, fd]) closeSync(descriptor)
    },
  }
}

/** Make and configure a fresh namespace; run `spawn` with the thread inside it; come back. */
export const createNetwork = <T>(home: number, spawn: (network: NetworkNamespace) => T): T => {
  unshare(CLONE.NEWNET)
  try {
    const fd = currentNetwork()
    return spawn(finish(home, fd))
  } finally {
    setns(home, CLONE.NEWNET)
  }
}

/** Configure the existing, still unused namespace of another process (a container's). */
export const adoptNetwork = (home: number, path: string): NetworkNamespace => {
  const fd = openSync(path, "r")
  return inside(home, fd, () => finish(home, fd))
}
