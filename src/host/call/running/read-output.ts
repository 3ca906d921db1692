/**
 * What a program printed, read by its kind, which may ask functions of the driver's own for it.
 *
 * Guarantees: the reading is part of the call: it ends with the call's time and by a cancel, as the program would have, and
 * then whatever it answers is not waited for. Does not: judge what was read.
 */
import type { CollectedSandbox } from "../../../sandbox/backend.ts"
import type { ProgramCommand } from "../../drivers/kind.ts"
import type { Attempt, Sealed } from "../steps.ts"
import { failedBy } from "./outcome.ts"

/** `untilMs`: on the clock of `performance.now`. */
export const readOutput = async (
  sealed: Sealed,
  command: ProgramCommand,
  exited: CollectedSandbox,
  exitCode: number,
  untilMs: number,
): Promise<Attempt["outcome"]> => {
  const { stdout, stderr } = exited
  const time = new AbortController()
  const over = AbortSignal.any([sealed.signal, time.signal])
  const timer = setTimeout(() => time.abort(), Math.max(0, untilMs - performance.now()))
  const { promise: ended, resolve } = Promise.withResolvers<undefined>()
  const onOver = (): void => resolve(undefined)
  over.addEventListener("abort", onOver, { once: true })
  if (over.aborted) onOver()
  try {
    const reading = Promise.resolve(command.read({ exitCode, stdout, stderr }, over))
    // Once nobody waits for it, what becomes of it is nobody's.
    reading.catch(() => undefined)
    const read = await Promise.race([reading, ended])
    // What ended because it was told to has no words of its own.
    if (read !== undefined && (read.ok || !over.aborted)) return read
    return failedBy(sealed, exited, sealed.signal.aborted ? { by: "cancelled" } : { by: "limit", limit: "wall" })
  } finally {
    clearTimeout(timer)
    over.removeEventListener("abort", onOver)
  }
}
