/**
 * Mount an overlay whose parts are named through descriptors of the folders that they lie in.
 *
 * Guarantees: the mount table, which everything inside can read, says nothing of where the parts lie; and no character
 * of that path can be taken for an option.
 */
import { closeSync, constants, openSync } from "node:fs"
import { mount } from "../../linux/mounts.ts"

/** `parts`: the options, from the names by which `folders` are to be called in them. */
export const mountOverlay = <Folders extends readonly string[]>(
  folders: Folders,
  target: string,
  flags: number,
  parts: (...names: { [Index in keyof Folders]: string }) => readonly string[],
): void => {
  const held: number[] = []
  try {
    for (const folder of folders) held.push(openSync(folder, constants.O_DIRECTORY | constants.O_RDONLY))
    const names = held.map((fd) => `/proc/self/fd/${fd}`) as { [Index in keyof Folders]: string }
    mount("overlay", target, "overlay", flags, parts(...names).join(","))
  } finally {
    held.forEach(closeSync)
  }
}
