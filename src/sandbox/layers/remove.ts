/**
 * Removing a folder of a call's, whatever the call made of it.
 *
 * Guarantees: works by folder descriptors; follows no symlink and crosses no mount; takes folders without permissions
 * and trees of any depth with a bounded number of descriptors; lets other work have its turn.
 * Does not: throw. What cannot be removed stays, and the next start tries again.
 */
import { chmodSync, closeSync, statSync } from "node:fs"
import { setImmediate as turn } from "node:timers/promises"
import { namesIn, openDir, openRoot } from "../effects/beneath.ts"
import { fromBuffer, type BytePath, toNative } from "../effects/names.ts"
import { AT_REMOVEDIR, renameat2, unlinkat } from "../../linux/files.ts"
import { REMOVE } from "./limits.ts"

const done = (step: () => unknown): boolean => {
  try {
    step()
    return true
  } catch {
    return false
  }
}

class Removal {
  readonly #top: number
  readonly #left: BytePath[]
  #brought = 0
  #steps = 0
  constructor(top: number, name: BytePath) {
    this.#top = top
    this.#left = [name]
  }
  async run(): Promise<void> {
    for (let name = this.#left.pop(); name !== undefined; name = this.#left.pop())
      await this.#remove(this.#top, name, 0)
  }
  /** A folder deep down goes beside the top one, to be emptied from there. */
  #bringUp(parent: number, name: BytePath): boolean {
    this.#brought += 1
    const place = fromBuffer(Buffer.from(`removed-${process.pid}-${Date.now()}-${this.#brought}`))
    if (!done(() => renameat2(parent, toNative(name), this.#top, toNative(place)))) return false
    this.#left.push(place)
    return true
  }
  async #remove(parent: number, name: BytePath, depth: number): Promise<void> {
    this.#steps += 1
    if (this.#steps % REMOVE.slice === 0) await turn()
    if (done(() => unlinkat(parent, toNative(name)))) return
    if (depth >= REMOVE.depth && this.#bringUp(parent, name)) return
    let dir: number
    try {
      dir = openDir(parent, name)
    } catch {
      return
    }
    try {
      const self = `/proc/self/fd/${dir}`
      done(() => (statSync(self).mode & 0o700) === 0o700 || chmodSync(self, 0o700))
      let names: BytePath[] = []
      done(() => (names = namesIn(dir)))
      for (const child of names) await this.#remove(dir, child, depth + 1)
    } finally {
      closeSync(dir)
    }
    done(() => unlinkat(parent, toNative(name), AT_REMOVEDIR))
  }
}

/** Remove one entry of a folder, with all that is in it. */
export const removeEntry = async (folder: string, name: string): Promise<void> => {
  let top: number
  try {
    top = openRoot(folder)
  } catch {
    return
  }
  try {
    await new Removal(top, fromBuffer(Buffer.from(name))).run()
  } finally {
    closeSync(top)
  }
}
