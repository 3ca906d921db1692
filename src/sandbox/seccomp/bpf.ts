/**
 * Rules → a classic BPF program that bubblewrap loads as a seccomp filter.
 *
 * Guarantees: a foreign architecture, the x32 ABI and 32-bit entry points are killed; a refused call gets its
 * errno or kills the process; everything else is allowed. Arguments are compared by their low 32 bits, as the
 * kernel does for the flags and commands concerned. Pure.
 */
import { assemble, type Instruction, jump, statement } from "../../linux/classic-bpf.ts"
import { type ArgumentTest, type Refusal, type Rule, type SyscallName, syscallNumbers } from "./rules.ts"

export type Architecture = "x64" | "arm64"

const LD_W_ABS = 0x20
const JEQ_K = 0x15
const JGE_K = 0x35
const JSET_K = 0x45
const RET_K = 0x06

const RET_ALLOW = 0x7fff0000
const RET_ERRNO = 0x00050000
const RET_KILL_PROCESS = 0x80000000

const AUDIT_ARCH: Record<Architecture, number> = { x64: 0xc000003e, arm64: 0xc00000b7 }
const X32_BIT = 0x40000000
const ERRNO = { EPERM: 1, ENOSYS: 38, EAFNOSUPPORT: 97 } as const
const OFFSET_NR = 0
const OFFSET_ARCH = 4
const offsetOfArgument = (index: number): number => 16 + index * 8

const returnFor = (refusal: Refusal): Instruction =>
  statement(RET_K, refusal === "kill" ? RET_KILL_PROCESS : RET_ERRNO | ERRNO[refusal])

/** Fall through when the test holds; jump `past` instructions further when it does not. */
const testInstructions = (test: ArgumentTest, past: number): Instruction[] => {
  const load = statement(LD_W_ABS, offsetOfArgument(test.arg))
  if ("anyBit" in test) return [load, jump(JSET_K, test.anyBit >>> 0, 0, past)]
  if ("noneOfBits" in test) return [load, jump(JSET_K, test.noneOfBits >>> 0, past, 0)]
  if ("in" in test) {
    const last = test.in.length - 1
    return [load, ...test.in.map((value, index) => jump(JEQ_K, value >>> 0, last - index, index === last ? past : 0))]
  }
  const count = test.notIn.length
  return [load, ...test.notIn.map((value, index) => jump(JEQ_K, value >>> 0, past + count - 1 - index, 0))]
}

const ruleInstructions = (number: number, rule: Rule): Instruction[] => {
  const tests = rule.when ?? []
  let body: Instruction[] = [returnFor(rule.refusal)]
  for (const test of [...tests].reverse()) body = [...testInstructions(test, body.length), ...body]
  // The accumulator holds an argument after a test: load the number again for the next rule.
  if (tests.length > 0) body = [...body, statement(LD_W_ABS, OFFSET_NR)]
  return [jump(JEQ_K, number, 0, body.length), ...body]
}

export const compileFilter = (rules: readonly Rule[], architecture: Architecture): Buffer => {
  const column = architecture === "x64" ? 0 : 1
  const numberOf = (name: SyscallName): number | null => syscallNumbers[name][column]
  const program: Instruction[] = [
    statement(LD_W_ABS, OFFSET_ARCH),
    jump(JEQ_K, AUDIT_ARCH[architecture], 1, 0),
    statement(RET_K, RET_KILL_PROCESS),
    statement(LD_W_ABS, OFFSET_NR),
  ]
  if (architecture === "x64") program.push(jump(JGE_K, X32_BIT, 0, 1), statement(RET_K, RET_KILL_PROCESS))
  for (const rule of rules) {
    for (const name of rule.calls) {
      const number = numberOf(name)
      if (number !== null) program.push(...ruleInstructions(number, rule))
    }
  }
  program.push(statement(RET_K, RET_ALLOW))
  if (program.length > 4096) throw new Error("seccomp: the filter is too long")
  return assemble(program)
}
