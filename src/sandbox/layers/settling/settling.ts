/**
 * Layers are written beside everything else: in a thread of their own, of which a process has one.
 *
 * Guarantees: however large a layer is and however slow its disk, timers, streams and other calls of this process go on;
 * a thread that ended over a write leaves its outcome open, and says so. Where no other call is there and little is
 * written it is written here, at once: a process that makes one call needs no thread.
 * Assumes: the folder's descriptor and the layer stay until the answer.
 */
import { Worker } from "node:worker_threads"
import { SETTLE } from "../limits.ts"
import type { FromThread, ToThread } from "./settling-thread.ts"
import { doWork, type Settled, type Work } from "./settling-work.ts"

interface Open {
  readonly resolve: (settled: Settled<Work>) => void
  readonly reject: (error: Error) => void
}

class Thread {
  readonly #worker: Worker
  readonly #open = new Map<number, Open>()
  #serial = 0
  constructor(ended: () => void) {
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js"
    this.#worker = new Worker(new URL(`./settling-thread.${extension}`, import.meta.url), {
      env: {},
      // Descriptors come from system calls that Node knows nothing of, and it would warn of each that is closed.
      trackUnmanagedFds: false,
    })
    this.#worker.unref()
    this.#worker.on("message", (message: FromThread) => {
      const open = this.#open.get(message.id)
      this.#forget(message.id)
      if ("settled" in message) open?.resolve(message.settled)
      else open?.reject(new Error(message.broken))
    })
    const end = (why: string): void => {
      ended()
      for (const [id, open] of [...this.#open]) {
        this.#forget(id)
        open.reject(new ThreadEnded(`the thread that writes layers ended: ${why}`))
      }
    }
    this.#worker.once("error", (error) => end((error as Error).message))
    this.#worker.once("exit", (code) => end(`exit ${code}`))
  }
  #forget(id: number): void {
    this.#open.delete(id)
    if (this.#open.size === 0) this.#worker.unref()
  }
  ask(work: Work, signal: AbortSignal | undefined): Promise<Settled<Work>> {
    return new Promise((resolve, reject) => {
      this.#serial += 1
      const id = this.#serial
      const tell = (message: ToThread): void => this.#worker.postMessage(message)
      const onCancel = (): void => tell({ id, cancel: true })
      const done = (): void => signal?.removeEventListener("abort", onCancel)
      this.#open.set(id, {
        resolve(settled) {
          done()
          resolve(settled)
        },
        reject(error) {
          done()
          reject(error)
        },
      })
      // A write under way is a reason to stay alive.
      this.#worker.ref()
      tell({ id, work })
      signal?.addEventListener("abort", onCancel, { once: true })
      if (signal?.aborted === true) onCancel()
    })
  }
}

class ThreadEnded extends Error {}

let thread: Thread | undefined
let calls = 0

/** Are there calls that would have to wait for what this thread does? */
export const othersWait = (): boolean => calls > 0

/** A call's layers are open from now on, until the answer is called. */
export const callBegins = (): (() => void) => {
  calls += 1
  let over = false
  return () => {
    if (!over) calls -= 1
    over = true
  }
}

/** What a call left is removed here in a process that makes one call after the other. */
const isSmall = (work: Work): boolean =>
  work.do === "remove"
    ? calls === 0 && thread === undefined
    : work.do === "commit" &&
      work.layer.writes.effects.length <= SETTLE.hereEffects &&
      work.layer.writes.bytes <= SETTLE.hereBytes

const inThread = async (work: Work, signal: AbortSignal | undefined): Promise<Settled<Work>> => {
  const asked = (thread ??= new Thread(() => {
    thread = undefined
  }))
  try {
    return await asked.ask(work, signal)
  } catch (error) {
    if (!(error instanceof ThreadEnded)) throw error
    if (work.do === "remove") return doWork(work, signal)
    return { ok: false, reason: "unknown", message: error.message }
  }
}

const settleWork = (work: Work, signal?: AbortSignal): Promise<Settled<Work>> =>
  calls <= 1 && isSmall(work) ? doWork(work, signal) : inThread(work, signal)
export const settle = settleWork as <W extends Work>(work: W, signal?: AbortSignal) => Promise<Settled<W>>
