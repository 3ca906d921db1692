/**
 * Sockets that Node cannot make: in another network namespace, raw, routed by netlink, with a filter.
 *
 * Guarantees: each call succeeds or throws a `SyscallError`; synchronous, on the calling thread.
 */
import koffi from "koffi"
import { checked, foreign } from "./libc.ts"

export const AF_INET = 2
export const AF_INET6 = 10
export const SOCK_RAW = 3
export const SOCK_CLOEXEC = 0o2000000
export const SOCK_NONBLOCK = 0o4000
export const SOL_SOCKET = 1

const declarations = {
  socket: "int socket(int domain, int type, int protocol)",
  socketpair: "int socketpair(int domain, int type, int protocol, _Out_ void *pair)",
  bind: "int bind(int fd, const void *address, uint length)",
  connect: "int connect(int fd, const void *address, uint length)",
  listen: "int listen(int fd, int backlog)",
  getsockopt: "int getsockopt(int fd, int level, int name, _Out_ void *value, _Inout_ uint *length)",
  setsockopt: "int setsockopt(int fd, int level, int name, const void *value, uint length)",
  sendto: "long sendto(int fd, const void *data, size_t length, int flags, const void *address, uint addressLength)",
  recv: "long recv(int fd, _Out_ void *data, size_t length, int flags)",
} as const
const call = (name: keyof typeof declarations, detail: string, ...args: unknown[]): number =>
  checked(name, foreign(name, (libc) => libc.func(declarations[name]))(...args), detail)

export const socket = (domain: number, type: number, protocol: number): number =>
  call("socket", `family ${domain}`, domain, type, protocol)
/** Two ends of one stream within the machine, closed in children. */
export const socketPair = (): readonly [number, number] => {
  const [AF_UNIX, SOCK_STREAM] = [1, 1]
  const pair = Buffer.alloc(8)
  call("socketpair", "", AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)
  return [pair.readInt32LE(0), pair.readInt32LE(4)]
}
export const bind = (fd: number, address: Uint8Array): void => {
  call("bind", "", fd, address, address.length)
}
/** Of a socket that does not wait it throws `EINPROGRESS`, then `EISCONN` once it is through. */
export const connect = (fd: number, address: Uint8Array): void => {
  call("connect", "", fd, address, address.length)
}
export const listen = (fd: number, backlog: number): void => {
  call("listen", "", fd, backlog)
}
export const setsockopt = (fd: number, level: number, name: number, value: number): void => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32LE(value)
  call("setsockopt", `option ${name}`, fd, level, name, bytes, 4)
}
/** How many packets the kernel dropped because the socket's buffer was full. */
export const droppedBy = (fd: number): number => {
  const SO_MEMINFO = 55
  const DROPS = 8
  const counters = Buffer.alloc(4 * 9)
  call("getsockopt", "drops", fd, SOL_SOCKET, SO_MEMINFO, counters, [counters.length])
  return counters.readUInt32LE(4 * DROPS)
}
/** Attach a classic BPF program that picks which packets a socket sees. */
export const attachSocketFilter = (fd: number, program: Uint8Array): void => {
  const fn = foreign("attach-filter", (libc) => {
    const filterProgram = koffi.struct("caisson_sock_fprog", { length: "uint16", filter: "const void *" })
    return libc.func("setsockopt", "int", ["int", "int", "int", koffi.pointer(filterProgram), "uint"])
  })
  const SO_ATTACH_FILTER = 26
  const filter = { length: program.length / 8, filter: program }
  checked("setsockopt", fn(fd, SOL_SOCKET, SO_ATTACH_FILTER, filter, 16), "filter")
}
export const sendto = (fd: number, data: Uint8Array, address: Uint8Array): number =>
  call("sendto", "", fd, data, data.length, 0, address, address.length)
/** Those of the descriptors that have something to be read, an error included; does not wait. */
export const readable = (descriptors: readonly number[]): ReadonlySet<number> => {
  const POLLIN = 1
  const size = 8
  const waits = Buffer.alloc(size * descriptors.length)
  for (const [index, fd] of descriptors.entries()) {
    waits.writeInt32LE(fd, index * size)
    waits.writeInt16LE(POLLIN, index * size + 4)
  }
  const poll = foreign("poll", (libc) => libc.func("int poll(_Inout_ void *waits, ulong count, int timeout)"))
  const found = poll(waits, descriptors.length, 0)
  // One that was interrupted says nothing of any.
  if (found < 0) return new Set(descriptors)
  return new Set(found === 0 ? [] : descriptors.filter((_, index) => waits.readInt16LE(index * size + 6) !== 0))
}

export const recv = (fd: number, length: number): Buffer => {
  const buffer = Buffer.alloc(length)
  return buffer.subarray(0, call("recv", "", fd, buffer, length, 0))
}

const MSG_DONTWAIT = 0x40

/** A datagram and what the kernel says of it (ancillary data), each within its own memory. */
export const recvmsg = (fd: number, length: number): { readonly data: Buffer; readonly control: Buffer } => {
  const fn = foreign("recvmsg", (libc) => {
    const vector = koffi.struct("caisson_iovec", { base: "void *", length: "size_t" })
    const header = koffi.struct("caisson_msghdr", {
      name: "void *",
      nameLength: "uint32",
      vectors: koffi.pointer(vector),
      vectorCount: "size_t",
      control: "void *",
      controlLength: "size_t",
      flags: "int",
    })
    return libc.func("recvmsg", "long", ["int", koffi.inout(koffi.pointer(header)), "int"])
  })
  const data = Buffer.alloc(length)
  const control = Buffer.alloc(128)
  const message = {
    name: null,
    nameLength: 0,
    vectors: [{ base: data, length }],
    vectorCount: 1,
    control,
    controlLength: control.length,
    flags: 0,
  }
  const size = checked("recvmsg", fn(fd, message, MSG_DONTWAIT))
  return { data: data.subarray(0, size), control }
}

const SO_PEERCRED = 17

/** The user at the other end of a Unix socket, as the kernel has it. */
export const peerUid = (fd: number): number => {
  const credentials = Buffer.alloc(12)
  call("getsockopt", "peer", fd, SOL_SOCKET, SO_PEERCRED, credentials, [credentials.length])
  return credentials.readUInt32LE(4)
}
