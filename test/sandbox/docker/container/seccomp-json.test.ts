import { describe, expect, it } from "vitest"
import { type JsonRule, seccompProfile } from "../../../../src/sandbox/docker/container/seccomp-json.ts"
import { rulesFor } from "../../../../src/sandbox/seccomp/rules.ts"

const profile = seccompProfile("x64")
/** As runc reads it: conditions on one argument index are alternatives; across indexes all must hold. */
const refuses = (rule: JsonRule, args: readonly bigint[]): boolean => {
  const conditions = rule.args ?? []
  const byIndex = new Map<number, boolean>()
  for (const { index, op, value, valueTwo } of conditions) {
    const actual = args[index] ?? 0n
    const holds =
      op === "SCMP_CMP_GT"
        ? actual > BigInt(value)
        : op === "SCMP_CMP_EQ"
          ? actual === BigInt(value)
          : (actual & BigInt(value)) === BigInt(valueTwo)
    byIndex.set(index, (byIndex.get(index) ?? false) || holds)
  }
  return [...byIndex.values()].every((held) => held)
}
const refusal = (name: string, args: readonly bigint[] = []): number | "kill" | undefined => {
  const rule = profile.syscalls.find((each) => each.names.includes(name) && refuses(each, args))
  return rule === undefined ? undefined : rule.action === "SCMP_ACT_KILL_PROCESS" ? "kill" : rule.errnoRet
}

describe("the rule table as Docker's JSON", () => {
  it("refuses every call that the table refuses without a condition", () => {
    for (const rule of rulesFor({ children: true }).filter((each) => each.when === undefined)) {
      for (const name of rule.calls)
        expect([name, refusal(name)]).toEqual([
          name,
          { EPERM: 1, ENOSYS: 38, EAFNOSUPPORT: 97, kill: "kill" }[rule.refusal],
        ])
    }
  })

  it("allows what the table does not name", () => {
    for (const name of ["read", "write", "execve", "fork", "vfork", "exit_group", "prctl", "seccomp", "kill"])
      expect(refusal(name)).toBeUndefined()
  })

  it("allows four socket families and no other, whatever the upper half of the argument", () => {
    const allowed = [1n, 2n, 10n, 16n]
    for (let family = 0n; family < 64n; family += 1n)
      expect([family, refusal("socket", [family, 1n, 0n])]).toEqual([family, allowed.includes(family) ? undefined : 97])
    for (const family of [17n, 40n, 0xffffffffn]) expect(refusal("socket", [(1n << 32n) | family, 1n, 0n])).toBe(97)
  })

  it("allows only the routing netlink", () => {
    expect(refusal("socket", [16n, 3n, 0n])).toBeUndefined()
    for (const protocol of [4n, 12n, 16n]) expect(refusal("socket", [16n, 3n, protocol])).toBe(97)
  })

  it("refuses new namespaces by clone, each kind alone and with other flags, and allows threads", () => {
    for (const flag of [0x20000n, 0x2000000n, 0x4000000n, 0x8000000n, 0x10000000n, 0x20000000n, 0x40000000n]) {
      expect(refusal("clone", [flag])).toBe(1)
      expect(refusal("clone", [flag | 0x3d0f00n])).toBe(1)
    }
    expect(refusal("clone", [0x3d0f00n])).toBeUndefined()
    expect(refusal("clone", [17n])).toBeUndefined()
    expect(refusal("clone3")).toBe(38)
  })

  it("refuses typing into a terminal even with rubbish in the upper half", () => {
    expect(refusal("ioctl", [0n, 0x5412n])).toBe(1)
    expect(refusal("ioctl", [0n, (0xdeadn << 32n) | 0x5412n])).toBe(1)
    expect(refusal("ioctl", [0n, 0x5401n])).toBeUndefined()
  })

  it("lets process 1 start the program even where the program may start none", () => {
    expect(profile.syscalls.some((rule) => rule.action === "SCMP_ACT_KILL_PROCESS")).toBe(false)
  })
})
