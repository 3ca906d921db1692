/**
 * What the templates of one `implements[]` entry can see, and what the contract says of it. Pure.
 *
 * Templates name driver-side keys (C-34): an input that `mapping` renames is known by its new name alone.
 */
import type { Implementation, JsonSchema, ToolContract } from "../../manifest/types.ts"
import { pathText, type TemplatePath } from "../../manifest/templates/template.ts"
import { factsAt, type SchemaFacts } from "./schema-path.ts"

export interface TemplateScope {
  readonly inputs: JsonSchema
  readonly contextSchema?: JsonSchema
  readonly mapping: Implementation["mapping"]
}

/** Of one entry against one contract. */
export const scopeOf = (
  { inputs, contextSchema }: Pick<ToolContract, "inputs" | "contextSchema">,
  { mapping }: Pick<Implementation, "mapping">,
): TemplateScope => ({ inputs, mapping, ...(contextSchema === undefined ? {} : { contextSchema }) })

export interface Finding {
  readonly severity: "error" | "warning"
  readonly rule: string
  readonly message: string
  readonly fix: string
}

/** Where nothing is known of a value. */
export const unsafe: SchemaFacts = { declared: true, always: false, types: "unknown" }

/** Of an input or a value of the context. */
export const factsOfValue = (scope: TemplateScope, path: TemplatePath): SchemaFacts | Finding => {
  const [head = "", ...rest] = path.keys
  if (path.root === "context")
    return scope.contextSchema === undefined ? unsafe : factsAt(scope.contextSchema, path.keys)
  if (Object.hasOwn(scope.mapping, head)) {
    const entry = scope.mapping[head]
    if (entry === undefined || entry.transform !== undefined) return { ...unsafe, always: true }
    const whole = factsAt(scope.inputs, [entry.from, ...rest])
    return whole.declared && whole.types !== "unknown"
      ? whole
      : factsAt(scope.inputs, [...entry.from.split("."), ...rest])
  }
  const renamed = Object.entries(scope.mapping).find(([, entry]) => entry.from === head)
  if (renamed !== undefined) {
    return {
      severity: "error",
      rule: "template-renamed-input",
      message: `\`${pathText(path)}\` is renamed by \`mapping\``,
      fix: `write \`input.${[renamed[0], ...rest].join(".")}\``,
    }
  }
  return factsAt(scope.inputs, path.keys)
}

export const isFinding = (facts: SchemaFacts | Finding): facts is Finding => "rule" in facts

export const unknownValue = (path: TemplatePath): Finding => ({
  severity: "error",
  rule: "template-unknown-value",
  message: `\`${pathText(path)}\` is not in ${path.root === "input" ? "`inputs` of the tool" : "the tool's `contextSchema`"}`,
  fix: "name a declared value, or declare it in the contract",
})
