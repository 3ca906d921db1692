/**
 * Mount an overlay whose parts are named through a descriptor of the folder that they lie in.
 *
 * Guarantees: the mount table, which everything inside can read, says nothing of where the parts lie; and no character
 * of that path can be taken for an option.
 */
import { closeSync, constants, openSync } from "node:fs"
import { mount } from "../syscalls.ts"

/** `parts`: the options, from the name by which `folder` is to be called in them. */
export const mountOverlay = (
  folder: string,
  target: string,
  flags: number,
  parts: (folder: string) => readonly string[],
): void => {
  const fd = openSync(folder, constants.O_DIRECTORY | constants.O_RDONLY)
  try {
    mount("overlay", target, "overlay", flags, parts(`/proc/self/fd/${fd}`).join(","))
  } finally {
    closeSync(fd)
  }
}
