import { describe, expect, test } from "vitest"
import { type Architecture, compileFilter } from "../../src/sandbox/seccomp/bpf.ts"
import { rulesFor, type SyscallName, syscallNumbers } from "../../src/sandbox/seccomp/rules.ts"

/** A small machine for the four instructions that the filter is made of. */
const run = (program: Buffer, call: { arch: number; nr: number; args?: number[] }): number => {
  const load = (offset: number): number => {
    if (offset === 0) return call.nr >>> 0
    if (offset === 4) return call.arch >>> 0
    return (call.args?.[(offset - 16) / 8] ?? 0) >>> 0
  }
  let accumulator = 0
  for (let pc = 0; pc < program.length / 8; ) {
    const code = program.readUInt16LE(pc * 8)
    const jt = program.readUInt8(pc * 8 + 2)
    const jf = program.readUInt8(pc * 8 + 3)
    const k = program.readUInt32LE(pc * 8 + 4)
    pc += 1
    if (code === 0x20) accumulator = load(k)
    else if (code === 0x06) return k
    else if (code === 0x15) pc += accumulator === k ? jt : jf
    else if (code === 0x35) pc += accumulator >= k ? jt : jf
    else if (code === 0x45) pc += (accumulator & k) !== 0 ? jt : jf
    else throw new Error(`unknown instruction ${code}`)
  }
  throw new Error("ran off the end")
}
const ALLOW = 0x7fff0000
const KILL = 0x80000000
const EPERM = 0x00050001
const ENOSYS = 0x00050026
const EAFNOSUPPORT = 0x00050061
const architectures: readonly { name: Architecture; arch: number; column: 0 | 1 }[] = [
  { name: "x64", arch: 0xc000003e, column: 0 },
  { name: "arm64", arch: 0xc00000b7, column: 1 },
]

describe.each(architectures)("the filter on $name", ({ name, arch, column }) => {
  const open = compileFilter(rulesFor({ children: true }), name)
  const childless = compileFilter(rulesFor({ children: false }), name)
  const verdict = (program: Buffer, call: SyscallName, ...args: number[]): number | null => {
    const nr = syscallNumbers[call][column]
    return nr === null ? null : run(program, { arch, nr, args })
  }

  test("lets no thread have descriptors of its own", () => {
    const [thread, files, unshared] = [0x10000, 0x400, 0x2]
    for (const filter of [open, childless]) {
      expect(verdict(filter, "clone", thread | 0x900)).toBe(EPERM)
      expect(verdict(filter, "clone", thread | files | 0x900)).toBe(ALLOW)
      expect(verdict(filter, "close_range", 3, 9, unshared)).toBe(ENOSYS)
      expect(verdict(filter, "close_range", 3, 9, 4)).toBe(ALLOW)
    }
    expect(verdict(open, "clone", 17)).toBe(ALLOW)
  })

  test.each([
    "ptrace",
    "mount",
    "unshare",
    "setns",
    "bpf",
    "keyctl",
    "userfaultfd",
    "open_by_handle_at",
    "kexec_load",
    "pidfd_getfd",
  ] as const)("refuses %s", (call) => {
    expect(verdict(open, call)).toBe(EPERM)
    expect(verdict(childless, call)).toBe(EPERM)
  })
  test.each(["io_uring_setup", "clone3", "memfd_create"] as const)(
    "answers %s as if the kernel had no such call",
    (call) => {
      expect(verdict(open, call)).toBe(ENOSYS)
    },
  )
  test("lets plain calls pass", () => {
    for (const nr of [0, 1, 63, 64, 222, 257]) {
      if (Object.values(syscallNumbers).some((numbers) => numbers[column] === nr)) continue
      expect(run(open, { arch, nr })).toBe(ALLOW)
      expect(run(childless, { arch, nr })).toBe(ALLOW)
    }
  })
  test("allows clone for threads and processes, never with a namespace flag", () => {
    expect(verdict(open, "clone", 0x11)).toBe(ALLOW)
    expect(verdict(open, "clone", 0x3d0f00)).toBe(ALLOW)
    for (const flag of [0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000]) {
      expect(verdict(open, "clone", flag | 0x11)).toBe(EPERM)
      expect(verdict(childless, "clone", flag | 0x10000)).toBe(EPERM)
    }
  })
  test("kills a fork where children are forbidden, and lets threads live", () => {
    expect(verdict(childless, "clone", 0x11)).toBe(KILL)
    expect(verdict(childless, "clone", 0x3d0f00)).toBe(ALLOW)
    expect(verdict(childless, "fork") ?? KILL).toBe(KILL)
    expect(verdict(open, "fork") ?? ALLOW).toBe(ALLOW)
  })
  test("allows the four socket families and only the routing netlink protocol", () => {
    for (const family of [1, 2, 10]) expect(verdict(open, "socket", family, 1, 0)).toBe(ALLOW)
    expect(verdict(open, "socket", 16, 3, 0)).toBe(ALLOW)
    expect(verdict(open, "socket", 16, 3, 9)).toBe(EAFNOSUPPORT)
    for (const family of [3, 4, 5, 9, 15, 17, 29, 31, 38, 40, 44])
      expect(verdict(open, "socket", family, 1, 0)).toBe(EAFNOSUPPORT)
    for (const family of [2, 10])
      for (const flags of [0, 0x800, 0x80000, 0x80800]) {
        for (const type of [1, 2]) expect(verdict(open, "socket", family, type | flags, 0)).toBe(ALLOW)
        for (const type of [4, 5, 6]) expect(verdict(open, "socket", family, type | flags, 0)).toBe(EAFNOSUPPORT)
      }
    for (const type of [1, 2, 5]) expect(verdict(open, "socket", 1, type, 0)).toBe(ALLOW)
    expect(verdict(open, "socketpair", 1)).toBe(ALLOW)
    expect(verdict(open, "socketpair", 2)).toBe(EAFNOSUPPORT)
  })
  test("refuses terminal injection whatever stands in the high half of the command", () => {
    expect(verdict(open, "ioctl", 0, 0x5412)).toBe(EPERM)
    expect(verdict(open, "ioctl", 0, 0x541c)).toBe(EPERM)
    expect(verdict(open, "ioctl", 0, 0x5401)).toBe(ALLOW)
  })
  test("allows the harmless personalities alone", () => {
    expect(verdict(open, "personality", 0xffffffff)).toBe(ALLOW)
    expect(verdict(open, "personality", 0x40000)).toBe(ALLOW)
    expect(verdict(open, "personality", 0x0400000)).toBe(EPERM)
  })
  test("kills a foreign architecture", () => {
    expect(run(open, { arch: 0x40000003, nr: 1 })).toBe(KILL)
  })
})

test("kills the x32 ABI", () => {
  expect(run(compileFilter(rulesFor({ children: true }), "x64"), { arch: 0xc000003e, nr: 0x40000001 })).toBe(KILL)
})
