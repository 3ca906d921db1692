/**
 * The masks over a sandbox's /proc, laid from outside once bubblewrap has made the rest of it.
 *
 * Guarantees: all of them lie there, read-only, before the sandbox is given to a call, or it is not given to one. Asked
 * for by its arguments, bubblewrap would read its whole table of mounts again for each.
 * Assumes: nothing but what waits for a job runs in the sandbox yet; the calling thread is the launcher's own, which is
 * privileged over it. A thread that could not come back from there ends the process: every sandbox goes with it.
 */
import { closeSync, mkdirSync, openSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { attachTree, CLONE, cloneTree, MS, mount, setns, unshare } from "../../../linux/mounts.ts"
import { type Masks, presentMasks } from "../../proc-masks.ts"

/** What of /proc is covered, and an empty file and folder to cover it with. */
export interface Cover {
  readonly masks: Masks
  readonly file: string
  readonly folder: string
  /** descriptor of the mounts that the thread comes back to */
  readonly home: number
}

/** `base`: a folder that only this process sees. */
export const openCover = (base: string): Cover => {
  const at = join(base, "blank")
  const [file, folder] = [join(at, "empty-file"), join(at, "empty-folder")]
  mkdirSync(at, { mode: 0o755 })
  writeFileSync(file, "", { mode: 0o444 })
  mkdirSync(folder, { mode: 0o555 })
  // What is cloned of it is as read-only as it is.
  mount(at, at, null, MS.BIND, null)
  mount("none", at, null, MS.BIND | MS.REMOUNT | MS.RDONLY | MS.NOSUID | MS.NODEV | MS.NOEXEC, null)
  return { masks: presentMasks(), file, folder, home: openSync("/proc/thread-self/ns/mnt", "r") }
}

const within = (sandbox: number, home: number, work: () => void): void => {
  // Other threads share the thread's folders from their beginning on, and the kernel moves none that is shared.
  unshare(CLONE.FS)
  setns(sandbox, CLONE.NEWNS)
  try {
    work()
  } finally {
    try {
      setns(home, CLONE.NEWNS)
    } catch {
      process.exit(1)
    }
  }
}

/** `sandbox`: a handle on its first process. */
export const coverProc = (sandbox: number, { masks, file, folder, home }: Cover): void => {
  const covers: { readonly tree: number; readonly path: string }[] = []
  try {
    for (const path of masks.files) covers.push({ tree: cloneTree(file), path })
    for (const path of masks.folders) covers.push({ tree: cloneTree(folder), path })
    within(sandbox, home, () => {
      for (const { tree, path } of covers) attachTree(tree, path)
    })
  } finally {
    for (const { tree } of covers) closeSync(tree)
  }
}
