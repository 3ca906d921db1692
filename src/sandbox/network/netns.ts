/**
 * The call's own network namespace: loopback only, every address local, listeners that the host owns.
 *
 * Guarantees: nothing inside can reach the host or the world; each connection attempt either lands on a listener
 * made here or is refused at once, and is recorded either way by a packet tap that only sees connection attempts.
 * Assumes: CAP_SYS_ADMIN and CAP_NET_ADMIN over the namespace (the launcher is root in its own). Acts on the
 * calling thread, synchronously.
 */
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs"
import type { NetworkChannelSpec } from "../backend.ts"
import {
  AF_INET,
  AF_INET6,
  bind,
  listen,
  recv,
  SOCK_CLOEXEC,
  SOCK_NONBLOCK,
  SOCK_RAW,
  SOL_SOCKET,
  sendto,
  setsockopt,
  socket,
} from "../../linux/sockets.ts"
import { SyscallError } from "../../linux/libc.ts"
import { CLONE, setns, unshare } from "../../linux/mounts.ts"
import { ioctl } from "../../linux/processes.ts"
import { connectInside } from "./reach-inside.ts"
import { type Attempts, openTaps } from "./taps.ts"

const AF_NETLINK = 16
const SOCK_STREAM = 1
const SOCK_DGRAM = 2

/** The one address of the sandbox, and the range that is local there: names get synthetic addresses from it. */
const insideAddress = "198.18.0.1"

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

/** `ip route add local default dev lo`: a raw address leads to our own listeners instead of nowhere. */
const routeEverythingLocal = (family: number): void => {
  const RTM_NEWROUTE = 24
  const NLM_F_REQUEST_ACK_CREATE = 0x1 | 0x4 | 0x400
  const message = Buffer.alloc(16 + 12 + 8)
  message.writeUInt32LE(message.length, 0)
  message.writeUInt16LE(RTM_NEWROUTE, 4)
  message.writeUInt16LE(NLM_F_REQUEST_ACK_CREATE, 6)
  message.writeUInt32LE(1, 8)
  message.writeUInt8(family, 16)
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

/** Nobody listens on IPv6; with a route its dials are refused at once and named, without one they just fail. */
const routeIpv6Local = (): boolean => {
  try {
    // A container engine switches it off. The setting is that of the calling thread's namespace.
    if (readFileSync(IPV6_OFF, "latin1").trim() !== "0") writeFileSync(IPV6_OFF, "0")
    routeEverythingLocal(AF_INET6)
    return true
  } catch {
    // A machine without IPv6, or one that does not let us.
    return false
  }
}
const IPV6_OFF = "/proc/sys/net/ipv6/conf/lo/disable_ipv6"

const SO_REUSEADDR = 2
const SO_REUSEPORT = 15

export interface NetworkNamespace {
  /** descriptor of the namespace, for `setns` */
  readonly fd: number
  /** Make listening descriptors inside; the caller owns them. */
  listenTcp(address: string, port: number): number
  bindUdp(address: string, port: number): number
  /** A connection to a listener inside, on loopback; the caller owns it. */
  connectInside(port: number): number | undefined
  /** A call with these listeners comes: keep a record of what it attempts beside them. */
  watch(network: NetworkChannelSpec | "none"): void
  /** What was attempted so far. */
  attempted(): Attempts
  /** What was attempted, once the call is over. */
  attempts(): Attempts
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
    routeEverythingLocal(AF_INET)
  } finally {
    closeSync(control)
  }
  const taps = openTaps(routeIpv6Local())
  const open = (type: number, address: string, port: number): number =>
    inside(home, fd, () => {
      const made = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
      setsockopt(made, SOL_SOCKET, SO_REUSEADDR, 1)
      // A driver may declare port 53: its listener on every address stands beside the name server's on loopback.
      if (port === 53) setsockopt(made, SOL_SOCKET, SO_REUSEPORT, 1)
      bind(made, socketAddress(address, port))
      if (type === SOCK_STREAM) listen(made, 512)
      return made
    })
  return {
    fd,
    listenTcp: (address, port) => open(SOCK_STREAM, address, port),
    connectInside: (port) => inside(home, fd, () => connectInside(port)),
    bindUdp: (address, port) => open(SOCK_DGRAM, address, port),
    watch: (network) => taps.watch(network),
    attempted: () => taps.read(),
    attempts() {
      taps.stop()
      return taps.read()
    },
    close() {
      taps.close()
      closeSync(fd)
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
