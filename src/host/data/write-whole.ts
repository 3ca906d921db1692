/**
 * A file of the data folder, or one that a person named, written whole or not at all.
 *
 * Guarantees: what is there under the name is the old content or the new one, also after a crash or a power cut; the new
 * one is on the disk before it has the name. No link that lies in the way is followed, the name on the way included.
 * Assumes: one writer at a time a file and process.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from "node:fs"
import { dirname } from "node:path"

/** What was made, renamed or removed in it is on the disk. */
export const syncFolder = (folder: string): void => {
  const fd = openSync(folder, "r")
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

export const writeWhole = (file: string, content: string | Uint8Array, mode: number): void => {
  const folder = dirname(file)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const temporary = `${file}.${process.pid}.new`
  try {
    // What lies there is an earlier process's, or was put there by whoever guessed the name.
    rmSync(temporary, { force: true })
    const fd = openSync(temporary, "wx", mode)
    try {
      const bytes = typeof content === "string" ? Buffer.from(content) : content
      for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(temporary, file)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
  syncFolder(folder)
}
