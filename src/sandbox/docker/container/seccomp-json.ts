/**
 * The shared rule table as Docker's seccomp JSON: the filter around the whole container, process 1 included.
 *
 * Guarantees: every rule that JSON can say is in it, with the same refusal; a rule that it cannot say exactly
 * (several conditions on one argument mean "or" to the engine) is said more strictly or left to the bridge, which
 * loads the same table in full, compiled by `seccomp/bpf.ts`, right before the program starts. Pure.
 * Does not: forbid child processes, since process 1 must start the program.
 */
import { type ArgumentTest, type Refusal, type Rule, rulesFor } from "../../seccomp/rules.ts"

interface JsonArgument {
  readonly index: number
  readonly value: number
  readonly valueTwo: number
  readonly op: "SCMP_CMP_EQ" | "SCMP_CMP_GT" | "SCMP_CMP_MASKED_EQ"
}
export interface JsonRule {
  readonly names: readonly string[]
  readonly action: "SCMP_ACT_ERRNO" | "SCMP_ACT_KILL_PROCESS"
  readonly errnoRet?: number
  readonly args?: readonly JsonArgument[]
}
interface JsonProfile {
  readonly defaultAction: "SCMP_ACT_ALLOW"
  readonly architectures: readonly string[]
  readonly syscalls: readonly JsonRule[]
}

const LOW = 0xffffffff
const ERRNO = { EPERM: 1, ENOSYS: 38, EAFNOSUPPORT: 97 } as const
/** A gap wider than this between allowed values is not listed value by value. */
const WIDEST_GAP = 64

const lowEquals = (index: number, value: number): JsonArgument => ({
  index,
  value: LOW,
  valueTwo: value >>> 0,
  op: "SCMP_CMP_MASKED_EQ",
})
const bitSet = (index: number, bit: number): JsonArgument => ({
  index,
  value: bit,
  valueTwo: bit,
  op: "SCMP_CMP_MASKED_EQ",
})

/** Alternatives of which any one refuses; undefined where JSON has no words for the test. */
const alternatives = (test: ArgumentTest): readonly JsonArgument[] | undefined => {
  if ("in" in test) return test.in.map((value) => lowEquals(test.arg, value))
  if ("anyBit" in test) {
    return Array.from({ length: 32 }, (_, index) => 2 ** index)
      .filter((bit) => ((test.anyBit >>> 0) & bit) !== 0)
      .map((bit) => bitSet(test.arg, bit))
  }
  if ("noneOfBits" in test) return undefined
  const allowed = [...new Set(test.notIn.map((value) => value >>> 0))].sort((a, b) => a - b)
  const highest = allowed.at(-1)
  if (highest === undefined || highest > WIDEST_GAP) return undefined
  const between = Array.from({ length: highest }, (_, value) => value).filter((value) => !allowed.includes(value))
  return [
    ...between.map((value) => lowEquals(test.arg, value)),
    { index: test.arg, value: highest, valueTwo: 0, op: "SCMP_CMP_GT" },
  ]
}

const action = (refusal: Refusal): Pick<JsonRule, "action" | "errnoRet"> =>
  refusal === "kill" ? { action: "SCMP_ACT_KILL_PROCESS" } : { action: "SCMP_ACT_ERRNO", errnoRet: ERRNO[refusal] }

const jsonRules = (rule: Rule): readonly JsonRule[] => {
  const said = { names: rule.calls, ...action(rule.refusal) }
  const tests = (rule.when ?? []).map(alternatives)
  if (tests.some((alternative) => alternative === undefined)) return []
  let combined: readonly (readonly JsonArgument[])[] = [[]]
  for (const options of tests as readonly (readonly JsonArgument[])[])
    combined = combined.flatMap((head) => options.map((one) => [...head, one]))
  return combined.map((args) => (args.length === 0 ? said : { ...said, args }))
}

export const seccompProfile = (architecture: string): JsonProfile => ({
  defaultAction: "SCMP_ACT_ALLOW",
  architectures: architecture === "arm64" ? ["SCMP_ARCH_AARCH64"] : ["SCMP_ARCH_X86_64"],
  syscalls: rulesFor({ children: true }).flatMap(jsonRules),
})
