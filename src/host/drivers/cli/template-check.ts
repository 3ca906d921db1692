/**
 * One parsed template against the contract: what it may do at run time is settled here, once, at registration.
 *
 * Guarantees: an element that comes out of here names only declared inputs, uses only known filters in their known
 * shape, never a secret (secrets never reach argv or stdin by template), and cannot compose an option's name from a
 * free text (C-33: `--${input.x}` needs an `enum`, `const`, number or boolean in the contract).
 * Does not: see any value.
 */
import type { SchemaFacts } from "../../invoke/schema-path.ts"
import {
  factsOfValue,
  type Finding,
  isFinding,
  type TemplateScope,
  unknownValue,
  unsafe,
} from "../../invoke/template-scope.ts"
import { type Filter, pathText, type TemplatePart, type TemplatePath } from "../../../manifest/templates/template.ts"

export interface ValuePiece {
  readonly type: "value"
  readonly path: TemplatePath
  /** the author's text for an absent value: the filter's, else the contract's `default` */
  readonly fallback?: string
  readonly json: boolean
  /** no free text: one of a list, a number or a boolean */
  readonly closed: boolean
  /** the texts that the contract allows, where it lists them */
  readonly allowed?: ReadonlySet<string>
}
export type Piece = { readonly type: "literal"; readonly text: string } | ValuePiece

/** `--f` with the value in an element of its own, or `--f=` joined with it. */
interface OptionName {
  readonly text: string
  readonly joined: boolean
}
export type Element =
  | { readonly type: "one"; readonly pieces: readonly Piece[] }
  | {
      readonly type: "optional"
      readonly option: OptionName
      readonly condition: TemplatePath
      readonly value: ValuePiece
    }
  | { readonly type: "flag"; readonly option: string; readonly path: TemplatePath; readonly whenAbsent: boolean }
  | { readonly type: "each"; readonly option?: OptionName; readonly value: ValuePiece }

type CheckedTemplate = { readonly element?: Element; readonly findings: readonly Finding[] }

const factsOf = (scope: TemplateScope, path: TemplatePath): SchemaFacts | Finding =>
  path.root === "secrets"
    ? {
        severity: "error",
        rule: "template-secret",
        message: `\`${pathText(path)}\` would put a secret on a command line`,
        fix: "name the secret in `auth.state.env`; it reaches the program by its environment",
      }
    : factsOfValue(scope, path)

const onlyTypes = (facts: SchemaFacts, names: readonly string[]): boolean =>
  facts.types !== "unknown" && facts.types.length > 0 && facts.types.every((type) => names.includes(type))
const isClosed = (facts: SchemaFacts): boolean =>
  facts.allowed !== undefined || onlyTypes(facts, ["number", "integer", "boolean", "null"])

const defaultText = (value: SchemaFacts["default"], json: boolean): string | undefined => {
  if (value === undefined) return undefined
  if (json) return JSON.stringify(value)
  return typeof value === "object" ? undefined : String(value)
}

class Checker {
  readonly findings: Finding[] = []
  readonly #scope: TemplateScope
  constructor(scope: TemplateScope) {
    this.#scope = scope
  }

  error(rule: string, message: string, fix: string): undefined {
    this.findings.push({ severity: "error", rule, message, fix })
    return undefined
  }

  facts(path: TemplatePath): SchemaFacts | undefined {
    const found = factsOf(this.#scope, path)
    if (isFinding(found)) {
      this.findings.push(found)
      return undefined
    }
    if (found.declared) return found
    this.findings.push(unknownValue(path))
    return undefined
  }

  option(filter: Filter): OptionName | undefined {
    const [first] = filter.args
    if (first?.type === "literal" && typeof first.value === "string" && first.value !== "") {
      return { text: first.value, joined: first.value.endsWith("=") }
    }
    return this.error(
      "template-filter-arguments",
      `\`${filter.name}\` needs the option as a quoted text first`,
      `write \`${filter.name}('--flag')\``,
    )
  }

  /** A value that becomes text: no list or object unless `json`. */
  value(path: TemplatePath, filters: readonly Filter[], facts: SchemaFacts): ValuePiece | undefined {
    let rest = filters
    let fallback: string | undefined
    if (rest[0]?.name === "default") {
      const [only, more] = rest[0].args
      if (only?.type !== "literal" || more !== undefined) {
        return this.error(
          "template-filter-arguments",
          "`default` takes one quoted text or number",
          "write `default('x')`",
        )
      }
      fallback = String(only.value)
      rest = rest.slice(1)
    }
    const json = rest[0]?.name === "json"
    if (json && rest[0]?.args.length !== 0)
      return this.error("template-filter-arguments", "`json` takes no arguments", "write `| json`")
    if (rest.length > (json ? 1 : 0)) {
      const name = rest[json ? 1 : 0]?.name ?? ""
      const known = ["default", "json", "optional", "flag", "each"].includes(name)
      if (known)
        return this.error(
          "template-filter-order",
          `\`${name}\` cannot stand there`,
          "use `default` then `json`, or one of `optional`, `flag`, `each` alone",
        )
      return this.error(
        "template-unknown-filter",
        `there is no filter \`${name}\``,
        "use `default`, `optional`, `flag`, `json` or `each`",
      )
    }
    if (!json && onlyTypes(facts, ["object", "array"])) {
      return this.error(
        "template-not-a-text",
        `\`${pathText(path)}\` is a list or object`,
        "add `| json`, or `| each` for one argument an item",
      )
    }
    fallback ??= defaultText(facts.default, json)
    return {
      type: "value",
      path,
      json,
      closed: isClosed(facts),
      ...(fallback === undefined ? {} : { fallback }),
      ...(facts.allowed === undefined ? {} : { allowed: facts.allowed }),
    }
  }
}

const alone = ["optional", "flag", "each"]

const soleFilter = (
  check: Checker,
  scope: TemplateScope,
  path: TemplatePath,
  filter: Filter,
  facts: SchemaFacts,
): Element | undefined => {
  if (filter.name === "flag") {
    const option = check.option(filter)
    if (option === undefined) return undefined
    if (filter.args.length > 1)
      return check.error("template-filter-arguments", "`flag` takes one argument", "write `flag('--flag')`")
    return { type: "flag", option: option.text, path, whenAbsent: Boolean(facts.default) }
  }
  if (filter.name === "optional") {
    const option = check.option(filter)
    const [, second, more] = filter.args
    if (option === undefined) return undefined
    if (more !== undefined || (second !== undefined && second.type !== "path")) {
      return check.error(
        "template-filter-arguments",
        "`optional` takes the option and the value",
        "write `optional('--flag', input.NAME)`",
      )
    }
    const valuePath = second?.type === "path" ? second.path : path
    const valueFacts = second?.type === "path" ? check.facts(valuePath) : facts
    const value = valueFacts === undefined ? undefined : check.value(valuePath, [], valueFacts)
    return value === undefined ? undefined : { type: "optional", option, condition: path, value }
  }
  const option = filter.args.length === 0 ? undefined : check.option(filter)
  if (filter.args.length > 0 && option === undefined) return undefined
  if (filter.args.length > 1)
    return check.error(
      "template-filter-arguments",
      "`each` takes at most one argument",
      "write `each` or `each('--flag')`",
    )
  if (facts.types !== "unknown" && !facts.types.includes("array")) {
    return check.error("template-not-a-list", `\`${pathText(path)}\` is not a list`, "remove `| each`")
  }
  const items = factsOf(scope, { root: path.root, keys: [...path.keys, "0"] })
  const value = isFinding(items) ? undefined : check.value(path, [], { ...items, always: true })
  return value === undefined ? undefined : { type: "each", value, ...(option === undefined ? {} : { option }) }
}

/** Until the `=` that ends an option's name, every value in an element that starts with `-` is from a closed list. */
const checkComposition = (
  check: Checker,
  pieces: readonly Piece[],
  facts: ReadonlyMap<ValuePiece, SchemaFacts>,
): void => {
  const [first] = pieces
  const starts = (text: string): boolean => text.startsWith("-")
  const dash =
    first?.type === "literal" ? starts(first.text) : [...(first?.allowed ?? []), first?.fallback ?? ""].some(starts)
  if (!dash) return
  // A value in front is judged by its content at each call; what follows it is judged here.
  for (const piece of first?.type === "value" ? pieces.slice(1) : pieces) {
    if (piece.type === "literal") {
      if (piece.text.includes("=")) return
    } else if (!isClosed(facts.get(piece) ?? unsafe)) {
      check.error(
        "template-option-composition",
        `\`${pathText(piece.path)}\` would become part of an option's name`,
        "give the input an `enum`, or write `--flag=${…}`",
      )
    }
  }
}

/** `afterDashes`: a literal `--` stands before it, so that it can only be a positional argument. */
export const checkTemplate = (
  parts: readonly TemplatePart[],
  scope: TemplateScope,
  afterDashes: boolean,
): CheckedTemplate => {
  const check = new Checker(scope)
  const pieces: Piece[] = []
  const facts = new Map<ValuePiece, SchemaFacts>()
  for (const part of parts) {
    if (part.type === "literal") {
      pieces.push(part)
      continue
    }
    const found = check.facts(part.path)
    if (found === undefined) continue
    const [filter] = part.filters
    if (filter !== undefined && alone.includes(filter.name) && part.filters.length === 1) {
      if (parts.length === 1) {
        const element = soleFilter(check, scope, part.path, filter, found)
        return { findings: check.findings, ...(element === undefined ? {} : { element }) }
      }
      check.error(
        "template-filter-order",
        `\`${filter.name}\` must be the whole template`,
        "put it in an element of its own",
      )
      continue
    }
    const piece = check.value(part.path, part.filters, found)
    if (piece === undefined) continue
    if (!found.always && piece.fallback === undefined) {
      check.findings.push({
        severity: "warning",
        rule: "template-optional-value",
        message: `\`${pathText(part.path)}\` can be absent, and then the call is refused`,
        fix: "add `| default('x')` or `| optional('--flag', …)`, or make the input required",
      })
    }
    facts.set(piece, found)
    pieces.push(piece)
  }
  if (!afterDashes) checkComposition(check, pieces, facts)
  const failed = check.findings.some((finding) => finding.severity === "error")
  return failed ? { findings: check.findings } : { element: { type: "one", pieces }, findings: check.findings }
}
