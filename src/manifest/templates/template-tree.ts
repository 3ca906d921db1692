/**
 * JSON whose texts are templates (bodies, arguments, headers) → the same tree with each text parsed.
 *
 * Guarantees: every text was read by the one grammar of templates, only sources that the place allows are named, and the
 * tree is no deeper than the limit; a fault is reported at its own path. Does not: know the contract's inputs; binding does.
 */
import type { Context } from "../values/context.ts"
import { joinPath, shown } from "../values/diagnostics.ts"
import { limits } from "../limits.ts"
import { parseTemplate, type TemplatePart, type TemplateRoot } from "./template.ts"
import type { JsonValue } from "../base-types.ts"

export interface Template {
  /** as written */
  readonly text: string
  readonly parts: readonly TemplatePart[]
}

export type TemplateTree =
  | { readonly type: "plain"; readonly value: null | boolean | number }
  | ({ readonly type: "text" } & Template)
  | { readonly type: "list"; readonly items: readonly TemplateTree[] }
  | { readonly type: "object"; readonly entries: readonly { readonly key: string; readonly value: TemplateTree }[] }

/** Which sources may be named at a place, and why others may not. */
interface TemplateRules {
  readonly roots: readonly TemplateRoot[]
  readonly otherwise: { readonly rule: string; readonly message: string; readonly fix: string }
}

/** Where a call is made: its input, its context, and secrets, which are put in outside the sandbox. */
export const perCall: TemplateRules = {
  roots: ["input", "context", "secrets"],
  otherwise: {
    rule: "template-source",
    message: "is no source of values here",
    fix: "use `input`, `context` or `secrets`",
  },
}

/** Where something is made that several calls share: nothing of any one call may be in it. */
export const beforeCalls: TemplateRules = {
  roots: ["secrets"],
  otherwise: {
    rule: "per-call-value",
    message: "belongs to one call, and this is made once for many",
    fix: "pass it with the call's arguments, and keep only `${secrets.NAME}` here",
  },
}

const BARE = /\$\{\s*(?!(?:input|context|secrets)\b)([A-Za-z_][\w-]*)\s*(?=[|}])/g

/** `${aspect}`: a name alone is an input's, in compat mode; whether there is one is seen when the driver is bound. */
function settleBareNames(text: string, path: string, context: Context): string {
  if (context.mode === "strict" || text.length > limits.templateLength) return text
  const settled = text.replaceAll(BARE, "${input.$1 ")
  if (settled !== text)
    context.report.lenient(
      "template-bare-name",
      path,
      `\`${shown(text)}\` names no source of values; read as \`${shown(settled)}\``,
      "write `${input.NAME}`",
    )
  return settled
}

export function readTemplate(text: string, path: string, rules: TemplateRules, context: Context): Template {
  const parsed = parseTemplate(settleBareNames(text, path, context))
  if (!parsed.ok) {
    context.report.error("template-syntax", path, `\`${shown(text)}\`: ${parsed.message}`, parsed.fix)
    return { text, parts: [] }
  }
  for (const part of parsed.parts) {
    if (part.type === "literal") continue
    const named = [
      part.path,
      ...part.filters.flatMap(({ args }) => args.flatMap((arg) => (arg.type === "path" ? [arg.path] : []))),
    ]
    for (const { root } of named)
      if (!rules.roots.includes(root))
        context.report.error(rules.otherwise.rule, path, `\`${root}\` ${rules.otherwise.message}`, rules.otherwise.fix)
  }
  return { text, parts: parsed.parts }
}

export function readTemplates(
  value: JsonValue,
  path: string,
  rules: TemplateRules,
  context: Context,
  depth = 0,
): TemplateTree {
  if (depth > limits.templateDepth) {
    context.report.error(
      "template-depth",
      path,
      `templates may be nested ${limits.templateDepth} levels deep`,
      "make it flatter",
    )
    return { type: "plain", value: null }
  }
  if (typeof value === "string") return { type: "text", ...readTemplate(value, path, rules, context) }
  if (value === null || typeof value !== "object") return { type: "plain", value }
  if (Array.isArray(value))
    return {
      type: "list",
      items: (value as readonly JsonValue[]).map((item, i) =>
        readTemplates(item, joinPath(path, i), rules, context, depth + 1),
      ),
    }
  return {
    type: "object",
    entries: Object.entries(value).map(([key, item]: [string, JsonValue]) => ({
      key,
      value: readTemplates(item, joinPath(path, key), rules, context, depth + 1),
    })),
  }
}

/** The names of secrets that templates anywhere in a value ask for. */
export function secretsIn(value: unknown, found: Set<string> = new Set()): ReadonlySet<string> {
  if (value === null || typeof value !== "object") return found
  const path = value as { readonly root?: unknown; readonly keys?: unknown }
  if (path.root === "secrets" && Array.isArray(path.keys)) found.add(path.keys.join("."))
  for (const item of Object.values(value)) secretsIn(item, found)
  return found
}
