/**
 * Tell the launcher that a sandbox is of no more use.
 *
 * Guarantees: a launcher that hangs keeps nobody: it is told and waited for so long, and what it still holds goes when it
 * gets to it, or with it.
 */
import type { Launched } from "./launch.ts"
import { LAUNCHER } from "./limits.ts"

export const letGo = (launched: Launched, sandbox: number): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, LAUNCHER.stopMs)
    const done = (): void => {
      clearTimeout(timer)
      resolve()
    }
    launched.ask({ op: "discard", sandbox }).then(done, done)
  })
