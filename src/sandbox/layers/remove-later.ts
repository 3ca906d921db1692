/**
 * Entries that nobody waits for: removed one after the other, once the call that left them was answered.
 *
 * Guarantees: where other calls are under way their deadlines and answers do not wait for a disk that is slow to forget.
 */
import { setImmediate as turn } from "node:timers/promises"
import { REMOVE } from "./limits.ts"
import { settle } from "./settling/settling.ts"

const waiting: { readonly folder: string; readonly name: string }[] = []
let planned = false
const removeWaiting = async (): Promise<void> => {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    await settle({ do: "remove", ...next }).catch(() => undefined)
    await turn()
  }
  planned = false
}
export const removeLater = (folder: string, name: string): void => {
  waiting.push({ folder, name })
  if (planned) return
  planned = true
  setTimeout(() => void removeWaiting(), REMOVE.laterMs)
}
