/** Words for what a schema found: one finding per fault, with the rule's stable name and what to write instead. */
import type { ErrorObject } from "ajv"
import { asIn, type FieldShape } from "./field-examples.ts"
import { joinPath, nearest, shown } from "../values/diagnostics.ts"

const noun = (type: unknown): string => {
  const one = Array.isArray(type) ? type.join(" or ") : String(type)
  return one === "object"
    ? "a mapping"
    : one === "array"
      ? "a list"
      : one === "string"
        ? "text"
        : one === "integer"
          ? "a whole number"
          : one === "boolean"
            ? "true or false"
            : `a ${one}`
}

interface Finding {
  readonly rule: string
  readonly path: string
  readonly message: string
  readonly fix: string
}

const fixOf = (error: ErrorObject): unknown => (error.parentSchema as Record<string, unknown> | undefined)?.["x-fix"]

/** The bound that a value misses, in words. */
function bound(keyword: string, limit: unknown): string | undefined {
  const unit = keyword.endsWith("Length")
    ? " characters"
    : keyword.endsWith("Items")
      ? " entries"
      : keyword.endsWith("Properties")
        ? " keys"
        : ""
  if (keyword.startsWith("min")) return `at least ${String(limit)}${unit}`
  return keyword.startsWith("max") ? `at most ${String(limit)}${unit}` : undefined
}

/** The values that a discriminating key may take. */
function tags(schema: Record<string, unknown>, tag: string): string {
  const branches = (Array.isArray(schema["oneOf"]) ? schema["oneOf"] : []) as {
    properties?: Record<string, { const?: unknown; enum?: unknown[] }>
  }[]
  return branches
    .flatMap((branch) => branch.properties?.[tag]?.enum ?? [branch.properties?.[tag]?.const])
    .map(String)
    .join(", ")
}

export function finding(error: ErrorObject, path: string): Finding {
  const params = error.params as Record<string, unknown>
  const schema = (error.parentSchema ?? {}) as Record<string, unknown>
  const fixText = typeof schema["x-fix"] === "string" ? schema["x-fix"] : undefined
  const properties = (schema["properties"] ?? {}) as Readonly<Record<string, FieldShape>>
  const isConfig = schema["x-settings"] === true
  const field = path === "" ? (isConfig ? "the file" : "the front matter") : `\`${path}\``
  switch (error.keyword) {
    case "required": {
      const missing = joinPath(path, String(params["missingProperty"]))
      return {
        rule: "missing-field",
        path: missing,
        message: `\`${missing}\` is missing`,
        fix: `add \`${String(params["missingProperty"])}:\`${asIn(missing, undefined, properties[String(params["missingProperty"])])}`,
      }
    }
    case "additionalProperties": {
      const name = String(params["additionalProperty"])
      const known = Object.keys(properties)
      const near = nearest(name, known)
      if (isConfig)
        return {
          rule: "unknown-key",
          path: joinPath(path, name),
          message: `there is no setting \`${shown(name, 40)}\`${near === undefined ? "" : `; did you mean \`${near}\`?`}`,
          fix: near === undefined ? `known here: ${known.join(", ")}` : `write \`${near}\``,
        }
      return {
        rule: "unknown-key",
        path: joinPath(path, name),
        message: `\`${shown(name, 40)}\` is not a known key here`,
        fix: near === undefined ? "remove it, or move it under `metadata`" : `did you mean \`${near}\`?`,
      }
    }
    case "enum":
    case "const": {
      const allowed = error.keyword === "const" ? [params["allowedValue"]] : (params["allowedValues"] as unknown[])
      const near = typeof error.data === "string" ? nearest(error.data, allowed.map(String)) : undefined
      return {
        rule: "not-one-of",
        path,
        message: `${field} is \`${shown(error.data, 40)}\`; it must be one of ${allowed.map((v) => `\`${String(v)}\``).join(", ")}`,
        fix: near === undefined ? `write \`${String(allowed[0])}\` or another of these` : `write \`${near}\``,
      }
    }
    case "discriminator":
      return {
        rule: "not-one-of",
        path: joinPath(path, String(params["tag"])),
        message: `\`${joinPath(path, String(params["tag"]))}\` is \`${shown(params["tagValue"], 40)}\`, which is not known`,
        fix: `use one of ${tags(schema, String(params["tag"]))}`,
      }
    case "type":
      return {
        rule: "wrong-type",
        path,
        message: `${field} must be ${noun(params["type"])}, not \`${shown(error.data, 40)}\``,
        fix: fixText ?? `write ${noun(params["type"])}${asIn(path, params["type"])}`,
      }
    case "pattern":
      return {
        rule: "bad-value",
        path,
        message: `${field} is \`${shown(error.propertyName ?? error.data, 60)}\`, which has the wrong form`,
        fix: fixText ?? `match ${String(params["pattern"])}${asIn(path)}`,
      }
    case "not":
      return {
        rule: "bad-value",
        path,
        message: `${field} may not be set here`,
        fix: fixText ?? "remove it",
      }
    case "anyOf":
    case "oneOf":
      return {
        rule: "bad-value",
        path,
        message: `${field} has none of the allowed forms: \`${shown(error.data, 60)}\``,
        fix:
          fixText ??
          (typeof schema["description"] === "string"
            ? `write ${schema["description"]}`
            : "use one of the documented forms"),
      }
    default: {
      const wanted = bound(error.keyword, params["limit"])
      const found = typeof error.data === "object" ? "" : ` (found \`${shown(error.data, 40)}\`)`
      return {
        rule: "out-of-range",
        path,
        message: `${field} must ${wanted === undefined ? (error.message ?? "be in range").replace(/^must /, "") : `be ${wanted}`}${found}`,
        fix: fixText ?? (wanted === undefined ? "change it as the message says" : `write ${wanted}`),
      }
    }
  }
}

/**
 * Of a failed `anyOf`, the one message that helps most: faults deeper inside the value; else a branch that knows what
 * to write; else that no form fits. (Branches behind a `$ref` are told by the place in the value they speak of.)
 */
export function telling(errors: readonly ErrorObject[]): ErrorObject[] {
  const skip = new Set<ErrorObject>(errors.filter((e) => e.keyword === "if" || e.keyword === "propertyNames"))
  for (const any of errors.filter((e) => e.keyword === "anyOf" || e.keyword === "oneOf")) {
    const inside = errors.filter((e) => e !== any && e.instancePath.startsWith(any.instancePath))
    const deeper = inside.filter(
      (e) =>
        e.schemaPath.startsWith(any.schemaPath) &&
        (e.instancePath !== any.instancePath || e.keyword === "additionalProperties" || e.keyword === "required"),
    )
    const here = inside.filter((e) => e.instancePath === any.instancePath && !deeper.includes(e))
    const knowing = deeper.length > 0 ? undefined : here.find((e) => typeof fixOf(e) === "string")
    if (deeper.length > 0 || knowing !== undefined) skip.add(any)
    for (const branch of here) if (branch !== knowing) skip.add(branch)
  }
  return errors.filter((e) => !skip.has(e))
}
