/**
 * Which words of a command line are program text: read as code by the program that gets them, not as data.
 *
 * Guarantees: looks through programs that start other programs (`env`, `timeout`, `xargs sh -c`, `find -exec`, …), at
 * any depth up to a limit; where a word can be an option, it counts as one. An interpreter that is named anywhere in
 * the line counts as started there, so that a program that starts others need not be known. What is read from stdin is
 * followed to where `xargs` puts it. Total, and at most quadratic in the words.
 * Does not: know programs that are not in the table of interpreters.
 */
import { type Interpreter, interpreterOf, isSteeringVariable } from "./interpreters.ts"
import { limits } from "../limits.ts"

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
interface Reading<W extends Word> {
  readonly texts: readonly ProgramText<W>[]
  /** the program that reads its text from stdin, where one does, and whether that is statements for a database */
  readonly stdin?: string
  readonly statements?: boolean
}

interface Scan<W extends Word> {
  readonly found: ProgramText<W>[]
  stdin: string | undefined
  statements?: boolean
  /** stands for what is read from stdin, where anything of the caller's is */
  readonly input?: W | undefined
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
    if (rule.code?.includes(letter) === true) {
      // Several of them in one cluster share what follows: `node -pe TEXT`.
      const letters = rule.code
      return Array.from(text.slice(at)).every((each) => letters.includes(each)) ? "next" : "here"
    }
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
      for (const word of words) {
        const variable = /^([A-Za-z_]\w*)=/.exec(word.prefix)?.[1]
        if (variable === undefined) break
        if (isSteeringVariable(variable)) mark(word, "code")
      }
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
  const isStdin = (word: W | undefined): boolean => word !== undefined && isWord(word, "-", "/dev/stdin")
  let opens = false
  let mark: string | undefined
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
    if (rule.plus === true && word.prefix.startsWith("+")) {
      scan.found.push({ word, what, program: name })
      continue
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
    opens ||= rule.openers !== undefined && hasFlag(word, rule.openers, rule)
    if (rule.feeds === true) mark = replaceMark(word, rest[at + 1]) ?? mark
    if (rule.starts !== undefined && opened === "skip" && endsOptions(word, rule.starts)) {
      const started = rest[at + 1]
      if (started !== undefined && started.texts === undefined)
        scan.found.push({ word: started, what: "command", program: name })
      if (started !== undefined && isWord(started, "timeit"))
        for (const each of rest.slice(at + 2)) scan.found.push({ word: each, what, program: name })
    }
    if (rule.starts !== undefined && isWord(word, `-${rule.starts}timeit`))
      for (const each of rest.slice(at + 1)) scan.found.push({ word: each, what, program: name })
    if (opened === "switch") switched = true
    if (opened === "here" && rule.harmless?.test(word.prefix.replace(/^-\w/, "")) !== true)
      scan.found.push({ word, what, program: name })
    // What the caller gives stands in the same word: `-e${input.x}`.
    if (opened === "next" && word.texts === undefined && rule.harmless?.test(word.prefix.replace(/^-\w/, "")) !== true)
      scan.found.push({ word, what, program: name })
    else if (opened === "next") {
      const next = rest[++at]
      if (next !== undefined && rule.harmless?.test(next.prefix) !== true)
        scan.found.push({ word: next, what, program: name })
    }
    if (opened === "here" || opened === "next" || opened === "file") given = true
    if (rule.last !== undefined && endsOptions(word, rule.last)) given = true
    if (rule.last !== undefined && endsOptions(word, rule.last) && (opened === "next" || opened === "skip")) break
    if (opened === "file" && (isStdin(rest[at + 1]) || /=(?:-|\/dev\/stdin)$/.test(word.prefix))) scan.stdin = name
    if (opened === "skip" || (opened === "file" && !word.prefix.includes("="))) at++
  }
  if (switched) {
    const [text] = words
    if (text !== undefined) scan.found.push({ word: text, what, program: name })
    return
  }
  if (rule.runsStdin === true) scan.stdin = name
  if (rule.stdin === true && !given && (words.length === 0 || isStdin(words[0]))) scan.stdin = name
  if (rule.language === "query" && !given && words.length < 2) {
    scan.stdin = name
    scan.statements = true
  }
  if (opens) for (const word of words) scan.found.push({ word, what, program: name })
  if (rule.operands === "program" && given) return
  const text = words.findIndex((word) => isWord(word, ...(rule.textAfter ?? [])))
  if (text !== -1) for (const word of words.slice(text + 1)) scan.found.push({ word, what, program: name })
  const started = words.findIndex((word) => isWord(word, ...(rule.commandAfter ?? [])))
  if (started !== -1) command(words.slice(started + 1), scan, depth + 1)
  operands(rule.feeds === true ? fed(words, mark, name, scan) : words, name, rule, scan, depth)
}

/** The command of `xargs` with what it reads: in the place of the mark, or behind all that stands there. */
function fed<W extends Word>(
  words: readonly W[],
  mark: string | undefined,
  name: string,
  { input, found }: Scan<W>,
): readonly W[] {
  if (input === undefined || words.length === 0) return words
  if (mark === undefined) {
    // Where it could be an option of what is started, it is as good as its author's text.
    const head = words[0]?.texts?.some((text) => interpreterOf(text)?.rule.switch !== undefined) === true
    if (!head && !words.some((word) => isWord(word, "--"))) found.push({ word: input, what: "code", program: name })
    return [...words, input]
  }
  return words.map((word) => (word.texts?.some((text) => text.includes(mark)) === true ? input : word))
}

/** What `-I{}`, `-I {}`, `-i` and `--replace` say is to be replaced. */
function replaceMark(word: Word, next: Word | undefined): string | undefined {
  for (const text of word.texts ?? []) {
    if (text === "-I") return next?.texts?.[0]
    if (text.startsWith("-I")) return text.slice(2)
    if (/^(?:-i|--replace)(?:=|$)/.test(text)) return text.split("=")[1] || "{}"
  }
  return undefined
}

/** Is one of these letters set, before any that takes what follows it? */
const hasFlag = ({ texts = [] }: Word, letters: string, { code = "", takes = "" }: Interpreter): boolean =>
  texts.some((text) => {
    for (const letter of /^-\w+/.exec(text)?.[0].slice(1) ?? "") {
      if (letters.includes(letter)) return true
      if (code.includes(letter) || takes.includes(letter)) return false
    }
    return false
  })

/** Interpreters that some word behind the first names, as if whatever stands before it started them. */
function anywhere<W extends Word>(words: readonly W[], scan: Scan<W>): void {
  for (const [at, word] of words.entries()) {
    const found = at === 0 ? undefined : word.texts?.map(interpreterOf).find((each) => each?.rule.stdin === true)
    if (found === undefined) continue
    const inner: Scan<W> = { found: [], stdin: undefined }
    interpret(words.slice(at + 1), found.name, found.rule, inner, limits.commandDepth)
    for (const each of inner.found)
      if (!scan.found.some(({ word: known }) => known === each.word)) scan.found.push(each)
  }
}

/** `words`: the program first, then its arguments; `input`: a word for what of the caller's it reads from stdin. */
export const programTexts = <W extends Word>(words: readonly W[], input?: W): Reading<W> => {
  const scan: Scan<W> = { found: [], stdin: undefined, input }
  command(words, scan, 0)
  anywhere(words, scan)
  return {
    texts: scan.found,
    ...(scan.stdin === undefined ? {} : { stdin: scan.stdin }),
    ...(scan.statements === true && { statements: true }),
  }
}
