/**
 * JSON whose texts are templates (`args_template`, `body_template`, `client_options`): checked against the contract once,
 * filled for each call.
 *
 * Guarantees: a text that is one template alone becomes the value as it is, of any type, and is left out with its key where
 * there is none; in a longer text values are written into it, and nothing in a value is read as a template again. What is
 * refused names the input, never its value. A secret is whatever `secret` puts for its name. Pure.
 * Assumes: the input is valid against the contract and under the driver's names.
 */
import type { Template, TemplateTree } from "../../manifest/templates/template-tree.ts"
import { pathText, type TemplatePart, type TemplatePath } from "../../manifest/templates/template.ts"
import type { Diagnostic, JsonObject, JsonValue } from "../../manifest/types.ts"
import type { Failure } from "../failure.ts"
import { isObject } from "./schema-path.ts"
import { factsOfValue, type Finding, isFinding, type TemplateScope, unknownValue } from "./template-scope.ts"

type ValuePart = Extract<TemplatePart, { type: "value" }>

const FILTERS = ["default", "json"]

const findingsOf = (part: ValuePart, scope: TemplateScope): readonly Finding[] => {
  const bad = part.filters.find(
    ({ name, args }) =>
      !FILTERS.includes(name) ||
      args.length !== (name === "default" ? 1 : 0) ||
      args.some((arg) => arg.type === "path"),
  )
  if (bad !== undefined)
    return [
      {
        severity: "error",
        rule: "template-filter",
        message: `\`${bad.name}\` cannot stand here, or not with these arguments`,
        fix: "use `default('x')` or `json`",
      },
    ]
  if (part.path.root === "secrets") return []
  const facts = factsOfValue(scope, part.path)
  if (isFinding(facts)) return [facts]
  return facts.declared ? [] : [unknownValue(part.path)]
}

/** Every text of a tree with the path that it stands at. */
const textsOf = (tree: TemplateTree, path: string): readonly { template: Template; path: string }[] => {
  if (tree.type === "text") return [{ template: tree, path }]
  if (tree.type === "list") return tree.items.flatMap((item, index) => textsOf(item, `${path}[${index}]`))
  return tree.type === "object" ? tree.entries.flatMap(({ key, value }) => textsOf(value, `${path}.${key}`)) : []
}

const valuesOf = ({ parts }: Template): readonly ValuePart[] => parts.filter((part) => part.type === "value")
const isWhole = ({ parts }: Template): boolean => parts.length === 1 && parts[0]?.type === "value"
const fallbackOf = ({ filters }: ValuePart): JsonValue | undefined => {
  const [arg] = filters.find(({ name }) => name === "default")?.args ?? []
  return arg?.type === "literal" ? arg.value : undefined
}

export interface CheckedTree {
  readonly diagnostics: readonly Diagnostic[]
  /** values that a text cannot be written without */
  readonly needs: readonly TemplatePath[]
}

export const checkTree = (
  tree: TemplateTree,
  scope: TemplateScope,
  place: { readonly file: string; readonly path: string },
): CheckedTree => {
  const texts = textsOf(tree, place.path)
  return {
    diagnostics: texts.flatMap(({ template, path }) =>
      valuesOf(template).flatMap((part) =>
        findingsOf(part, scope).map((finding) => ({ ...finding, file: place.file, path })),
      ),
    ),
    needs: texts.flatMap(({ template }) =>
      isWhole(template)
        ? []
        : valuesOf(template).flatMap((part) => {
            if (part.path.root === "secrets" || fallbackOf(part) !== undefined) return []
            const facts = factsOfValue(scope, part.path)
            return !isFinding(facts) && facts.default !== undefined ? [] : [part.path]
          }),
    ),
  }
}

export interface TreeValues {
  readonly input: JsonObject
  readonly context: JsonObject
  /** what stands for a secret; undefined: there is none of that name */
  readonly secret: (name: string) => string | undefined
  /** whose `default` stands for an absent value that no filter has one for; absent: nobody's */
  readonly scope?: TemplateScope
}

/** Own properties and items alone. */
const lookUp = ({ input, context, secret }: TreeValues, { root, keys }: TemplatePath): JsonValue | undefined => {
  if (root === "secrets") return secret(keys.join("."))
  let at: JsonValue | undefined = root === "context" ? context : input
  for (const key of keys) {
    if (Array.isArray(at)) at = /^\d+$/.test(key) ? (at as readonly JsonValue[])[Number(key)] : undefined
    else if (isObject(at)) at = Object.hasOwn(at, key) ? at[key] : undefined
    else return undefined
  }
  return at
}

class Refused extends Error {
  readonly path: TemplatePath
  constructor(path: TemplatePath, problem: string) {
    super(problem)
    this.path = path
  }
}

const contractDefault = ({ path }: ValuePart, { scope }: TreeValues): JsonValue | undefined => {
  if (scope === undefined || path.root === "secrets") return undefined
  const facts = factsOfValue(scope, path)
  return isFinding(facts) ? undefined : facts.default
}

const valueOf = (part: ValuePart, values: TreeValues): JsonValue | undefined => {
  const found = lookUp(values, part.path)
  if (found === undefined && part.path.root === "secrets") throw new Refused(part.path, "is not bound to this call")
  const value = found ?? fallbackOf(part) ?? (found === undefined ? contractDefault(part, values) : found)
  return part.filters.some(({ name }) => name === "json") && value !== undefined ? JSON.stringify(value) : value
}

const textPart = (part: TemplatePart, values: TreeValues): string => {
  if (part.type === "literal") return part.text
  const value = valueOf(part, values)
  if (value === undefined || value === null)
    throw new Refused(part.path, "is absent and the driver has no default for it")
  if (typeof value === "object") throw new Refused(part.path, "is a list or object where a text is needed")
  return String(value)
}

const fill = (tree: TemplateTree, values: TreeValues): JsonValue | undefined => {
  if (tree.type === "plain") return tree.value
  if (tree.type === "list") return tree.items.map((item) => fill(item, values) ?? null)
  if (tree.type === "object")
    return Object.fromEntries(
      tree.entries.flatMap(({ key, value }) => {
        const filled = fill(value, values)
        return filled === undefined ? [] : [[key, filled]]
      }),
    )
  const [only] = tree.parts
  if (isWhole(tree) && only?.type === "value") return valueOf(only, values)
  return tree.parts.map((part) => textPart(part, values)).join("")
}

/** `value` is undefined where the whole tree is a template of something that is not there. */
export const fillTree = (
  tree: TemplateTree,
  values: TreeValues,
): { readonly ok: true; readonly value: JsonValue | undefined } | Failure => {
  try {
    return { ok: true, value: fill(tree, values) }
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    const field = pathText(error.path)
    return {
      ok: false,
      code: error.path.root === "secrets" ? "auth_required" : "input_invalid",
      message: `\`${field}\` ${error.message}`,
      hint:
        error.path.root === "secrets"
          ? "list it in `auth.state.env` and put its value in the vault"
          : "give it a value",
      details: { field },
    }
  }
}
