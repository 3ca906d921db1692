/**
 * argv and stdin templates: compiled once at registration, expanded for each call.
 *
 * Guarantees: one template is exactly one argument (`optional` gives none or two, or one when its option ends in `=`;
 * `flag` none or one; `each` one an item, or two with an option); a value is never parsed, split or expanded again; no
 * NUL reaches argv; a free text never becomes an option (C-33). What is refused names the input, never its value.
 * Assumes: the input was validated against the contract and mapped to driver-side keys.
 * Does not: run anything, know a shell, or see a secret.
 */
import type { Diagnostic, JsonObject, JsonValue } from "../../../manifest/types.ts"
import type { Failure } from "../../failure.ts"
import { maxArgumentBytes, maxArgvBytes, maxArgvElements } from "../../invoke/limits.ts"
import { isObject } from "../../invoke/schema-path.ts"
import type { TemplateScope } from "../../invoke/template-scope.ts"
import { checkTemplate, type Element, type Piece, type ValuePiece } from "./template-check.ts"
import { parseTemplate, pathText, type TemplatePath } from "../../../manifest/templates/template.ts"

/** Elements in order; those from `positionalFrom` on stand behind a literal `--`. */
export interface ArgvProgram {
  readonly elements: readonly Element[]
  readonly positionalFrom: number
}
export interface StdinProgram {
  readonly pieces: readonly Piece[]
}
interface TemplateValues {
  readonly input: JsonObject
  readonly context: JsonObject
}

type Compiled<T> =
  | { readonly ok: true; readonly program: T; readonly diagnostics: readonly Diagnostic[] }
  | { readonly ok: false; readonly diagnostics: readonly Diagnostic[] }

/** Where the templates stand, for messages: the manifest's file and the dotted path of the list. */
export interface TemplatePlace {
  readonly file: string
  readonly path: string
}

const compileOne = (
  text: string,
  scope: TemplateScope,
  afterDashes: boolean,
  place: TemplatePlace,
): { element?: Element; diagnostics: Diagnostic[] } => {
  const parsed = parseTemplate(text)
  if (!parsed.ok) {
    return {
      diagnostics: [
        {
          severity: "error",
          rule: "template-syntax",
          ...place,
          message: `\`${text.slice(0, 80)}\`: ${parsed.message}`,
          fix: parsed.fix,
        },
      ],
    }
  }
  const { element, findings } = checkTemplate(parsed.parts, scope, afterDashes)
  return {
    diagnostics: findings.map((finding) => ({ ...finding, ...place })),
    ...(element === undefined ? {} : { element }),
  }
}

const isDashes = (element: Element): boolean => {
  if (element.type !== "one" || element.pieces.length !== 1) return false
  const [piece] = element.pieces
  return piece?.type === "literal" && piece.text === "--"
}

export const compileArgv = (
  templates: readonly string[],
  scope: TemplateScope,
  place: TemplatePlace,
): Compiled<ArgvProgram> => {
  const diagnostics: Diagnostic[] = []
  const elements: Element[] = []
  let positionalFrom = Number.POSITIVE_INFINITY
  for (const [index, text] of templates.entries()) {
    const compiled = compileOne(text, scope, elements.length >= positionalFrom, {
      file: place.file,
      path: `${place.path}[${index}]`,
    })
    diagnostics.push(...compiled.diagnostics)
    if (compiled.element === undefined) continue
    elements.push(compiled.element)
    if (positionalFrom === Number.POSITIVE_INFINITY && isDashes(compiled.element)) positionalFrom = elements.length
  }
  if (diagnostics.some((diagnostic) => diagnostic.severity === "error")) return { ok: false, diagnostics }
  return { ok: true, program: Object.freeze({ elements: Object.freeze(elements), positionalFrom }), diagnostics }
}

export const compileStdin = (template: string, scope: TemplateScope, place: TemplatePlace): Compiled<StdinProgram> => {
  const { element, diagnostics } = compileOne(template, scope, true, place)
  if (element === undefined) return { ok: false, diagnostics }
  if (element.type === "one") return { ok: true, program: Object.freeze({ pieces: element.pieces }), diagnostics }
  const message = `\`${element.type}\` makes arguments and cannot stand in \`stdin\``
  return {
    ok: false,
    diagnostics: [
      ...diagnostics,
      { severity: "error", rule: "template-stdin", ...place, message, fix: "use `default` or `json`" },
    ],
  }
}

const refuse = (path: TemplatePath, problem: string, hint: string): Failure => ({
  ok: false,
  code: "input_invalid",
  message: `\`${pathText(path)}\` ${problem}`,
  hint,
  details: { field: pathText(path) },
})

const lookUp = (values: TemplateValues, path: TemplatePath): JsonValue | undefined => {
  let at: JsonValue | undefined = path.root === "context" ? values.context : values.input
  for (const key of path.keys) {
    if (Array.isArray(at)) at = /^\d+$/.test(key) ? (at as readonly JsonValue[])[Number(key)] : undefined
    else if (isObject(at)) at = Object.hasOwn(at, key) ? at[key] : undefined
    else return undefined
  }
  return at ?? undefined
}

/** `closed`: the text cannot have been chosen freely by the caller. */
type Rendered = { readonly ok: true; readonly text: string; readonly closed: boolean }

const render = (piece: ValuePiece, value: JsonValue | undefined): Rendered | Failure => {
  const { path } = piece
  if (value === undefined || value === null) {
    if (piece.fallback !== undefined) return { ok: true, text: piece.fallback, closed: true }
    return refuse(path, "is absent and the driver has no default for it", "give it a value")
  }
  if (piece.json) return { ok: true, text: JSON.stringify(value), closed: true }
  if (typeof value === "number" || typeof value === "boolean") return { ok: true, text: String(value), closed: true }
  if (typeof value !== "string")
    return refuse(path, "is a list or object where a text is needed", "give it one text or number")
  if (!value.isWellFormed()) return refuse(path, "is not well-formed Unicode", "remove the lone surrogates from it")
  return { ok: true, text: value, closed: piece.allowed?.has(value) === true }
}

const argument = (
  pieces: readonly Piece[],
  values: readonly (JsonValue | undefined)[],
  positional: boolean,
): { ok: true; text: string } | Failure => {
  let text = ""
  let leading: Piece | undefined
  let free: ValuePiece | undefined
  for (const [index, piece] of pieces.entries()) {
    const part: Rendered | Failure =
      piece.type === "literal" ? { ok: true, text: piece.text, closed: true } : render(piece, values[index])
    if (!part.ok) return part
    if (piece.type === "value") {
      if (part.text.includes("\0"))
        return refuse(piece.path, "contains a NUL character, which no argument can carry", "remove it")
      if (!part.closed && part.text !== "") free ??= piece
    }
    if (part.text !== "") leading ??= piece
    text += part.text
  }
  if (!positional && text.startsWith("-") && leading?.type === "value" && free !== undefined) {
    return refuse(
      free.path,
      "starts with `-` and could be taken for an option",
      "choose another value; the driver's author can allow it by a literal `--` before it, or as `--flag=${…}`",
    )
  }
  return { ok: true, text }
}

const withOption = (
  option: { text: string; joined: boolean } | undefined,
  piece: ValuePiece,
  value: JsonValue,
  positional: boolean,
): { ok: true; argv: string[] } | Failure => {
  const joined = option?.joined === true
  const made = argument(
    joined ? [{ type: "literal", text: option.text }, piece] : [piece],
    joined ? [undefined, value] : [value],
    positional,
  )
  if (!made.ok) return made
  return { ok: true, argv: option === undefined || joined ? [made.text] : [option.text, made.text] }
}

const expandElement = (
  element: Element,
  values: TemplateValues,
  positional: boolean,
): { ok: true; argv: readonly string[] } | Failure => {
  if (element.type === "one") {
    const found = element.pieces.map((piece) => (piece.type === "value" ? lookUp(values, piece.path) : undefined))
    const made = argument(element.pieces, found, positional)
    return made.ok ? { ok: true, argv: [made.text] } : made
  }
  if (element.type === "flag") {
    const value = lookUp(values, element.path) ?? element.whenAbsent
    const set = Array.isArray(value) ? value.length > 0 : Boolean(value)
    return { ok: true, argv: set ? [element.option] : [] }
  }
  if (element.type === "optional") {
    const value = lookUp(values, element.value.path)
    if (lookUp(values, element.condition) === undefined || value === undefined) return { ok: true, argv: [] }
    return withOption(element.option, element.value, value, positional)
  }
  const list = lookUp(values, element.value.path)
  if (list === undefined) return { ok: true, argv: [] }
  if (!Array.isArray(list)) return refuse(element.value.path, "is not a list", "give it a list")
  const argv: string[] = []
  for (const item of list) {
    const made = withOption(element.option, element.value, item, positional)
    if (!made.ok) return made
    argv.push(...made.argv)
  }
  return { ok: true, argv }
}

const tooLarge = (limit: string, value: number, field: string): Failure => ({
  ok: false,
  code: "input_invalid",
  message: `the command line would be over the limit of ${value} ${limit}`,
  hint: "pass large text by the driver's `stdin` template, or put it in a workspace file and pass its path",
  details: { limit, value, element: field },
})

/** The tool's own arguments; `bin` and `bin_args` come before them. */
export const expandArgv = (
  program: ArgvProgram,
  values: TemplateValues,
): { readonly ok: true; readonly argv: readonly string[] } | Failure => {
  const argv: string[] = []
  let total = 0
  for (const [index, element] of program.elements.entries()) {
    const made = expandElement(element, values, index >= program.positionalFrom)
    if (!made.ok) return made
    for (const text of made.argv) {
      const bytes = Buffer.byteLength(text)
      total += bytes + 1
      if (bytes > maxArgumentBytes) return tooLarge("bytes in one argument", maxArgumentBytes, `argv[${index}]`)
      if (total > maxArgvBytes) return tooLarge("bytes in all arguments", maxArgvBytes, `argv[${index}]`)
      argv.push(text)
      if (argv.length > maxArgvElements) return tooLarge("arguments", maxArgvElements, `argv[${index}]`)
    }
  }
  return { ok: true, argv }
}

export const expandStdin = (
  program: StdinProgram,
  values: TemplateValues,
): { readonly ok: true; readonly bytes: Uint8Array } | Failure => {
  let text = ""
  for (const piece of program.pieces) {
    const part: Rendered | Failure =
      piece.type === "literal"
        ? { ok: true, text: piece.text, closed: true }
        : render(piece, lookUp(values, piece.path))
    if (!part.ok) return part
    text += part.text
  }
  return { ok: true, bytes: new TextEncoder().encode(text) }
}
