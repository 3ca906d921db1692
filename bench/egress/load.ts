/**
 * The load generator, a process of its own, the same for every way: takes one job after the other over IPC.
 *
 * Reads go into one buffer that is used again and again, so that it spends its time in the kernel like a client in C.
 */
import { connect, type Socket } from "node:net"

export type Job =
  | { readonly kind: "pull"; readonly streams: number; readonly bytes: number }
  | { readonly kind: "connections"; readonly workers: number; readonly ms: number }
  | { readonly kind: "round"; readonly times: number }
  | { readonly kind: "fresh"; readonly times: number }
/** Where to connect, and what to say first to get a connection to the origin. */
export interface Way {
  readonly name: string
  readonly port: number
  readonly target?: string
}
export interface Done {
  readonly ms: number
  readonly count: number
  readonly micros: readonly number[]
}

interface Line {
  readonly socket: Socket
  /** Resolves with the first bytes that come after the call. */
  next(): Promise<string>
  closed: Promise<void>
  got: number
}

function open(way: Way, bufferBytes: number): Promise<Line> {
  return new Promise((resolve, reject) => {
    const buffer = Buffer.allocUnsafe(bufferBytes)
    let heard: ((text: string) => void) | undefined
    const socket = connect({
      port: way.port,
      host: "127.0.0.1",
      noDelay: true,
      onread: {
        buffer,
        callback(length) {
          line.got += length
          const tell = heard
          heard = undefined
          tell?.(buffer.toString("latin1", 0, Math.min(length, 64)))
          return true
        },
      },
    })
    const line: Line = {
      socket,
      got: 0,
      next: () => new Promise((told) => (heard = told)),
      closed: new Promise((over) => socket.once("close", () => over())),
    }
    socket.once("error", reject)
    const onHead = (head: string): void => {
      if (head.includes(" 200 ")) resolve(line)
      else reject(new Error(`${way.name}: ${head.split("\r\n")[0]}`))
    }
    socket.once("connect", () => {
      if (way.target === undefined) return resolve(line)
      socket.write(`CONNECT ${way.target} HTTP/1.1\r\nHost: ${way.target}\r\n\r\n`)
      void line.next().then(onHead)
    })
  })
}

async function pull(way: Way, bytes: number): Promise<void> {
  const line = await open(way, 256 * 1024)
  line.got = 0
  line.socket.write(`${bytes}\n`)
  await line.closed
  if (line.got !== bytes) throw new Error(`${way.name}: ${line.got} of ${bytes} bytes`)
}

async function exchange(way: Way): Promise<void> {
  const line = await open(way, 4096)
  line.socket.write("x\n")
  await line.next()
  line.socket.end()
  await line.closed
}

async function perform(way: Way, job: Job): Promise<Done> {
  const micros: number[] = []
  let count = 0
  const start = performance.now()
  if (job.kind === "pull") {
    await Promise.all(Array.from({ length: job.streams }, () => pull(way, Math.floor(job.bytes / job.streams))))
    count = job.bytes
  } else if (job.kind === "connections") {
    const worker = async (): Promise<void> => {
      for (; performance.now() - start < job.ms; count += 1) await exchange(way)
    }
    await Promise.all(Array.from({ length: job.workers }, worker))
  } else if (job.kind === "round") {
    const line = await open(way, 4096)
    line.socket.write("x\n")
    await line.next()
    for (; count < job.times; count += 1) {
      const begun = performance.now()
      line.socket.write("y")
      await line.next()
      micros.push((performance.now() - begun) * 1e3)
    }
    line.socket.destroy()
  } else {
    for (; count < job.times; count += 1) {
      const begun = performance.now()
      await exchange(way)
      micros.push((performance.now() - begun) * 1e3)
    }
  }
  return { ms: performance.now() - start, count, micros }
}

process.on("message", ({ way, job }: { way: Way; job: Job }) => {
  perform(way, job).then(
    (done) => process.send?.({ done }),
    (error: Error) => process.send?.({ error: error.message }),
  )
})
process.once("disconnect", () => process.exit())
process.send?.("ready")
