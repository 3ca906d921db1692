/**
 * A file that somebody else may have put there, read without waiting for it and without believing what was said of it before.
 *
 * Guarantees: opened once, through no link in its last place, never held up by a pipe; only a regular file is read, and at most
 * one byte more than the limit, whatever it grows to. Never throws.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs"
import { limits } from "../limits.ts"

/** A manifest's bytes, or why they cannot be read. */
export type ManifestBytes = Uint8Array | string

export function readBounded(file: string, most: number = limits.fileBytes): ManifestBytes {
  let fd: number | undefined
  try {
    fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    if (!fstatSync(fd).isFile()) return "is not a regular file"
    const buffer = new Uint8Array(Math.min(fstatSync(fd).size, most) + 1)
    let filled = 0
    for (;;) {
      const count = readSync(fd, buffer, filled, buffer.length - filled, null)
      filled += count
      if (count === 0 || filled === buffer.length) return buffer.subarray(0, filled)
    }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "error"
    return code === "ELOOP" ? "is a symbolic link, which is not followed" : `cannot be read: ${code}`
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}
