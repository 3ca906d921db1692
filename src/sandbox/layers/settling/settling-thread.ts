/** The thread that writes layers (`settling.ts`): takes work, and a word that its wait for another commit is to end. */
import { parentPort } from "node:worker_threads"
import { doWork, type Work } from "./settling-work.ts"

export type ToThread = { readonly id: number; readonly work: Work } | { readonly id: number; readonly cancel: true }
export type FromThread =
  | { readonly id: number; readonly settled: Awaited<ReturnType<typeof doWork>> }
  | { readonly id: number; readonly broken: string }

const underWay = new Map<number, AbortController>()

parentPort?.on("message", (message: ToThread) => {
  const { id } = message
  if ("cancel" in message) return underWay.get(id)?.abort()
  const cancel = new AbortController()
  underWay.set(id, cancel)
  const answer = (text: FromThread): void => parentPort?.postMessage(text)
  doWork(message.work, cancel.signal)
    .then(
      (settled) => answer({ id, settled }),
      (error: unknown) => answer({ id, broken: error instanceof Error ? error.message : String(error) }),
    )
    .finally(() => underWay.delete(id))
})
