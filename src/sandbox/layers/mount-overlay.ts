/**
 * Mount an overlay whose parts are named through descriptors of the folders that they lie in.
 *
 * Guarantees: the mount table, which everything inside can read, says nothing of where the parts lie; and no character
 * of that path can be taken for an option.
 */
import { closeSync, constants, openSync } from "node:fs"
import { mount, mountApart } from "../../linux/mounts.ts"

/** The options of an overlay, from the names by which `folders` are to be called in them. */
type Parts<Folders extends readonly string[]> = (...names: { [Index in keyof Folders]: string }) => readonly string[]

const openFolders = <Folders extends readonly string[]>(folders: Folders, parts: Parts<Folders>) => {
  const held: number[] = []
  const close = (): void => held.forEach(closeSync)
  try {
    for (const folder of folders) held.push(openSync(folder, constants.O_DIRECTORY | constants.O_RDONLY))
  } catch (error) {
    close()
    throw error
  }
  const names = held.map((fd) => `/proc/self/fd/${fd}`) as { [Index in keyof Folders]: string }
  return { options: parts(...names).join(","), close }
}

export const mountOverlay = <Folders extends readonly string[]>(
  folders: Folders,
  target: string,
  flags: number,
  parts: Parts<Folders>,
): void => {
  const { options, close } = openFolders(folders, parts)
  try {
    mount("overlay", target, "overlay", flags, options)
  } finally {
    close()
  }
}

/** The same, beside the calling thread: laying out its folders may wait for a disk. */
export const mountOverlayApart = async <Folders extends readonly string[]>(
  folders: Folders,
  target: string,
  flags: number,
  parts: Parts<Folders>,
): Promise<void> => {
  const { options, close } = openFolders(folders, parts)
  try {
    await mountApart("overlay", target, "overlay", flags, options)
  } finally {
    close()
  }
}
