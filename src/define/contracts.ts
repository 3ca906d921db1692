/**
 * `defineTool`, `defineAction`, `definePolicy`: contracts and rules from code (AIP-14, 39, 38).
 *
 * Guarantees: what a signature leaves out has the manifest's default, a name that is absent is the id, a version that
 * is absent is 1.0.0, and a tool that mutates and says nothing of approval asks (C-8). Schemas of libraries are kept as
 * JSON Schema alone.
 */
import type { ActionContract, JsonObject, PolicyContract, ToolContract } from "../manifest/types.ts"
import { definer, type Definer, fault, frontOf, make } from "./made.ts"
import { canonicalSchema, type Side } from "./schema.ts"
import type { Keys } from "./spelling.ts"
import type {
  ActionDefinition,
  ActionHandle,
  DefineOptions,
  PolicyDefinition,
  PolicyHandle,
  ToolDefinition,
  ToolHandle,
} from "./types.ts"

const FIRST = "1.0.0"
export const RETRY: Keys = { max_attempts: true, backoff: true, initial_ms: true }

const ACTION: Keys = { target_kind: true, risk_level: true, fires_events: true }
const TOOL: Keys = {
  risk_level: true,
  cost_class: true,
  timeout_ms: true,
  retry: RETRY,
  default_implementation: true,
  driver_constraints: { require_kind: true },
  implements: { inline: ACTION },
}
const POLICY: Keys = {
  grants: { ttl_seconds: true, granted_at: true, granted_by: true },
  limits: { applies_to: true },
  requirements: { applies_to: true },
}

/** The key that manifests have for a schema, with the schema as JSON. */
const schemaAt = (by: Definer, given: Record<string, unknown>, key: string, side: Side): JsonObject | undefined => {
  if (given[key] === undefined) return undefined
  const made = canonicalSchema(given[key], side)
  if (!made.ok) throw fault(by, "schema-refused", key, made.message, made.fix)
  return made.schema
}

const withMetadata = (metadata: unknown, contextSchema: JsonObject | undefined): object =>
  contextSchema === undefined
    ? { metadata }
    : { metadata: { ...(typeof metadata === "object" ? metadata : {}), contextSchema } }

export const defineTool = (definition: ToolDefinition, options: DefineOptions = {}): ToolHandle => {
  const by = definer("defineTool", "tool", definition.id, options)
  const given = definition as unknown as Record<string, unknown>
  if (Object.hasOwn(given, "execute"))
    throw fault(
      by,
      "tool-execute",
      "execute",
      "`execute` does not belong into a tool definition: a tool is a contract without a body (AIP-14)",
      "move it into a driver that implements this tool, as `defineDriver({ …, execute: { [toolId]: … } })` (AIP-30)",
    )
  const { inputSchema: _input, outputSchema: _output, contextSchema: _context, metadata, ...rest } = definition
  const mutates = Array.isArray(rest.mutates) && rest.mutates.length > 0
  const data = {
    name: definition.id,
    version: FIRST,
    inputs: schemaAt(by, given, "inputSchema", "input"),
    outputs: schemaAt(by, given, "outputSchema", "output"),
    ...withMetadata(metadata, schemaAt(by, given, "contextSchema", "input")),
    ...(mutates ? { approval: "on-mutate" } : {}),
    ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined)),
  }
  const made = make<ToolContract>(by, "tool", frontOf(by, data, TOOL))
  return Object.freeze({ ...made, doctype: "tool" as const, id: made.contract.id })
}

export const defineAction = (definition: ActionDefinition, options: DefineOptions = {}): ActionHandle => {
  const by = definer("defineAction", "action", definition.id, options)
  const made = make<ActionContract>(by, "action", frontOf(by, { schema: "action/v1", ...definition }, ACTION))
  return Object.freeze({ ...made, doctype: "action" as const, id: made.contract.id })
}

/** Grants (AIP-38); a rule of AIP-7 is a POLICY.md. */
export const definePolicy = (definition: PolicyDefinition, options: DefineOptions = {}): PolicyHandle => {
  const by = definer("definePolicy", "policy", definition.id ?? "policy", options)
  const made = make<PolicyContract>(by, "policy", frontOf(by, { schema: "policy/v1", ...definition }, POLICY))
  return Object.freeze({ ...made, doctype: "policy" as const, id: made.contract.id })
}
