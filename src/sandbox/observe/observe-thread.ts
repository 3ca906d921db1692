/**
 * The thread that answers the kernel for one sandbox at a time, and remembers what was asked.
 *
 * Guarantees: whatever goes wrong with one question, it is answered; a thread that ends ends what it watched, since then
 * the kernel refuses the calls that are asked about.
 */
import { accessSync, closeSync, constants, openSync } from "node:fs"
import { parentPort } from "node:worker_threads"
import { type PathCall, pathCalls } from "./calls.ts"
import { Listener, type Question, readSocketPath, readText, readWord, statInRoot } from "./listener.ts"
import type { Observed } from "./observed.ts"
import { Recorder, startOf } from "./recorder.ts"

export interface ToObserver {
  /** of this process; the thread closes it */
  readonly listener: number
  readonly workspace: string
  readonly startsScratch: boolean
}
export type FromObserver = { readonly observed: Observed } | { readonly watching: true }

const O_PATH = 0o10000000
const WRITES = 0o3 | 0o100 | 0o1000
const calls = pathCalls()

const writesOf = (call: PathCall, question: Question): boolean => {
  if (call.op === "create" || call.op === "change") return true
  if (call.flags === undefined) return false
  const given = question.argument(call.flags)
  const flags = call.op === "open2" ? (readWord(question.pid, given) ?? 0n) : given
  return (Number(flags & 0xffffffffn) & WRITES) !== 0
}

const signed = (value: bigint): number => Number(BigInt.asIntN(32, value))

interface Asked {
  readonly op: PathCall["op"]
  readonly writes: boolean
  readonly paths: readonly string[]
}

const readAsked = (call: PathCall, question: Question): Asked => {
  const paths: string[] = []
  for (const { dir, path: at } of call.at) {
    const read = call.op === "connect" ? readSocketPath : readText
    const text = read(question.pid, question.argument(at))
    if (text === undefined || text === "") continue
    const start = text.startsWith("/")
      ? ""
      : startOf(question.pid, dir === undefined ? undefined : signed(question.argument(dir)))
    if (start !== undefined) paths.push(start === "" ? text : `${start}/${text}`)
  }
  return { op: call.op, writes: writesOf(call, question), paths }
}

/** Mounted to be read alone, as where a contract and its driver name nothing that may be written. */
const isReadOnly = (root: number): boolean => {
  try {
    accessSync(`/proc/self/fd/${root}/workspace`, constants.W_OK)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EROFS"
  }
}

const watch = ({ listener: fd, workspace, startsScratch }: ToObserver): Observed => {
  const listener = new Listener(fd)
  let root: number | undefined
  let closed: boolean | undefined
  try {
    const recorder = new Recorder({
      look: (path) => (root === undefined ? undefined : statInRoot(root, path)),
      isWorkspaceClosed: () => (closed ??= root === undefined ? undefined : isReadOnly(root)) === true,
      workspace,
      startsScratch,
    })
    for (let question = listener.next(); question !== undefined; question = listener.next()) {
      try {
        // All of a sandbox's processes have one root; the first one that asks shows it.
        const shown = root ?? openSync(`/proc/${question.pid}/root`, O_PATH)
        const call = calls.get(question.number)
        const asked = call === undefined ? undefined : readAsked(call, question)
        const isIts = listener.isWaiting()
        if (root === undefined && !isIts) closeSync(shown)
        else root = shown
        if (isIts && asked !== undefined) for (const path of asked.paths) recorder.record(asked.op, asked.writes, path)
      } catch {
        // It is gone, or its memory is: what it asked for is not known, and is answered all the same.
      }
      listener.goOn()
    }
    return { ...recorder.told(), seen: recorder.seen }
  } finally {
    listener.close()
    if (root !== undefined) closeSync(root)
  }
}

parentPort?.on("message", (message: ToObserver) => {
  const tell = (said: FromObserver): void => parentPort?.postMessage(said)
  tell({ watching: true })
  tell({ observed: watch(message) })
})
