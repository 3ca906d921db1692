/**
 * This process's own streams, lent to a command for as long as it runs.
 *
 * Guarantees: with a terminal at both ends the command has one of its own, of the same size, and keys reach it as they are
 * typed; else its streams are ours, with their back-pressure, byte for byte where they are pipes. What goes to a terminal
 * passes `screen.ts`. A reader of ours that goes away closes the command's output, so that it hears of it. The terminal is
 * as before when the run is over.
 */
import type { Readable, Writable } from "node:stream"
import { finished } from "node:stream/promises"
import type { AttachedEnd, AttachedStreams, Attachment } from "../../host/index.ts"
import { dropTypedAhead } from "../../linux/processes.ts"
import { createScreen, type Screen } from "./screen.ts"

interface Here {
  readonly attachment: Attachment
  /** The terminal is ours again; what was typed for the command is nobody's. */
  settle(): void
}

const { stdin, stdout, stderr } = process

const ended = (stream: Readable): Promise<unknown> => finished(stream, { writable: false }).catch(() => undefined)

/** Written as it comes, and no faster than it is taken. */
const pass = (from: Readable, to: Writable, screen?: Screen): Promise<unknown> => {
  const gone = (): void => void from.destroy()
  to.once("error", gone)
  to.once("close", gone)
  from.on("data", (bytes: Uint8Array) => {
    const text = screen === undefined ? bytes : screen.pass(bytes)
    if (text.length > 0 && !to.write(text)) {
      from.pause()
      to.once("drain", () => from.resume())
    }
  })
  return ended(from).finally(() => {
    to.off("error", gone)
    to.off("close", gone)
  })
}

/** Ours to theirs, to its end; nothing is left waiting for a key once they are gone. */
const feed = (to: Writable): Disposable => {
  stdin.pipe(to)
  to.on("error", () => undefined)
  return {
    [Symbol.dispose]: () => {
      stdin.unpipe(to)
      stdin.pause()
      stdin.unref?.()
    },
  }
}

/** One program's terminal shown in another. */
const atTerminal = ({ stdin: keys, stdout: output, terminal }: AttachedStreams): AttachedEnd => {
  const screen = createScreen((text) => void stdout.write(text), undefined, "program")
  const type = (bytes: Uint8Array): void => void keys.write(bytes)
  const resize = (): void => terminal?.resize(stdout.columns, stdout.rows)
  stdin.setRawMode(true)
  stdin.on("data", type)
  stdin.resume()
  stdin.ref()
  stdout.on("resize", resize)
  return {
    drained: pass(output, stdout, screen),
    [Symbol.dispose]: () => {
      stdin.off("data", type)
      stdout.off("resize", resize)
      stdout.write(screen.reset())
      dropTypedAhead(0)
      stdin.setRawMode(false)
      stdin.pause()
      stdin.unref()
    },
  }
}

const screenFor = (to: NodeJS.WriteStream): Screen | undefined =>
  to.isTTY === true ? createScreen(() => undefined, undefined, "program") : undefined

const inPipes = (streams: AttachedStreams): AttachedEnd => {
  const fed = feed(streams.stdin)
  const screens = [screenFor(stdout), screenFor(stderr)] as const
  const drained = Promise.all([pass(streams.stdout, stdout, screens[0]), pass(streams.stderr, stderr, screens[1])])
  return {
    drained,
    [Symbol.dispose]: () => {
      fed[Symbol.dispose]()
      for (const [at, to] of [stdout, stderr].entries()) {
        const screen = screens[at]
        if (screen !== undefined) to.write(screen.reset())
      }
    },
  }
}

/** `collects`: the output is the envelope's. */
export const attachmentHere = (collects: boolean): Here => {
  const isTerminal = !collects && stdin.isTTY === true && stdout.isTTY === true
  const attachment: Attachment = {
    stdio: isTerminal
      ? { kind: "terminal", columns: stdout.columns || 80, rows: stdout.rows || 24, echo: true }
      : { kind: "pipes" },
    ...(collects ? { collects: true } : {}),
    attach: (streams) => {
      if (isTerminal) return atTerminal(streams)
      if (!collects) return inPipes(streams)
      return Object.assign(feed(streams.stdin), { drained: Promise.resolve() })
    },
  }
  return { attachment, settle: () => (stdin.isTTY === true ? dropTypedAhead(0) : undefined) }
}
