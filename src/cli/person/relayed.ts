/**
 * A person behind a platform (`--headless`): each step is a line of JSON on stdout, each answer one on stdin.
 *
 * Out: `{"step":"open_url",…}`, `{"step":"prompt",…}`, `{"step":"terminal","text":…}`, and the report at the end.
 * What a program prints on a terminal passes `screen.ts`: whoever relays it shows it to a person.
 * In: `{"id":"…","answer":"…"}` for a prompt, also before it was asked, and `{"terminal":"…"}` for what is typed.
 * Guarantees: a line is one JSON document; a line that is none, or is too long, is passed over and said so on stderr. Where
 * stdin ends, what is not answered is given up.
 */
import { PassThrough } from "node:stream"
import type { Person, Question } from "../../host/index.ts"
import type { Terminal } from "../terminal.ts"
import { safeJson } from "../visible.ts"
import { createScreen } from "./screen.ts"

const LONGEST = 128 * 1024

interface Relay extends Disposable {
  readonly person: Person
}

const put = (value: object): void => void process.stdout.write(`${safeJson(value, 0, true)}\n`)

type Given = { readonly id: string; readonly answer: string } | { readonly terminal: string }

const givenIn = (line: string): Given | undefined => {
  try {
    const value = JSON.parse(line) as Record<string, unknown> | null
    if (typeof value?.["terminal"] === "string") return { terminal: value["terminal"] }
    const { id, answer } = value ?? {}
    return typeof id === "string" && typeof answer === "string" ? { id, answer } : undefined
  } catch {
    return undefined
  }
}

export const relayedPerson = (terminal: Terminal): Relay => {
  const typed = new PassThrough()
  const answers = new Map<string, string>()
  const waiting = new Map<string, (answer: string | undefined) => void>()
  let rest = ""
  let over = false
  const hear = (line: string): void => {
    if (line.trim() === "") return
    const given = line.length > LONGEST ? undefined : givenIn(line)
    if (given === undefined) terminal.say('caisson: a line of stdin is no answer; write {"id": "…", "answer": "…"}')
    else if ("terminal" in given) typed.write(given.terminal)
    else if (waiting.has(given.id)) waiting.get(given.id)?.(given.answer)
    else if (answers.size < 100) answers.set(given.id, given.answer)
  }
  const data = (chunk: string): void => {
    const lines = (rest + chunk).split("\n")
    rest = (lines.pop() ?? "").slice(0, LONGEST + 1)
    for (const line of lines) hear(line)
  }
  const end = (): void => {
    hear(rest)
    rest = ""
    over = true
    for (const give of waiting.values()) give(undefined)
  }
  process.stdin.setEncoding("utf8")
  process.stdin.on("data", data)
  process.stdin.once("end", end)
  const answer = (question: Question, signal: AbortSignal): Promise<string | undefined> => {
    const { id, text, type, options, default: fallback } = question
    put({
      step: "prompt",
      id,
      text,
      type,
      ...(options === undefined ? {} : { options }),
      ...(fallback === undefined ? {} : { default: fallback }),
    })
    const known = answers.get(id)
    answers.delete(id)
    if (known !== undefined || over || signal.aborted) return Promise.resolve(known)
    return new Promise((resolve) => {
      const give = (given: string | undefined): void => {
        waiting.delete(id)
        resolve(given)
      }
      waiting.set(id, give)
      signal.addEventListener("abort", () => give(undefined), { once: true })
    })
  }
  const screen = createScreen((text) => put({ step: "terminal", text }), true)
  return {
    person: {
      open: (page) => put({ step: "open_url", ...page }),
      answer,
      answersBeside: true,
      terminal: {
        columns: 80,
        rows: 24,
        input: typed,
        show: (bytes) => screen.show(bytes),
        onResize: () => ({ [Symbol.dispose]: () => undefined }),
      },
    },
    [Symbol.dispose]: () => {
      process.stdin.off("data", data)
      process.stdin.off("end", end)
      process.stdin.destroy()
    },
  }
}
