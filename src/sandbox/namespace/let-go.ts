/**
 * Tell the launcher that a sandbox is of no more use.
 *
 * Guarantees: a launcher that hangs keeps nobody: it is told and waited for so long, and what it still holds goes when it
 * gets to it, or with it. One that is slow, but gets on, is waited for.
 */
import type { Launched } from "./launch.ts"

export const letGo = (launched: Launched, sandbox: number): Promise<void> =>
  new Promise((resolve) => {
    const watch = launched.watch(resolve)
    const done = (): void => {
      watch.stop()
      resolve()
    }
    launched.ask({ op: "discard", sandbox }).then(done, done)
  })
