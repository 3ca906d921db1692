/**
 * The audit log's lines, in order, without holding the file in memory.
 *
 * Guarantees: splits on the newline byte alone (text inside JSON may hold any other separator), and says of the last
 * piece whether it was ended. Reads at most up to byte `upTo`, so a snapshot of a growing file is possible, and from byte
 * `from` on, which is where a line begins.
 */
import { closeSync, fstatSync, openSync, readSync } from "node:fs"

interface LogLine {
  /** counted from 1, from where the reading began */
  readonly number: number
  readonly text: string
  /** bytes of the file up to and with this line */
  readonly end: number
  readonly terminated: boolean
}

const CHUNK = 1 << 20
const NEWLINE = 10

export function* linesOf(file: string, upTo = Number.MAX_SAFE_INTEGER, from = 0): Generator<LogLine> {
  let fd: number
  try {
    fd = openSync(file, "r")
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return
    throw error
  }
  try {
    const size = Math.min(fstatSync(fd).size, upTo)
    const pieces: Buffer[] = []
    let number = 0
    let position = from
    const take = (): string => Buffer.concat(pieces.splice(0)).toString("utf8")
    while (position < size) {
      const chunk = Buffer.alloc(Math.min(CHUNK, size - position))
      const read = readSync(fd, chunk, 0, chunk.length, position)
      if (read === 0) break
      let start = 0
      for (;;) {
        const at = chunk.subarray(0, read).indexOf(NEWLINE, start)
        if (at < 0) break
        pieces.push(chunk.subarray(start, at))
        number += 1
        start = at + 1
        yield { number, text: take(), end: position + start, terminated: true }
      }
      if (start < read) pieces.push(chunk.subarray(start, read))
      position += read
    }
    if (pieces.length > 0) yield { number: number + 1, text: take(), end: position, terminated: false }
  } finally {
    closeSync(fd)
  }
}

/** What lies between two bytes of the file; undefined where it is shorter. */
export const pieceOf = (file: string, start: number, length: number): string | undefined => {
  const fd = openSync(file, "r")
  try {
    if (start + length > fstatSync(fd).size) return undefined
    const piece = Buffer.alloc(length)
    let read = 0
    while (read < length) {
      const more = readSync(fd, piece, read, length - read, start + read)
      if (more === 0) return undefined
      read += more
    }
    return piece.toString("utf8")
  } finally {
    closeSync(fd)
  }
}

/** The last ended line, and the bytes after it that no newline ends. Reads from the back. */
export const tailOf = (fd: number, size: number): { readonly line: string | undefined; readonly torn: Buffer } => {
  let tail = Buffer.alloc(0)
  let position = size
  while (position > 0) {
    const length = Math.min(CHUNK, position)
    const chunk = Buffer.alloc(length)
    readSync(fd, chunk, 0, length, position - length)
    position -= length
    tail = Buffer.concat([chunk, tail])
    const last = tail.lastIndexOf(NEWLINE)
    if (last < 0) continue
    const previous = last === 0 ? -1 : tail.lastIndexOf(NEWLINE, last - 1)
    if (previous >= 0 || position === 0)
      return { line: tail.subarray(previous + 1, last).toString("utf8"), torn: tail.subarray(last + 1) }
  }
  return { line: undefined, torn: tail }
}
