/**
 * This process's end of a pipe that a process of ours made and still holds open.
 *
 * Guarantees: no byte of the stream passes through that process, and the end of the stream is the end of all who hold
 * the other side. Nothing is read before somebody wants it: a stream that nobody listens to yet must not end unheard.
 * Assumes: the process is alive, ours, and holds that end under that number until this has returned.
 */
import { closeSync, constants, openSync } from "node:fs"
import { Socket } from "node:net"

interface PipeEnd {
  /** the number that the other process has the end under */
  readonly fd: number
  readonly writable: boolean
}

export const streamOf = (fd: number, writable: boolean): Socket => {
  const stream = new Socket({ fd, readable: !writable, writable, manualStart: true } as ConstructorParameters<
    typeof Socket
  >[0])
  // A program that closed its end, or is gone, is no error of ours.
  stream.on("error", () => stream.destroy())
  return stream
}

/** All of them or none. */
export const openPipeStreams = <Name extends string>(
  pid: number,
  ends: Readonly<Record<Name, PipeEnd>>,
): Record<Name, Socket> => {
  const opened: { readonly name: Name; readonly fd: number; readonly writable: boolean }[] = []
  try {
    for (const [name, { fd, writable }] of Object.entries<PipeEnd>(ends)) {
      const mode = writable ? constants.O_WRONLY : constants.O_RDONLY
      opened.push({ name: name as Name, fd: openSync(`/proc/${pid}/fd/${fd}`, mode | constants.O_NONBLOCK), writable })
    }
  } catch (error) {
    for (const { fd } of opened) closeSync(fd)
    throw error
  }
  return Object.fromEntries(opened.map(({ name, fd, writable }) => [name, streamOf(fd, writable)])) as Record<
    Name,
    Socket
  >
}
