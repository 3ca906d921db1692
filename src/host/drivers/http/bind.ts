/** One entry of an http driver against one contract: its templates name what the contract declares, or it is refused. */
import type { TemplateTree } from "../../../manifest/templates/template-tree.ts"
import type { DriverContract, Implementation, ToolContract } from "../../../manifest/types.ts"
import { scopeOf } from "../../invoke/template-scope.ts"
import { checkTree } from "../../invoke/template-tree.ts"
import type { BoundEntry } from "../kind.ts"

export const bind = (
  driver: DriverContract,
  index: number,
  tool: ToolContract,
  implementation: Implementation,
): BoundEntry => {
  const path = `implements[${index}].metadata.http`
  const { file } = driver.source
  const { http } = implementation
  if (http === undefined)
    return {
      binding: { tool, implementation, needs: [] },
      diagnostics: [
        {
          severity: "error",
          rule: "http-no-endpoint",
          file,
          path,
          message: "the entry does not say what is asked of the service",
          fix: "add `metadata: { http: { endpoint: /path, method: GET } }` to it",
        },
      ],
    }
  const scope = scopeOf(tool, implementation)
  const trees: readonly (readonly [string, TemplateTree])[] = [
    ["endpoint", { type: "text", ...http.endpoint }],
    ...http.headers.map(({ name, value }) => [`headers.${name}`, { type: "text", ...value }] as const),
    ...http.query.map(({ name, value }) => [`query_template.${name}`, value] as const),
    ...(http.body === undefined ? [] : [["body_template", http.body] as const]),
  ]
  const checked = trees.map(([field, tree]) => checkTree(tree, scope, { file, path: `${path}.${field}` }))
  return {
    binding: { tool, implementation, needs: checked.flatMap(({ needs }) => needs) },
    diagnostics: checked.flatMap(({ diagnostics }) => diagnostics),
  }
}
