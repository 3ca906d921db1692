/** A program that takes every inotify instance it can get and keeps them, and what can be seen of it from outside. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs"

export const greedy = (mark: string): string => `
import ctypes, time
mark = ${JSON.stringify(mark)}
libc = ctypes.CDLL(None)
while libc.inotify_init1(0) >= 0: pass
open("/tmp/${mark}", "w")
held = open("/tmp/${mark}")
time.sleep(6000)`
/** Prints how many instances it gets, up to ten. */
export const modest = `
import ctypes
libc = ctypes.CDLL(None)
print(sum(libc.inotify_init1(0) >= 0 for _ in range(10)))`

/** Has the greedy program got all it can? It then holds a file of that name open. */
export const isSated = (mark: string): boolean =>
  readdirSync("/proc").some((pid) => {
    try {
      if (!/^\d+$/.test(pid) || !readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(mark)) return false
      return readdirSync(`/proc/${pid}/fd`).some((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`).endsWith(mark))
    } catch {
      return false
    }
  })
