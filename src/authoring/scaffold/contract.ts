/** The contract of a tool that was asked for. Pure. */
import type { JsonObject, JsonValue } from "../../manifest/base-types.ts"
import type { ScaffoldAnswers, ScaffoldInput } from "./answers.ts"

const types: Readonly<Record<ScaffoldInput["type"], JsonObject>> = {
  text: { type: "string", minLength: 1, maxLength: 10_000 },
  path: { type: "string", format: "workspace-path", minLength: 1, maxLength: 1024 },
  integer: { type: "integer" },
  number: { type: "number" },
  boolean: { type: "boolean" },
  any: {},
}

const nameOf = (tool: string): string => {
  const words = tool.replaceAll(/[.-]+/g, " ")
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`.slice(0, 80)
}

/** `workspace:/notes/**` of `notes/**`. */
const scopeOf = (glob: string): string => `workspace:/${glob.replace(/^(?:\.?\/)+/, "")}`

export interface ContractParts {
  readonly outputs: JsonObject
  readonly external?: string
  readonly examples?: readonly JsonObject[]
}

export const contractOf = (
  { tool, description, write, hosts }: ScaffoldAnswers,
  inputs: readonly ScaffoldInput[],
  { outputs, external, examples = [] }: ContractParts,
): JsonObject => {
  const mutates = [...write.map(scopeOf), ...(external === undefined ? [] : [`external:${external}`])]
  const properties: Record<string, JsonValue> = Object.fromEntries(inputs.map(({ name, type }) => [name, types[type]]))
  return {
    name: nameOf(tool),
    id: tool,
    description,
    version: "1.0.0",
    inputs: {
      type: "object",
      additionalProperties: false,
      required: inputs.map(({ name }) => name),
      properties,
    },
    outputs,
    mutates,
    requires: { network: [...hosts] },
    approval: mutates.length === 0 ? "auto" : "on-mutate",
    risk_level: mutates.length === 0 ? 0 : 1,
    timeout_ms: 60_000,
    ...(examples.length === 0 ? {} : { examples: [...examples] }),
  }
}
