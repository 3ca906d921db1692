/**
 * Which words of a command line are program text: read as code by the program that gets them, not as data.
 *
 * Guarantees: looks through programs that start other programs (`env`, `timeout`, `xargs sh -c`, `find -exec`, …), at
 * any depth up to a limit; where a word can be an option, it counts as one. Total and linear in the words.
 * Does not: know programs that are not in the table of interpreters.
 */
import { type Interpreter, interpreterOf } from "./interpreters.ts"
import { limits } from "./limits.ts"

export interface Word {
  /** what it can be, where that is known; undefined: a caller decides */
  readonly texts?: readonly string[]
  /** its literal beginning */
  readonly prefix: string
}
export interface ProgramText<W extends Word> {
  readonly word: W
  /** `code` and `query`: program text; `command`: the name of the program to be started */
  readonly what: "code" | "query" | "command"
  readonly program: string
}
export interface Reading<W extends Word> {
  readonly texts: readonly ProgramText<W>[]
  /** the program that reads its text from stdin, where one does */
  readonly stdin?: string
}

interface Scan<W extends Word> {
  readonly found: ProgramText<W>[]
  stdin: string | undefined
}

/** The option and the beginning of its value in one word: `--eval=x`, `-cx`. */
type Opened = "no" | "here" | "next" | "switch" | "skip" | "file"

const readOption = (text: string, rule: Interpreter): Opened => {
  const equals = text.indexOf("=")
  const name = equals === -1 ? text : text.slice(0, equals)
  const whole = (names: readonly string[] | undefined, then: Opened): Opened =>
    names?.includes(name) === true ? (equals === -1 ? then : then === "next" ? "here" : "no") : "no"
  const named =
    rule.files?.includes(name) === true
      ? "file"
      : whole(rule.codeOptions, "next") === "no"
        ? whole(rule.takesOptions, "skip")
        : whole(rule.codeOptions, "next")
  if (named !== "no" || text.startsWith("--")) return named
  for (let at = 1; at < text.length; at++) {
    const letter = text.charAt(at)
    const last = at === text.length - 1
    if (rule.code?.includes(letter) === true) return last ? "next" : "here"
    if (rule.switch?.includes(letter) === true) return "switch"
    if (rule.files?.includes(`-${letter}`) === true) return "file"
    if (rule.takes?.includes(letter) === true) return last ? "skip" : "no"
  }
  return "no"
}

const order: readonly Opened[] = ["no", "skip", "file", "switch", "here", "next"]

/** The gravest of what a word can be. */
const optionOf = (word: Word, rule: Interpreter): Opened =>
  (word.texts ?? [word.prefix])
    .filter((text) => /^[-+]./.test(text))
    .map((text) => readOption(text, rule))
    .reduce((a, b) => (order.indexOf(b) > order.indexOf(a) ? b : a), "no")

const isOption = (word: Word): boolean => (word.texts ?? [word.prefix]).some((text) => /^[-+]./.test(text))
const isWord = (word: Word, ...texts: readonly string[]): boolean =>
  word.texts?.some((text) => texts.includes(text)) === true

const findCommands = <W extends Word>(words: readonly W[], scan: Scan<W>, depth: number): void => {
  for (const [at, word] of words.entries()) {
    if (!isWord(word, "-exec", "-execdir", "-ok", "-okdir")) continue
    const end = words.findIndex((each, index) => index > at && isWord(each, ";", "+", "\\;"))
    command(words.slice(at + 1, end === -1 ? undefined : end), scan, depth + 1)
  }
}

const operands = <W extends Word>(
  words: readonly W[],
  name: string,
  rule: Interpreter,
  scan: Scan<W>,
  depth: number,
): void => {
  const mark = (word: W | undefined, what: ProgramText<W>["what"] = rule.language ?? "code"): void => {
    if (word !== undefined) scan.found.push({ word, what, program: name })
  }
  switch (rule.operands) {
    case "program":
      return mark(words[0])
    case "programs":
      return words.forEach((word) => mark(word))
    case "place-then-program":
      return words.slice(1).forEach((word) => mark(word))
    case "value-then-command":
      return command(words.slice(1), scan, depth + 1)
    case "command": {
      const first = words.findIndex((word) => !/^[A-Za-z_]\w*=/.test(word.prefix))
      return first === -1 ? undefined : command(words.slice(first), scan, depth + 1)
    }
    case "assignments":
      return words.filter((word) => word.texts === undefined).forEach((word) => mark(word))
    case "subcommand":
      return words[0] !== undefined && isWord(words[0], "eval", "repl")
        ? words.slice(1).forEach((word) => mark(word))
        : undefined
    case "data":
    case "expression":
  }
}

function command<W extends Word>(words: readonly W[], scan: Scan<W>, depth: number): void {
  const [head, ...rest] = words
  if (head === undefined) return
  if (head.texts === undefined || depth > limits.commandDepth) {
    scan.found.push({ word: head, what: "command", program: head.prefix })
    return
  }
  for (const program of head.texts) {
    const found = interpreterOf(program)
    if (found !== undefined) interpret(rest, found.name, found.rule, scan, depth)
  }
}

/** After so many operands, options too belong to what is started: the script, the command, the remote shell. */
const ownOperands = ({ operands: kind, stdin }: Interpreter): number => {
  if (kind === "value-then-command") return 2
  return stdin === true || kind === "command" || kind === "programs" || kind === "place-then-program"
    ? 1
    : Number.POSITIVE_INFINITY
}

const endsOptions = ({ texts = [] }: Word, letters: string): boolean =>
  texts.some((text) => /^-[A-Za-z]+$/.test(text) && letters.includes(text.at(-1) ?? " "))

function interpret<W extends Word>(
  rest: readonly W[],
  name: string,
  rule: Interpreter,
  scan: Scan<W>,
  depth: number,
): void {
  if (rule.operands === "expression") return findCommands(rest, scan, depth)
  const enough = ownOperands(rule)
  const what = rule.language ?? "code"
  let given = false
  let switched = false
  let at = 0
  const words: W[] = []
  for (; at < rest.length; at++) {
    const word = rest[at] as W
    if (isWord(word, "--")) {
      words.push(...rest.slice(at + 1))
      break
    }
    if (!isOption(word)) {
      words.push(word)
      if (switched || words.length >= enough) {
        words.push(...rest.slice(at + 1))
        break
      }
      continue
    }
    const opened = optionOf(word, rule)
    if (opened === "switch") switched = true
    if (opened === "here" && rule.harmless?.test(word.prefix.replace(/^-\w/, "")) !== true)
      scan.found.push({ word, what, program: name })
    if (opened === "next") {
      const next = rest[++at]
      if (next !== undefined && rule.harmless?.test(next.prefix) !== true)
        scan.found.push({ word: next, what, program: name })
    }
    if (opened === "here" || opened === "next" || opened === "file") given = true
    if (rule.last !== undefined && endsOptions(word, rule.last)) given = true
    if (rule.last !== undefined && endsOptions(word, rule.last) && (opened === "next" || opened === "skip")) break
    if (opened === "skip" || (opened === "file" && !word.prefix.includes("="))) at++
  }
  if (switched) {
    const [text] = words
    if (text !== undefined) scan.found.push({ word: text, what, program: name })
    return
  }
  if (rule.stdin === true && !given && !words.some((word) => !isWord(word, "-"))) scan.stdin = name
  if (rule.operands === "program" && given) return
  operands(words, name, rule, scan, depth)
}

/** `words`: the program first, then its arguments. */
export const programTexts = <W extends Word>(words: readonly W[]): Reading<W> => {
  const scan: Scan<W> = { found: [], stdin: undefined }
  command(words, scan, 0)
  return { texts: scan.found, ...(scan.stdin === undefined ? {} : { stdin: scan.stdin }) }
}
