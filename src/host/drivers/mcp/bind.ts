/** One entry of an mcp driver against one contract: what it passes on must be there to be passed on. */
import { shown } from "../../../manifest/values/diagnostics.ts"
import type { Diagnostic, JsonObject } from "../../../manifest/types.ts"
import type { DriverKindModule } from "../kind.ts"

/** The driver's own names for what a contract's call can hold. */
const inputNames = (inputs: JsonObject, mapping: Readonly<Record<string, { readonly from: string }>>): Set<string> => {
  const { properties } = inputs
  const known = typeof properties === "object" && properties !== null ? Object.keys(properties) : []
  const renamed = new Set(Object.values(mapping).map(({ from }) => from))
  return new Set([...known.filter((name) => !renamed.has(name)), ...Object.keys(mapping)])
}

export const bind: DriverKindModule["bind"] = (driver, index, tool, implementation) => {
  const names = inputNames(tool.inputs, implementation.mapping)
  const isOpen = tool.inputs["additionalProperties"] !== false
  const diagnostics = (implementation.mcp?.arguments ?? [])
    .filter(({ input }) => !isOpen && !names.has(input))
    .map(
      ({ input }): Diagnostic => ({
        severity: "error",
        rule: "mapping-unknown",
        file: driver.source.file,
        path: `implements[${index}].metadata.mcp.argument_mapping.${input}`,
        message: `\`${shown(input, 60)}\` is not an input of \`${tool.id}\``,
        fix: `use one of ${[...names].join(", ") || "its inputs (it has none)"}`,
      }),
    )
  return { binding: { tool, implementation, needs: [] }, diagnostics }
}
