/**
 * Front matter and config files against our own schemas in `schemas/`, with messages that their author can act on.
 *
 * Guarantees: every fault names the field path, what is wrong and what to write. The schemas are read once, from the
 * package itself, when first needed.
 * Assumes: front matter within the size limits, so that reporting all faults at once stays cheap.
 */
import { readFileSync } from "node:fs"
import type * as Ajv from "ajv/dist/2020.js"
import type { ErrorObject, ValidateFunction } from "ajv"
import { joinPath } from "../values/diagnostics.ts"
import type { Report } from "../values/diagnostics.ts"
import { onDemand } from "./on-demand.ts"
import { finding, telling } from "./shape-messages.ts"
import type { JsonObject, JsonValue } from "../base-types.ts"

const ajv = onDemand<typeof Ajv>("ajv/dist/2020.js")

export const SHAPES = [
  "tool",
  "driver",
  "driver-cli",
  "driver-http",
  "driver-mcp",
  "driver-sdk",
  "driver-builtin",
  "cli",
  "secrets",
  "auth",
  "action",
  "policy-grants",
  "policy-governance",
  "runner",
  "sandbox",
  "install",
  "config",
  "egress-policy",
] as const
export type ShapeName = (typeof SHAPES)[number]

/** One schema file of ours as data. */
export function ownSchema(name: ShapeName | "common" | "envelope" | "audit-event"): JsonObject {
  return JSON.parse(
    readFileSync(new URL(`../../../schemas/${name}.schema.json`, import.meta.url), "utf8"),
  ) as JsonObject
}

let shared: Ajv.Ajv2020 | undefined
const validators = new Map<ShapeName, ValidateFunction>()

function validator(name: ShapeName): ValidateFunction {
  const known = validators.get(name)
  if (known !== undefined) return known
  if (shared === undefined) {
    shared = new (ajv().Ajv2020)({
      strict: false,
      allErrors: true,
      verbose: true,
      discriminator: true,
      ownProperties: true,
      validateSchema: false,
      logger: false,
      code: { optimize: false },
    })
    shared.addSchema(ownSchema("common"))
    shared.addSchema(ownSchema("driver"))
  }
  const compiled = shared.getSchema(`urn:caisson:schema:${name}:1`) ?? shared.compile(ownSchema(name))
  validators.set(name, compiled)
  return compiled
}

function fieldPath(error: ErrorObject, front: JsonValue): string {
  let path = ""
  let at: unknown = front
  for (const part of error.instancePath.split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~")
    path = joinPath(path, Array.isArray(at) ? Number(key) : key)
    at = at !== null && typeof at === "object" ? (at as Record<string, unknown>)[key] : undefined
  }
  return error.propertyName === undefined ? path : joinPath(path, error.propertyName)
}

const under = (base: string, path: string): string =>
  base === "" ? path : path === "" ? base : path.startsWith("[") ? `${base}${path}` : `${base}.${path}`

/** True when the block, which stands at `base`, has the shape; otherwise the report got at least one error. */
export function checkShape(name: ShapeName, front: JsonValue, report: Report, base = ""): boolean {
  const validate = validator(name)
  if (validate(front)) return true
  const errors = validate.errors ?? []
  const said = telling(errors)
  for (const error of said.length > 0 ? said : errors) {
    const { rule, path, message, fix } = finding(error, under(base, fieldPath(error, front)))
    report.error(rule, path, message, fix)
  }
  return false
}
