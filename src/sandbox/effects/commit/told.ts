/**
 * What the file system refused a commit, told by what a person knows: a path of the workspace, or one of two folders.
 *
 * Guarantees: names that the host makes up for what it stages are in no message; the errno's name stays in it and as
 * `code`. Does not: touch errors without an errno; those have words of their own.
 */
import { errorCode } from "../beneath.ts"

export const DATA_FOLDER = "the data folder"
export const TOP_FOLDER = "the top folder takes nothing new"

const words: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "not permitted",
  EROFS: "the file system is read-only",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EIO: "the disk failed",
  EMFILE: "too many open files",
  ENAMETOOLONG: "the name is too long",
}

class RefusedByFileSystem extends Error {
  readonly code: string
  constructor(place: string, code: string, cause: unknown) {
    super(`${place}: ${words[code] ?? "the file system refused it"} (${code})`, { cause })
    this.code = code
  }
}

export const toldAt = (place: string, error: unknown): unknown => {
  const code = errorCode(error)
  return code === "" || error instanceof RefusedByFileSystem ? error : new RefusedByFileSystem(place, code, error)
}

export const tellingAt = <T>(place: string, work: () => T): T => {
  try {
    return work()
  } catch (error) {
    throw toldAt(place, error)
  }
}
