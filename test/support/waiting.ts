/** Sandboxes that wait for calls, as they are seen from outside. */
import { readFileSync } from "node:fs"
import type { SandboxBackend } from "../../src/sandbox/backend.ts"
import { commandOf, descendants, prepared, until } from "./sealed.ts"

/** Processes of a host that wait inside for a job: the interpreter, started by its descriptor. */
export const waitingOf = (host: number): number[] =>
  descendants(host)
    .map(({ pid }) => pid)
    .filter((pid) => commandOf(pid).startsWith("/proc/self/fd/10\0"))
export const waiting = (): number[] => waitingOf(process.pid)

const isIdle = (pid: number): boolean => {
  try {
    return / S /.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
  } catch {
    return false
  }
}

/** One waits, has nothing more to do before its job comes, and the host has heard so. */
export const oneIsReady = async (backend: SandboxBackend): Promise<void> => {
  await until(() => waiting().length > 0 && waiting().every(isIdle), "one waits for the next call")
  // What it said before lies with the launcher: by the answer to a question that is asked now, that has been read.
  await (await prepared(backend, { limits: { pids: 7 } }))[Symbol.asyncDispose]()
}
