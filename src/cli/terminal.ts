/**
 * The two streams, their colours, and the spinner.
 *
 * Guarantees: stdout carries results only, everything else goes to stderr; colours only on a terminal and never with
 * `NO_COLOR`; a spinner only on a terminal and only for work that takes over a second; ASCII where the locale is not
 * UTF-8; lines for people no wider than their terminal. What comes from tools or manifests passes through `visible.ts`, so that it cannot steer the terminal.
 */
import { constants, openSync } from "node:fs"
import { createInterface } from "node:readline"
import { ReadStream } from "node:tty"
import pc from "picocolors"
import { dropTypedAhead } from "../linux/processes.ts"
import { inline, isUnicodeLocale, ownLine, safeJson } from "./visible.ts"
import { says } from "./texts.ts"
import { wrapLine } from "./wrap.ts"

export type Colors = ReturnType<typeof pc.createColors>

export interface Terminal {
  /** whether stdout is a terminal; where not, results are JSON */
  readonly isInteractive: boolean
  /** colours for stderr */
  readonly paint: Colors
  /** colours for stdout */
  readonly paintResult: Colors
  readonly width: number
  /** a result, to stdout */
  result(text: string): void
  /** a line for people, to stderr */
  say(line: string): void
  /** Show progress while `work` is under way. */
  during<T>(work: Promise<T>, label?: string): Promise<T>
  /** whether a person can be asked: both ends of the conversation are a terminal */
  readonly canAsk: boolean
  /** A question on stderr, answered by a line typed after it; yes only for a `y` or `yes`. Progress pauses meanwhile. */
  confirm(question: string, signal: AbortSignal): Promise<boolean>
}

const frames = isUnicodeLocale(process.env) ? ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"] : ["-", "\\", "|", "/"]
const quietMs = 1000
const frameMs = 120

/** Questions under way: while there is one, nothing else is drawn. */
let asking = 0

/** Where a person types: stdin, or, once `-i -` has read that to its end, the terminal itself. */
const personsInput = (): { readonly input: NodeJS.ReadStream; readonly fd: number } => {
  if (!process.stdin.destroyed) return { input: process.stdin, fd: 0 }
  const fd = openSync("/dev/tty", constants.O_RDWR | constants.O_NOCTTY)
  return { input: new ReadStream(fd), fd }
}

const askPerson = async (question: string, signal: AbortSignal): Promise<boolean> => {
  asking += 1
  // Not `terminal: true`: the terminal's own line editing stays, and so does what Ctrl-C means.
  const { input, fd } = personsInput()
  const lines = createInterface({ input, output: process.stderr, terminal: false })
  const { promise, resolve } = Promise.withResolvers<string>()
  const stop = (): void => resolve("")
  signal.addEventListener("abort", stop, { once: true })
  try {
    // What was typed before the question was there answers something else.
    dropTypedAhead(fd)
    // A command that had it let go of it, and this process waits for the answer.
    input.ref?.()
    process.stderr.write(`\r\u001b[2K${question} [y/N] `)
    lines.once("line", resolve)
    lines.once("close", stop)
    if (signal.aborted) stop()
    return /^\s*y(es)?\s*$/i.test(await promise)
  } finally {
    signal.removeEventListener("abort", stop)
    lines.close()
    if (input === process.stdin) process.stdin.unref?.()
    else input.destroy()
    asking -= 1
  }
}

const spin = (label: string): (() => void) => {
  const startedAt = Date.now()
  let frame = 0
  let timer: NodeJS.Timeout | undefined
  const delay = setTimeout(() => {
    timer = setInterval(() => {
      if (asking > 0) return
      const seconds = Math.round((Date.now() - startedAt) / 1000)
      process.stderr.write(`\r\u001b[2K${frames[frame++ % frames.length]} ${inline(label)} ${seconds} s`)
    }, frameMs)
  }, quietMs)
  return () => {
    clearTimeout(delay)
    if (timer === undefined) return
    clearInterval(timer)
    process.stderr.write("\r\u001b[2K")
  }
}

/** At a terminal no line is longer than that is wide; elsewhere nobody knows how wide it is. */
const fitted = (text: string): string => {
  const { columns } = process.stderr
  if (process.stderr.isTTY !== true || !(columns > 0)) return text
  return text
    .split("\n")
    .map((line) => wrapLine(line, columns))
    .join("\n")
}

export const createTerminal = (): Terminal => {
  const mayColor = (process.env["NO_COLOR"] ?? "") === "" && process.env["TERM"] !== "dumb"
  return {
    isInteractive: process.stdout.isTTY === true,
    paint: pc.createColors(mayColor && process.stderr.isTTY === true),
    paintResult: pc.createColors(mayColor && process.stdout.isTTY === true),
    width: process.stdout.columns || process.stderr.columns || 100,
    result: (text) => void process.stdout.write(`${ownLine(text)}\n`),
    say: (line) => void process.stderr.write(`${fitted(ownLine(line))}\n`),
    canAsk: process.stdin.isTTY === true && process.stderr.isTTY === true,
    confirm: askPerson,
    during: async (work, label = says.working) => {
      const stop = process.stderr.isTTY === true ? spin(label) : undefined
      try {
        return await work
      } finally {
        stop?.()
      }
    },
  }
}

/** One JSON document, nothing else, on stdout: UTF-8 where a program reads it, fit for the terminal where a person does. */
export const resultJson = (terminal: Terminal, value: unknown): void => {
  if (terminal.isInteractive) terminal.result(safeJson(value, 2))
  else process.stdout.write(`${safeJson(value, 0, true)}\n`)
}
