/**
 * The two streams, their colours, and the spinner.
 *
 * Guarantees: stdout carries results only, everything else goes to stderr; colours only on a terminal and never with
 * `NO_COLOR`; a spinner only on a terminal and only for work that takes over a second; ASCII where the locale is not
 * UTF-8. What comes from tools or manifests passes through `visible.ts`, so that it cannot steer the terminal.
 */
import pc from "picocolors"
import { inline, isUnicodeLocale, ownLine, safeJson } from "./visible.ts"
import { says } from "./words.ts"

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
}

const frames = isUnicodeLocale(process.env) ? ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"] : ["-", "\\", "|", "/"]
const quietMs = 1000
const frameMs = 120

const spin = (label: string): (() => void) => {
  const startedAt = Date.now()
  let frame = 0
  let timer: NodeJS.Timeout | undefined
  const delay = setTimeout(() => {
    timer = setInterval(() => {
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

export const createTerminal = (): Terminal => {
  const mayColor = (process.env["NO_COLOR"] ?? "") === "" && process.env["TERM"] !== "dumb"
  return {
    isInteractive: process.stdout.isTTY === true,
    paint: pc.createColors(mayColor && process.stderr.isTTY === true),
    paintResult: pc.createColors(mayColor && process.stdout.isTTY === true),
    width: process.stdout.columns || process.stderr.columns || 100,
    result: (text) => void process.stdout.write(`${ownLine(text)}\n`),
    say: (line) => void process.stderr.write(`${ownLine(line)}\n`),
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
