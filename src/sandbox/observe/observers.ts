/**
 * Threads that observe sandboxes, one each, kept for the next.
 *
 * Guarantees: a sandbox is told to go on only once a thread watches it. A thread that ends is told as nothing observed.
 */
import { closeSync, readlinkSync } from "node:fs"
import { Worker } from "node:worker_threads"
import { raw } from "../../linux/libc.ts"
import { pidfdOpen } from "../../linux/processes.ts"
import { OBSERVE } from "./limits.ts"
import type { FromObserver, ToObserver } from "./observe-thread.ts"
import type { Observed } from "./observed.ts"

const idle: Worker[] = []

const make = (): Worker => {
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js"
  const worker = new Worker(new URL(`./observe-thread.${extension}`, import.meta.url), {
    env: {},
    trackUnmanagedFds: false,
  })
  worker.unref()
  return worker
}
/** One that is there when it is needed. */
export const warmObserver = (): void => {
  if (idle.length === 0) idle.push(make())
}

/** The listener that one of these processes holds under that number, as a descriptor of ours. */
const takeListener = (processes: readonly number[], number: number): number => {
  for (const pid of processes) {
    try {
      if (!readlinkSync(`/proc/${pid}/fd/${number}`).includes("seccomp")) continue
    } catch {
      continue
    }
    const handle = pidfdOpen(pid)
    try {
      return raw("pidfd_getfd", 438, "int pidfd, int fd, uint flags", handle, number, 0)
    } finally {
      closeSync(handle)
    }
  }
  throw new Error("no process of the sandbox holds the listener")
}

interface Observation {
  /** it is watched: the sandbox may go on */
  readonly watching: Promise<void>
  /** once no process of it is left; undefined where the thread ended before */
  readonly observed: Promise<Observed | undefined>
}

export const observe = (
  processes: readonly number[],
  number: number,
  { workspace, startsScratch }: Omit<ToObserver, "listener">,
): Observation => {
  const listener = takeListener(processes, number)
  const worker = idle.pop() ?? make()
  const watching = Promise.withResolvers<void>()
  const observed = Promise.withResolvers<Observed | undefined>()
  watching.promise.catch(() => undefined)
  const ended = (): void => {
    watching.reject(new Error("the thread that observes ended"))
    observed.resolve(undefined)
  }
  const heard = (message: FromObserver): void => {
    if ("watching" in message) {
      watching.resolve()
      return
    }
    worker.off("message", heard)
    worker.off("error", ended)
    worker.off("exit", ended)
    observed.resolve(message.observed)
    worker.unref()
    if (idle.length < OBSERVE.idleThreads) idle.push(worker)
    else void worker.terminate()
  }
  worker.on("message", heard)
  worker.once("error", ended)
  worker.once("exit", ended)
  worker.postMessage({ listener, workspace, startsScratch } satisfies ToObserver)
  return { watching: watching.promise, observed: observed.promise }
}
