/**
 * The input of a call as a driver gets it that takes it whole, without templates: with the contract's `default` where the
 * caller gave nothing.
 *
 * Guarantees: pure; what the caller gave is never replaced, and an input that the driver does not take is not added. A
 * caller therefore means the same by leaving an input out, whatever kind of driver serves the call.
 * Does not: fill in below the first level, nor check a default against its own schema.
 */
import type { Implementation, JsonObject, ToolContract } from "../../manifest/types.ts"
import { mapInput } from "./mapping.ts"
import { dereference, factsAt, isObject } from "./schema-path.ts"

/** The contract's defaults, under the driver's names. */
const defaultsOf = (
  { inputs }: Pick<ToolContract, "inputs">,
  { mapping, dropInputs }: Pick<Implementation, "mapping" | "dropInputs">,
): JsonObject => {
  const properties = dereference(inputs, inputs)?.["properties"]
  if (!isObject(properties)) return {}
  const named = Object.keys(properties).filter((name) => !dropInputs.includes(name))
  const entries = named.flatMap((name) => {
    const { default: value } = factsAt(inputs, [name])
    if (value === undefined) return []
    const own = Object.fromEntries(Object.entries(mapping).filter(([, { from }]) => from === name))
    const mapped = mapInput(own, Object.fromEntries([[name, value]]))
    return mapped.ok ? Object.entries(mapped.input) : []
  })
  return Object.fromEntries(entries)
}

interface Taken {
  readonly tool: Pick<ToolContract, "inputs">
  readonly binding: { readonly implementation: Pick<Implementation, "mapping" | "dropInputs"> }
  /** valid against the contract, under the driver's names */
  readonly input: JsonObject
}

export const wholeInput = ({ tool, binding, input }: Taken): JsonObject => ({
  ...defaultsOf(tool, binding.implementation),
  ...input,
})
