/**
 * The system calls that name a path, and the filter that asks about them. Pure.
 *
 * Guarantees: calls on descriptors alone are not asked about, so that what a program does with an open file costs nothing.
 * The filter refuses nothing: what is refused is refused by the filter of the sandbox, which outranks it.
 */
import { assemble, type Instruction, jump, statement } from "../../linux/classic-bpf.ts"

export type Op = "open" | "create" | "open2" | "exec" | "look" | "change" | "connect"
interface PathArgument {
  /** argument with the folder's descriptor; absent: the working folder */
  readonly dir?: number
  readonly path: number
}
export interface PathCall {
  readonly op: Op
  readonly at: readonly PathArgument[]
  /** argument with the flags of an open */
  readonly flags?: number
  /** argument whose AT_EMPTY_PATH makes it a call on a descriptor */
  readonly emptyAt?: number
}

const one = (op: Op, path: number, more: Omit<PathCall, "op" | "at"> = {}): PathCall => ({
  op,
  at: [{ path }],
  ...more,
})
const below = (op: Op, dir: number, more: Omit<PathCall, "op" | "at"> = {}): PathCall => ({
  op,
  at: [{ dir, path: dir + 1 }],
  ...more,
})
const both: PathCall = {
  op: "change",
  at: [
    { dir: 0, path: 1 },
    { dir: 2, path: 3 },
  ],
}

/** `[x64, arm64]`; null where the architecture has no such call. */
const table: readonly (readonly [x64: number | null, arm64: number | null, PathCall])[] = [
  [2, null, one("open", 0, { flags: 1 })],
  [85, null, one("create", 0)],
  [257, 56, below("open", 0, { flags: 2 })],
  [437, 437, below("open2", 0, { flags: 2 })],
  [59, 221, one("exec", 0)],
  [322, 281, below("exec", 0, { emptyAt: 4 })],
  [4, null, one("look", 0)],
  [6, null, one("look", 0)],
  [21, null, one("look", 0)],
  [262, 79, below("look", 0, { emptyAt: 3 })],
  [269, 48, below("look", 0)],
  [439, 439, below("look", 0, { emptyAt: 3 })],
  [332, 291, below("look", 0, { emptyAt: 2 })],
  [83, null, one("change", 0)],
  [258, 34, below("change", 0)],
  [84, null, one("change", 0)],
  [87, null, one("change", 0)],
  [263, 35, below("change", 0)],
  [82, null, { op: "change", at: [{ path: 0 }, { path: 1 }] }],
  [264, 38, both],
  [316, 276, both],
  [86, null, one("change", 1)],
  [265, 37, below("change", 2)],
  [88, null, one("change", 1)],
  [266, 36, below("change", 1)],
  [76, 45, one("change", 0)],
  [90, null, one("change", 0)],
  [268, 53, below("change", 0)],
  [452, 452, below("change", 0)],
  [133, null, one("change", 0)],
  [259, 33, below("change", 0)],
  [92, null, one("change", 0)],
  [94, null, one("change", 0)],
  [260, 54, below("change", 0, { emptyAt: 4 })],
  [132, null, one("change", 0)],
  [235, null, one("change", 0)],
  [261, null, below("change", 0)],
  [280, 88, below("change", 0)],
  [188, 5, one("change", 0)],
  [189, 6, one("change", 0)],
  [197, 14, one("change", 0)],
  [198, 15, one("change", 0)],
  // A socket of this machine has a path, in its address.
  [42, 203, one("connect", 1)],
]

type Architecture = "x64" | "arm64"
const AUDIT_ARCH: Record<Architecture, number> = { x64: 0xc000003e, arm64: 0xc00000b7 }
const column = (architecture: string): 0 | 1 => (architecture === "arm64" ? 1 : 0)

export const pathCalls = (architecture: string = process.arch): ReadonlyMap<number, PathCall> =>
  new Map(
    table.flatMap((row) => {
      const number = row[column(architecture)]
      return number === null ? [] : [[number, row[2]] as const]
    }),
  )

const LD_W_ABS = 0x20
const JEQ_K = 0x15
const JSET_K = 0x45
const RET_K = 0x06
const RET_ALLOW = 0x7fff0000
const RET_USER_NOTIF = 0x7fc00000
const AT_EMPTY_PATH = 0x1000

const ask = (number: number, { emptyAt }: PathCall): readonly Instruction[] => {
  const notify = statement(RET_K, RET_USER_NOTIF)
  if (emptyAt === undefined) return [jump(JEQ_K, number, 0, 1), notify]
  return [
    jump(JEQ_K, number, 0, 4),
    statement(LD_W_ABS, 16 + emptyAt * 8),
    jump(JSET_K, AT_EMPTY_PATH, 0, 1),
    statement(RET_K, RET_ALLOW),
    notify,
  ]
}

export const observingFilter = (architecture: string = process.arch): Uint8Array =>
  assemble([
    statement(LD_W_ABS, 4),
    // Another architecture is the business of the sandbox's own filter.
    jump(JEQ_K, AUDIT_ARCH[architecture === "arm64" ? "arm64" : "x64"], 1, 0),
    statement(RET_K, RET_ALLOW),
    statement(LD_W_ABS, 0),
    ...[...pathCalls(architecture)].flatMap(([number, call]) => ask(number, call)),
    statement(RET_K, RET_ALLOW),
  ])
