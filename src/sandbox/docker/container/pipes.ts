/**
 * The pipes between the host and one container's bridge: job and status, which have names until the bridge is ready,
 * and the program's streams, which the bridge makes and which never have one.
 *
 * Guarantees: until the bridge says it is ready the host holds both ends of the named ones, so neither side can block
 * on opening or mistake "not yet" for the end; from then on it holds its own end alone, so the end of a stream is the
 * end of the container's. Output is read with the pipe's own backpressure; the engine is not in the way of a byte.
 * Assumes: the bridge is the process with the given pid, alive and the first of its container; this process is root.
 */
import { closeSync, constants, openSync, readSync } from "node:fs"
import { chownSync } from "node:fs"
import type { Socket } from "node:net"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import koffi from "koffi"
import { openPipeStreams, streamOf } from "../../process/pipe-streams.ts"
import { parseStatus, type Status, type Streams } from "./bridge-words.ts"

const NAMES = ["job", "status"] as const
type Name = (typeof NAMES)[number]
const hostWrites = (name: Name): boolean => name === "job"

let native: ((path: string, mode: number) => number) | undefined
const mkfifo = (path: string): void => {
  native ??= koffi.load(null).func("int mkfifo(const char *path, uint mode)") as unknown as (
    path: string,
    mode: number,
  ) => number
  if (native(path, 0o600) !== 0) throw new Error(`cannot make the pipe ${path} (errno ${koffi.errno()})`)
}

export interface ReadyPipes extends Streams<Socket> {
  readonly job: Socket
  /** status lines in order; undefined when the bridge is gone */
  readonly nextStatus: () => Promise<Status | undefined>
  /** The program's streams belong to whoever runs it from now on; `close` leaves them alone. */
  readonly give: () => void
  readonly close: () => void
}
interface OpenPipes {
  /** Wait for the first word of the bridge, process `pid`; `gone` tells whether the container died meanwhile. */
  ready(pid: number, withinMs: number, gone: () => boolean): Promise<ReadyPipes | { readonly failed: string }>
  close(): void
}

const statusLines = (status: Socket): (() => Promise<Status | undefined>) => {
  const lines: Status[] = []
  const waiting: ((status: Status | undefined) => void)[] = []
  let rest = ""
  let ended = false
  status.setEncoding("latin1")
  status.on("data", (chunk: string) => {
    const parts = (rest + chunk).split("\n")
    rest = (parts.pop() ?? "").slice(0, 4096)
    for (const line of parts) {
      const next = parseStatus(line)
      const taker = waiting.shift()
      if (taker === undefined) lines.push(next)
      else taker(next)
    }
  })
  status.on("close", () => {
    ended = true
    for (const taker of waiting.splice(0)) taker(undefined)
  })
  return () => {
    const line = lines.shift()
    if (line !== undefined || ended) return Promise.resolve(line)
    return new Promise((resolve) => waiting.push(resolve))
  }
}

/** The host's ends of pipes that the bridge made. */
const openStreams = (pid: number, { input, toTool, out, err, fromTool }: Streams<number>): Streams<Socket> =>
  openPipeStreams(pid, {
    input: { fd: input, writable: true },
    toTool: { fd: toTool, writable: true },
    out: { fd: out, writable: false },
    err: { fd: err, writable: false },
    fromTool: { fd: fromTool, writable: false },
  })

/** Make the pipes in `dir` for the container's user and open them. */
export const openPipes = (dir: string, owner: number): OpenPipes => {
  const ends = new Map<Name, { reader: number; writer: number }>()
  const closeAll = (): void => {
    for (const { reader, writer } of ends.values()) for (const fd of [reader, writer]) if (fd >= 0) closeSync(fd)
    ends.clear()
  }
  try {
    for (const name of NAMES) {
      const path = join(dir, name)
      mkfifo(path)
      chownSync(path, owner, owner)
      const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
      const end = { reader, writer: -1 }
      ends.set(name, end)
      end.writer = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
    }
  } catch (error) {
    closeAll()
    throw error
  }
  const firstWord = async (withinMs: number, gone: () => boolean): Promise<string | undefined> => {
    const status = ends.get("status")
    const buffer = Buffer.alloc(256)
    let said = ""
    const until = Date.now() + withinMs
    while (status !== undefined && Date.now() < until) {
      try {
        const length = readSync(status.reader, buffer, 0, buffer.length, null)
        said += buffer.toString("latin1", 0, length)
        if (said.includes("\n")) return said.split("\n")[0]
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error
      }
      if (gone()) return undefined
      await pause(2)
    }
    return undefined
  }
  const settle = (streams: Streams<Socket>): ReadyPipes => {
    const own = new Map<Name, Socket>()
    for (const [name, { reader, writer }] of ends) {
      const writes = hostWrites(name)
      closeSync(writes ? reader : writer)
      own.set(name, streamOf(writes ? writer : reader, writes))
    }
    ends.clear()
    const stream = (name: Name): Socket => own.get(name) as Socket
    let given = false
    const close = (): void => {
      for (const each of [...own.values(), ...(given ? [] : Object.values(streams))]) each.destroy()
    }
    return {
      job: stream("job"),
      ...streams,
      nextStatus: statusLines(stream("status")),
      give() {
        given = true
      },
      close,
    }
  }
  return {
    async ready(pid, withinMs, gone) {
      const word = await firstWord(withinMs, gone)
      const status = word === undefined ? undefined : parseStatus(word)
      if (status?.word === "ready") {
        try {
          return settle(openStreams(pid, status.streams))
        } catch (error) {
          closeAll()
          return { failed: `the bridge's pipes cannot be opened: ${(error as Error).message}` }
        }
      }
      closeAll()
      if (status === undefined) return { failed: "the bridge did not report; the container ended or never began" }
      return { failed: status.word === "failed" ? `the bridge failed at ${status.message}` : `the bridge said ${word}` }
    },
    close: closeAll,
  }
}
