/** A pseudo terminal for programs that insist on one: no echo, no output translation, output read from the master. */
import { chownSync } from "node:fs"
import { ReadStream } from "node:tty"
import type { Identity } from "../layers/overlay.ts"
import { ioctl, openPseudoTerminal } from "../../linux/syscalls.ts"

const TCGETS = 0x5401
const TCSETS = 0x5402
const TIOCSWINSZ = 0x5414
const ECHO_FLAGS = 0o10 | 0o20 | 0o40 | 0o100
const OPOST = 1

export interface Terminal {
  readonly slave: string
  readonly output: ReadStream
}

export const openTerminal = (identity: Identity | undefined): Terminal => {
  const { master, slave } = openPseudoTerminal()
  if (identity !== undefined) chownSync(slave, identity.uid, identity.gid)
  const settings = Buffer.alloc(64)
  ioctl(master, TCGETS, settings)
  settings.writeUInt32LE((settings.readUInt32LE(4) & ~OPOST) >>> 0, 4)
  settings.writeUInt32LE((settings.readUInt32LE(12) & ~ECHO_FLAGS) >>> 0, 12)
  ioctl(master, TCSETS, settings)
  const size = Buffer.alloc(8)
  size.writeUInt16LE(24, 0)
  size.writeUInt16LE(80, 2)
  ioctl(master, TIOCSWINSZ, size)
  return { slave, output: new ReadStream(master) }
}
