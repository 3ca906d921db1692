/** What an argument of a prompt, or a part of a resource's address, may be: what the contract's input says. Pure. */
import type { CompleteResult } from "@modelcontextprotocol/server"
import type { JsonSchema, JsonValue } from "../../manifest/types.ts"
import { mcpLimits } from "../limits.ts"
import type { Entry } from "./catalogue.ts"
import { inputsOf } from "./shown.ts"

const listed = (value: JsonValue | undefined): readonly JsonValue[] =>
  Array.isArray(value) ? (value as JsonValue[]) : []

const known = (schema: JsonSchema): readonly string[] =>
  [...listed(schema["enum"]), ...listed(schema["examples"])].filter(
    (value): value is string => typeof value === "string",
  )

export const complete = (entry: Entry | undefined, argument: string, begun: string): CompleteResult => {
  const inputs = entry === undefined ? {} : inputsOf(entry.contract)
  const schema = Object.hasOwn(inputs, argument) ? inputs[argument] : undefined
  const fits = schema === undefined ? [] : [...new Set(known(schema))].filter((value) => value.startsWith(begun))
  const values = fits.slice(0, mcpLimits.completions.value)
  return { completion: { values, total: fits.length, hasMore: fits.length > values.length } }
}
