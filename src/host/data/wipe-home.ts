/**
 * What a driver kept in its home, taken away.
 *
 * Guarantees: follows no link that a program left there; what is named is gone, or the whole of it, before this resolves.
 * A call that still runs with it cannot bring it back: the folder that it would keep its state in is another one by then.
 */
import { existsSync, lstatSync, mkdirSync, renameSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { removeEntry } from "../../sandbox/layers/remove.ts"

/** The names before the first pattern; all that is below them is meant. */
export const fixedPart = (glob: string): readonly string[] => {
  const names = glob.split("/").filter((name) => name !== "" && name !== ".")
  const wild = names.findIndex((name) => /[*?[{]/.test(name))
  return wild === -1 ? names : names.slice(0, wild)
}

/** The folder that holds the last name, where no link is on the way to it; a link on the way is what is removed. */
const reach = (home: string, names: readonly string[]): readonly [folder: string, name: string] | undefined => {
  let folder = home
  for (const [at, name] of names.entries()) {
    const facts = lstatSync(join(folder, name), { throwIfNoEntry: false })
    if (facts === undefined) return undefined
    if (at === names.length - 1 || !facts.isDirectory()) return [folder, name]
    folder = join(folder, name)
  }
  return undefined
}

/** `globs`: relative to the home. `all`: everything, whatever it is. */
export const wipeHome = async (home: string, globs: readonly string[] | "all"): Promise<void> => {
  if (!existsSync(home)) return
  const aside = join(dirname(home), `${basename(home)}.gone-${process.pid}-${Date.now()}`)
  // Out of everybody's reach first, so that nothing in it changes meanwhile.
  renameSync(home, aside)
  const parts = globs === "all" ? [[]] : globs.map(fixedPart)
  if (parts.some((names) => names.length === 0)) {
    await removeEntry(dirname(aside), basename(aside))
    return
  }
  for (const names of parts) {
    const found = reach(aside, names)
    if (found !== undefined) await removeEntry(...found)
  }
  try {
    renameSync(aside, home)
  } catch {
    // Somebody began a new one: that is the home now.
    mkdirSync(home, { recursive: true, mode: 0o700 })
    await removeEntry(dirname(aside), basename(aside))
  }
}
