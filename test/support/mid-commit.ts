/** Kills that fall into a commit, however busy the machine is: one that came too late is tried again. */
import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { setImmediate as turn } from "node:timers/promises"

/** Transactions of a data folder that are under way or were left behind. */
export const left = (data: string): string[] => {
  const root = join(data, "tx")
  return existsSync(root) ? readdirSync(root).filter((name) => !name.startsWith("lock-")) : []
}

/** Waits until a journal is written, from where on the workspace changes, or until `over`. */
export const untilBegun = async (data: string, over: () => boolean): Promise<void> => {
  while (!over() && !left(data).some((name) => existsSync(join(data, "tx", name, "journal")))) await turn()
}

const TRIES = 25

/** Repeats until `attempt` says that the kill came before the commit was over. */
export const untilCaught = async (attempt: () => Promise<boolean>): Promise<void> => {
  for (let tries = 0; tries < TRIES; tries += 1) if (await attempt()) return
  throw new Error(`none of ${TRIES} kills fell into a commit`)
}
