/**
 * The person at this terminal, for a login: pages to open, questions, and the terminal itself lent to a program.
 *
 * Guarantees: what is typed for a secret is not shown; the terminal is as before once it is given back. What a program
 * prints passes `screen.ts`, and what it is called passes `visible.ts`. Nothing of it goes to stdout.
 */
import { createInterface } from "node:readline/promises"
import type { LentTerminal, PageToOpen, Person, Question } from "../../host/index.ts"
import { dropTypedAhead } from "../../linux/processes.ts"
import { givenSecret } from "../secret-input.ts"
import type { Terminal } from "../terminal.ts"
import { inline, isUnicodeLocale } from "../visible.ts"
import { qrLines } from "./qr.ts"
import { createScreen } from "./screen.ts"

const tellPage = ({ url, code, direct, through, from }: PageToOpen, terminal: Terminal): void => {
  terminal.say(`${from === "program" ? "the program names this page" : "open this page"}: ${inline(url)}`)
  if (through !== undefined) {
    const { port } = new URL(through)
    terminal.say(`  open it by this address, once, in a browser of this machine: ${inline(through)}`)
    terminal.say(`  from another machine: ssh -L ${port}:127.0.0.1:${port} here first, or log in with --headless`)
  }
  if (direct !== undefined) terminal.say(`  with the code in it: ${inline(direct)}`)
  if (code === undefined) return
  // A code is made to be entered on another device: its page is a telephone's as well.
  const { columns } = process.stderr
  for (const line of qrLines(direct ?? url, { paint: terminal.paint, columns, wide: isUnicodeLocale(process.env) }) ??
    [])
    terminal.say(line)
  terminal.say(`  code: ${terminal.paint.bold(inline(code))}`)
}

const lineFrom = async (question: string, signal: AbortSignal): Promise<string | undefined> => {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return await lines.question(question, { signal })
  } catch {
    return undefined
  } finally {
    lines.close()
  }
}

const textOf = ({ text, type, default: fallback }: Question): string => {
  const offered = type === "boolean" ? " [y/n]" : ""
  return `${inline(text)}${offered}${fallback === undefined ? "" : ` (${inline(fallback)})`}: `
}

const answer = async (question: Question, terminal: Terminal, signal: AbortSignal): Promise<string | undefined> => {
  if (question.type === "secret") {
    const given = await givenSecret(inline(question.text), signal)
    return given.ok ? given.value : undefined
  }
  const { options = [] } = question
  options.forEach(({ label }, at) => terminal.say(`  ${at + 1}  ${inline(label)}`))
  const line = await lineFrom(textOf(question), signal)
  const chosen = question.type === "select" && /^\d{1,4}$/.test(line ?? "") ? options[Number(line) - 1] : undefined
  return chosen?.value ?? line?.trim()
}

const lent = (): LentTerminal => {
  const { stdin, stderr } = process
  const screen = createScreen((text) => void stderr.write(text))
  return {
    columns: stderr.columns || 80,
    rows: stderr.rows || 24,
    input: stdin,
    show: (bytes) => screen.show(bytes),
    take: () => {
      stdin.setRawMode(true)
      stdin.resume()
      stdin.ref()
      return {
        [Symbol.dispose]: () => {
          // Answers of the terminal that the program asked for and did not wait for would be typed to whoever is next.
          dropTypedAhead(0)
          stdin.setRawMode(false)
          stdin.pause()
          stdin.unref()
          stderr.write("\u001b[0m\u001b[?25h\u001b[?2004l")
        },
      }
    },
    onResize: (listener) => {
      const hear = (): void => listener(stderr.columns, stderr.rows)
      stderr.on("resize", hear)
      return { [Symbol.dispose]: () => void stderr.off("resize", hear) }
    },
  }
}

export const personAtTerminal = (terminal: Terminal): Person => ({
  open: (page) => tellPage(page, terminal),
  answer: (question, signal) => answer(question, terminal, signal),
  terminal: lent(),
})
