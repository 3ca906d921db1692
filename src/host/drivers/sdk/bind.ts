/**
 * One entry of an sdk driver against one contract: its templates name what the contract declares, or the entry is refused.
 *
 * Guarantees: every value that the arguments name is declared; the signal of an early end, `${context.signal}`, and the
 * function that asks for another tool, `${context.call}`, are values that no contract has to declare.
 */
import type { TemplateTree } from "../../../manifest/templates/template-tree.ts"
import type { DriverContract, Implementation, SdkArguments, ToolContract } from "../../../manifest/types.ts"
import { scopeOf } from "../../invoke/template-scope.ts"
import { type CheckedTree, checkTree } from "../../invoke/template-tree.ts"
import type { BoundEntry } from "../kind.ts"

type Keys = readonly (string | number)[]

type Ours = "signal" | "call"

const stands = (tree: TemplateTree, what: Ours): boolean => {
  if (tree.type !== "text" || tree.parts.length !== 1) return false
  const [part] = tree.parts
  return part?.type === "value" && part.path.root === "context" && part.path.keys.join(".") === what
}

const placesIn = (tree: TemplateTree, at: Keys, what: Ours): readonly Keys[] => {
  if (stands(tree, what)) return [at]
  if (tree.type === "list") return tree.items.flatMap((item, index) => placesIn(item, [...at, index], what))
  return tree.type === "object" ? tree.entries.flatMap(({ key, value }) => placesIn(value, [...at, key], what)) : []
}

/** Each argument as it stands in the call: by position, or as one object. */
export const treesOf = (args: SdkArguments): readonly TemplateTree[] => {
  if (args.style === "input") return []
  return args.style === "positional" ? args.values : [args.value]
}

/** Where in the arguments the signal of an early end, or the function that asks for another tool, is wanted. */
export const placesOf = (args: SdkArguments, what: Ours): readonly Keys[] =>
  treesOf(args).flatMap((tree, index) => placesIn(tree, [index], what))

export const bind = (
  driver: DriverContract,
  index: number,
  tool: ToolContract,
  implementation: Implementation,
): BoundEntry => {
  const args = implementation.sdk?.arguments ?? { style: "input" }
  const scope = scopeOf(tool, implementation)
  const place = (i: number): string =>
    `implements[${index}].metadata.sdk.args_template${args.style === "positional" ? `._${i}` : ""}`
  const checked = treesOf(args).map((tree, i): CheckedTree => {
    const found = checkTree(tree, scope, { file: driver.source.file, path: place(i) })
    const isOurs = ({ rule, message }: { rule: string; message: string }): boolean =>
      rule === "template-unknown-value" && /^`context\.(signal|call)`/.test(message)
    return { ...found, diagnostics: found.diagnostics.filter((diagnostic) => !isOurs(diagnostic)) }
  })
  return {
    binding: { tool, implementation, needs: checked.flatMap(({ needs }) => needs) },
    diagnostics: checked.flatMap(({ diagnostics }) => diagnostics),
  }
}
