/**
 * The grammar of the templates in manifests (argv, stdin, bodies, headers, arguments): text → AST.
 *
 *   template  = { literal | "${" expression "}" }
 *   expression = path { "|" filter }
 *   path      = ("input" | "context" | "secrets") { "." name }
 *   filter    = name [ "(" [ argument { "," argument } ] ")" ]
 *   argument  = 'text' | "text" | number | true | false | path
 *
 * Guarantees: total (a tree or a message, never a throw), linear in the text, values are never looked at.
 * Does not: know filters' meanings or schemas; whoever binds a driver to a contract does.
 */
import { limits } from "../limits.ts"

export type TemplateRoot = "input" | "context" | "secrets"
export interface TemplatePath {
  readonly root: TemplateRoot
  readonly keys: readonly string[]
}
type FilterArgument =
  | { readonly type: "literal"; readonly value: string | number | boolean }
  | { readonly type: "path"; readonly path: TemplatePath }
export interface Filter {
  readonly name: string
  readonly args: readonly FilterArgument[]
}
export type TemplatePart =
  | { readonly type: "literal"; readonly text: string }
  | { readonly type: "value"; readonly path: TemplatePath; readonly filters: readonly Filter[] }

type ParsedTemplate =
  | { readonly ok: true; readonly parts: readonly TemplatePart[] }
  | { readonly ok: false; readonly message: string; readonly fix: string }

export const pathText = (path: TemplatePath): string => [path.root, ...path.keys].join(".")

const grammarFix =
  "write `${input.NAME}`, with `| default('x')`, `| optional('--flag', input.NAME)`, `| flag('--flag')`, `| json` or `| each` behind the name"
const token = /\s*(?:(?<name>[A-Za-z_][A-Za-z0-9_-]*)|(?<number>-?\d+(?:\.\d+)?)|(?<mark>[.|(),}])|(?<quote>['"]))/y

interface Cursor {
  readonly text: string
  at: number
}
type Token =
  | { readonly type: "name" | "string" | "mark"; readonly text: string }
  | { readonly type: "number"; readonly text: string }
  | { readonly type: "end" }

class TemplateError extends Error {}

const quoted = (cursor: Cursor, quote: string): Token => {
  let text = ""
  for (; cursor.at < cursor.text.length; cursor.at++) {
    const char = cursor.text.charAt(cursor.at)
    if (char === quote) {
      cursor.at++
      return { type: "string", text }
    }
    if (char === "\\") {
      const next = cursor.text.charAt(++cursor.at)
      if (next !== quote && next !== "\\") throw new TemplateError(`\`\\${next}\` is not an escape here`)
      text += next
    } else text += char
  }
  throw new TemplateError("a quoted text is not closed")
}

const next = (cursor: Cursor): Token => {
  token.lastIndex = cursor.at
  const groups = token.exec(cursor.text)?.groups
  if (groups === undefined) {
    if (cursor.text.slice(cursor.at).trim() === "") return { type: "end" }
    throw new TemplateError(`\`${cursor.text.slice(cursor.at).trimStart().charAt(0)}\` is not expected here`)
  }
  cursor.at = token.lastIndex
  if (groups["quote"] !== undefined) return quoted(cursor, groups["quote"])
  if (groups["name"] !== undefined) return { type: "name", text: groups["name"] }
  if (groups["number"] !== undefined) return { type: "number", text: groups["number"] }
  return { type: "mark", text: groups["mark"] ?? "" }
}

const peek = (cursor: Cursor): Token => {
  const at = cursor.at
  const found = next(cursor)
  cursor.at = at
  return found
}
const eat = (cursor: Cursor, mark: string): boolean => {
  const found = peek(cursor)
  if (found.type !== "mark" || found.text !== mark) return false
  next(cursor)
  return true
}
const describe = (found: Token): string => (found.type === "end" ? "the end" : `\`${found.text}\``)

const pathAfter = (cursor: Cursor, root: string): TemplatePath => {
  if (root !== "input" && root !== "context" && root !== "secrets") {
    throw new TemplateError(`\`${root}\` is not a source of values; \`input\` and \`context\` are`)
  }
  const keys: string[] = []
  while (eat(cursor, ".")) {
    const key = next(cursor)
    const isKey = key.type === "name" || (key.type === "number" && /^\d+$/.test(key.text))
    if (!isKey) throw new TemplateError(`a name is expected after \`.\`, not ${describe(key)}`)
    keys.push(key.text)
  }
  if (keys.length === 0) throw new TemplateError(`\`${root}\` needs a name behind it, as in \`${root}.NAME\``)
  return { root, keys }
}

const argument = (cursor: Cursor): FilterArgument => {
  const found = next(cursor)
  if (found.type === "string") return { type: "literal", value: found.text }
  if (found.type === "number") return { type: "literal", value: Number(found.text) }
  if (found.type !== "name") throw new TemplateError(`an argument is expected, not ${describe(found)}`)
  if (found.text === "true" || found.text === "false") return { type: "literal", value: found.text === "true" }
  return { type: "path", path: pathAfter(cursor, found.text) }
}

const filter = (cursor: Cursor): Filter => {
  const name = next(cursor)
  if (name.type !== "name") throw new TemplateError(`a filter's name is expected after \`|\`, not ${describe(name)}`)
  const args: FilterArgument[] = []
  if (eat(cursor, "(") && !eat(cursor, ")")) {
    do args.push(argument(cursor))
    while (eat(cursor, ","))
    if (!eat(cursor, ")")) throw new TemplateError(`\`)\` is expected, not ${describe(peek(cursor))}`)
  }
  return { name: name.text, args }
}

const expression = (cursor: Cursor): TemplatePart => {
  const root = next(cursor)
  if (root.type !== "name")
    throw new TemplateError(`\`input\` or \`context\` is expected after \`\${\`, not ${describe(root)}`)
  const path = pathAfter(cursor, root.text)
  const filters: Filter[] = []
  while (eat(cursor, "|")) filters.push(filter(cursor))
  if (!eat(cursor, "}")) throw new TemplateError(`\`}\` is expected, not ${describe(peek(cursor))}`)
  return { type: "value", path, filters }
}

/** One template to its parts; neighbouring literals are one part, an empty template has none. */
export const parseTemplate = (text: string): ParsedTemplate => {
  if (text.length > limits.templateLength) {
    return {
      ok: false,
      message: `the template is longer than ${limits.templateLength} characters`,
      fix: "pass long text by `stdin`",
    }
  }
  if (text.includes("\0")) return { ok: false, message: "the template contains a NUL character", fix: "remove it" }
  const parts: TemplatePart[] = []
  const cursor: Cursor = { text, at: 0 }
  try {
    while (cursor.at < text.length) {
      const open = text.indexOf("${", cursor.at)
      const end = open === -1 ? text.length : open
      if (end > cursor.at) parts.push({ type: "literal", text: text.slice(cursor.at, end) })
      if (open === -1) break
      cursor.at = open + 2
      parts.push(expression(cursor))
    }
  } catch (error) {
    if (error instanceof TemplateError) return { ok: false, message: error.message, fix: grammarFix }
    throw error
  }
  return { ok: true, parts }
}
