/**
 * No input inside an interpreter's program text: `sh -c "grep ${input.x} f"` would run whatever the caller writes.
 *
 * Guarantees: an error, in both modes, for each free text (one that no `enum` closes, and that is no number or boolean)
 * in an argument that a program of the command line reads as code, or that names the program to be started; also for
 * author's and caller's text mixed in a program that an interpreter reads from stdin. An input that is a whole program
 * by stdin, or a whole statement for a database, is what its tool is for, and is let pass.
 * Does not: see what a driver's own scripts do with their arguments. Pure.
 */
import { type ProgramText, programTexts, type Word } from "../../../manifest/templates/program-text.ts"
import type { Diagnostic } from "../../../manifest/types.ts"
import type { Element, Piece, ValuePiece } from "./template-check.ts"
import type { ArgvProgram, StdinProgram, TemplatePlace } from "./template.ts"
import { pathText } from "../../../manifest/templates/template.ts"

interface Argument extends Word {
  readonly free?: ValuePiece
  /** the caller's text is all there is */
  readonly whole: boolean
  /** of the template it came from */
  readonly index: number
}

const isFree = (piece: Piece): piece is ValuePiece => piece.type === "value" && !piece.closed

const word = (pieces: readonly Piece[], index: number): Argument => {
  const prefix = pieces[0]?.type === "literal" ? pieces[0].text : ""
  const free = pieces.find(isFree)
  const [only, more] = pieces
  const whole = more === undefined
  if (free !== undefined) return { prefix, free, whole, index }
  if (whole && only?.type === "value" && only.allowed !== undefined)
    return {
      texts: [...only.allowed, ...(only.fallback === undefined ? [] : [only.fallback])],
      prefix,
      whole: false,
      index,
    }
  const text = pieces.map((piece) => (piece.type === "literal" ? piece.text : "")).join("")
  return { texts: [text], prefix: text, whole: false, index }
}

const literal = (text: string, index: number): Argument => ({ texts: [text], prefix: text, whole: false, index })

/** Every argument that the element can give, as if what is optional were there. */
const words = (element: Element, index: number): readonly Argument[] => {
  if (element.type === "one") return [word(element.pieces, index)]
  if (element.type === "flag") return [literal(element.option, index)]
  const { option, value } = element
  if (option === undefined) return [word([value], index)]
  return option.joined
    ? [word([{ type: "literal", text: option.text }, value], index)]
    : [literal(option.text, index), word([value], index)]
}

/** the place of what `xargs` takes from stdin */
const byStdin = -2

const fixes: Readonly<Record<ProgramText<Word>["what"], string>> = {
  code: 'keep the program text fixed and pass the value as an argument behind it, as in `[-c, \'grep -e "$1" notes\', sh, "${input.x}"]`, give the input an `enum`, or, where running the caller\'s program is what the tool is for, pass the whole of it by `stdin`',
  query: "let the input be the whole statement, or pass the value as a parameter of the statement",
  command: "name the program in the driver, or give the input an `enum`",
}

const message = ({ what, program }: ProgramText<Argument>, path: string): string => {
  if (what === "command") return `\`${path}\` would name the program that is started`
  const text = what === "query" ? "a statement" : "program text"
  return `\`${path}\` would become part of ${text} that \`${program}\` runs; whoever calls the tool could run anything there`
}

/** Does each value stand on lines of its own, where it is a whole statement? */
const isLinesOfItsOwn = (pieces: readonly Piece[]): boolean =>
  pieces
    .map((piece) => (piece.type === "literal" ? piece.text.replaceAll("\0", " ") : "\0"))
    .join("")
    .split("\n")
    .every((line) => !line.includes("\0") || line.trim() === "\0")

export const checkProgramText = (
  /** `bin` and `bin_args` */
  command: readonly string[],
  argv: ArgvProgram,
  stdin: StdinProgram | undefined,
  place: { readonly argv: TemplatePlace; readonly stdin: TemplatePlace },
): readonly Diagnostic[] => {
  const free = stdin?.pieces.find(isFree)
  const input: Argument | undefined = free === undefined ? undefined : { prefix: "", free, whole: true, index: byStdin }
  const reading = programTexts(
    [...command.map((text) => literal(text, -1)), ...argv.elements.flatMap((element, index) => words(element, index))],
    input,
  )
  const found = reading.texts.flatMap((each): readonly Diagnostic[] => {
    const { free, whole, index } = each.word
    if (free === undefined || (each.what === "query" && whole)) return []
    return [
      {
        severity: "error",
        rule: "template-program-text",
        ...(index === byStdin ? place.stdin : { file: place.argv.file, path: `${place.argv.path}[${index}]` }),
        message: message(each, pathText(free.path)),
        fix: fixes[each.what],
      },
    ]
  })
  const written = stdin?.pieces.some((piece) => piece.type === "literal" && piece.text.trim() !== "") === true
  if (reading.stdin === undefined || free === undefined) return found
  if (reading.statements === true && isLinesOfItsOwn(stdin?.pieces ?? [])) return found
  return [
    ...found,
    {
      severity: written ? "error" : "warning",
      rule: "template-program-text",
      ...place.stdin,
      message: written
        ? `\`${pathText(free.path)}\` would become part of program text that \`${reading.stdin}\` reads from stdin`
        : `\`${pathText(free.path)}\` is the program that \`${reading.stdin}\` runs; only the sandbox limits what it does`,
      fix: written
        ? "keep the program fixed in a file or an argument, and pass the value as an argument or by `stdin` alone"
        : "keep it so only if running the caller's program is what the tool is for",
    },
  ]
}
