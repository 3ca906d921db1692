/**
 * A pseudo terminal of a run's own, its master held by the host.
 *
 * Guarantees: neither side costs more than a buffer when the other stops: input waits in a bounded queue and never
 * blocks this process, output is read as it is taken. Its end, which the kernel reports as an error, is an end.
 * Does not: give it to anybody; the slave is the caller's to hand on.
 */
import { closeSync, constants, openSync, writeSync } from "node:fs"
import { PassThrough, type Readable, Writable } from "node:stream"
import { ReadStream } from "node:tty"
import { ioctl, openPseudoTerminal } from "../../linux/processes.ts"
import type { Stdio } from "../backend.ts"
import { TERMINAL } from "./limits.ts"

const TCGETS = 0x5401
const TCSETS = 0x5402
const TIOCSWINSZ = 0x5414
const ECHO_FLAGS = 0o10 | 0o20 | 0o40 | 0o100
const OPOST = 1
const LINE_FEED = 10
/** What ends the input, at the start of a line. */
const END_OF_INPUT = "\x04"

export interface Terminal {
  /** path of the end that programs open */
  readonly slave: string
  /** What is typed. Ended, a program that reads lines reads to its end. */
  readonly input: Writable
  readonly output: Readable
  resize(columns: number, rows: number): void
  /** No program has it open any more: the output ends once it is read. */
  hangUp(): void
  close(): void
}

const silence = (master: number): void => {
  const settings = Buffer.alloc(64)
  ioctl(master, TCGETS, settings)
  settings.writeUInt32LE((settings.readUInt32LE(4) & ~OPOST) >>> 0, 4)
  settings.writeUInt32LE((settings.readUInt32LE(12) & ~ECHO_FLAGS) >>> 0, 12)
  ioctl(master, TCSETS, settings)
}

const setSize = (master: number, columns: number, rows: number): void => {
  const size = Buffer.alloc(8)
  size.writeUInt16LE(rows, 0)
  size.writeUInt16LE(columns, 2)
  ioctl(master, TIOCSWINSZ, size)
}

/** What is typed, as fast as the terminal takes it; once it is gone, to nobody. */
const keyboard = (master: number, gone: () => boolean): Writable => {
  let last: number | undefined
  const type = (bytes: Buffer, done: () => void): void => {
    let rest = bytes
    try {
      while (rest.length > 0 && !gone()) rest = rest.subarray(writeSync(master, rest))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EAGAIN") {
        setTimeout(() => type(rest, done), TERMINAL.retryMs)
        return
      }
    }
    done()
  }
  return new Writable({
    highWaterMark: TERMINAL.inputBytes,
    write(chunk: Buffer, _encoding, done) {
      last = chunk.at(-1) ?? last
      type(chunk, done)
    },
    final(done) {
      const open = last !== undefined && last !== LINE_FEED
      type(Buffer.from(open ? END_OF_INPUT + END_OF_INPUT : END_OF_INPUT), done)
    },
  })
}

export const openTerminal = ({ columns, rows, echo }: Extract<Stdio, { kind: "terminal" }>): Terminal => {
  const { master, slave } = openPseudoTerminal()
  if (!echo) silence(master)
  setSize(master, columns, rows)
  const screen = new ReadStream(master)
  const output = new PassThrough()
  // The last program that had it open is gone: the kernel calls that an I/O error.
  screen.once("error", () => output.end())
  screen.once("close", () => output.end())
  screen.pipe(output)
  output.once("close", () => screen.destroy())
  const gone = (): boolean => screen.destroyed
  return {
    slave,
    input: keyboard(master, gone),
    output,
    resize(newColumns, newRows) {
      if (!gone()) setSize(master, newColumns, newRows)
    },
    hangUp() {
      // It ends when its last user closes it; where no program ever opened it, this is the last user.
      try {
        if (!gone()) closeSync(openSync(slave, constants.O_RDWR | constants.O_NOCTTY))
      } catch {
        // It ended already.
      }
    },
    close() {
      screen.destroy()
      output.destroy()
    },
  }
}
