/**
 * Questions one after the other, each answered by a line.
 *
 * Guarantees: questions go to stderr; a line that was typed before its question is kept for it. The end of the input, or the
 * signal, answers every question that is left with nothing.
 */
import { createInterface } from "node:readline"

export interface Questions extends Disposable {
  /** The line without its end; undefined: nobody answers any more. */
  ask(question: string): Promise<string | undefined>
}

export const askLines = (signal: AbortSignal): Questions => {
  // Not `terminal: true`: the terminal's own line editing stays, and so does what Ctrl-C means.
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: false })
  const typed = lines[Symbol.asyncIterator]()
  const stop = (): void => lines.close()
  signal.addEventListener("abort", stop, { once: true })
  return {
    ask: async (question) => {
      if (signal.aborted) return undefined
      process.stderr.write(question)
      const next = await typed.next()
      return next.done === true ? undefined : next.value
    },
    [Symbol.dispose]: () => {
      signal.removeEventListener("abort", stop)
      lines.close()
      process.stdin.unref()
    },
  }
}
