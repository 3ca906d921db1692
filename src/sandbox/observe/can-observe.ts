/** Does this kernel ask a listener about system calls, and let it answer that they go on? Asked of the kernel once. */
import { readFileSync } from "node:fs"

let known: boolean | undefined

export const canObserve = (): boolean => {
  try {
    known ??= readFileSync("/proc/sys/kernel/seccomp/actions_avail", "latin1").split(/\s+/).includes("user_notif")
  } catch {
    known = false
  }
  return known
}
