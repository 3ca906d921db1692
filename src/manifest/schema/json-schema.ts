/**
 * Foreign JSON Schemas (`inputs`, `outputs`, `contextSchema`) → validators that cannot hang.
 *
 * Guarantees: compiling refuses what schema-check.ts refuses and never fetches (code is generated at the first use); patterns run under RE2; one
 * validation takes at most `limits.validationSteps` visits of subschemas and `limits.patternWork` of
 * matching, and values deeper or larger than the limits are refused before the first step, so no worker or deadline
 * is needed around it. Running out of budget is a refusal, never a pass. Inherited properties do not count.
 * Every fault of a value of ordinary size is told, with the nearest known key; of a large one the first.
 * Does not: fill in defaults or convert types.
 */
import type * as Ajv from "ajv/dist/2020.js"
import type { ErrorObject, ValidateFunction } from "ajv"
import type * as Formats from "ajv-formats/dist/formats.js"
import { jcs } from "../values/digest.ts"
import { joinPath, nearest, shown } from "../values/diagnostics.ts"
import { limits } from "../limits.ts"
import { onDemand } from "./on-demand.ts"
import { compilePattern } from "./pattern.ts"
import { checkSchema } from "./schema-check.ts"
import type { SchemaFault } from "./schema-check.ts"
import { metered } from "./schema-meter.ts"

const ajv = onDemand<typeof Ajv>("ajv/dist/2020.js")
const ajvFormats = onDemand<typeof Formats>("ajv-formats/dist/formats.js")

export interface ValueFault {
  /** dotted path into the value; empty for the whole value */
  readonly path: string
  readonly message: string
}
export type Validation = { readonly ok: true } | { readonly ok: false; readonly errors: readonly ValueFault[] }
export type CompiledSchema =
  | { readonly ok: true; validate(value: unknown): Validation }
  | ({ readonly ok: false } & SchemaFault)

/** Thrown out of a running validation when its budget is spent; never leaves this file. */
class BudgetSpent extends Error {}

const budget = { steps: 0, work: 0 }

function step(weight: number): boolean {
  budget.steps -= weight
  if (budget.steps < 0) throw new BudgetSpent()
  return true
}

function spendWork(cost: number): void {
  budget.work -= cost
  if (budget.work < 0) throw new BudgetSpent()
}

const regExp = Object.assign(
  (source: string) => {
    const compiled = compilePattern(source)
    if (!compiled.ok) throw new Error(compiled.message)
    const { pattern } = compiled
    return {
      // Ajv tells patterns apart by this text
      toString: () => `/${source}/u`,
      test(subject: string): boolean {
        spendWork(pattern.cost(subject.length))
        return pattern.test(subject)
      },
    }
  },
  { code: "" },
)

const FORMATS = [
  "date-time",
  "date",
  "time",
  "duration",
  "uri",
  "uri-reference",
  "email",
  "hostname",
  "ipv4",
  "ipv6",
  "uuid",
  "json-pointer",
] as const

function formatCheck(name: (typeof FORMATS)[number]): (text: string) => boolean {
  const format: unknown = ajvFormats().fullFormats[name]
  const inner = (text: string): boolean => {
    if (format instanceof RegExp) return format.test(text)
    if (typeof format === "function") return Boolean((format as (t: string) => unknown)(text))
    const { validate } = format as { validate: RegExp | ((t: string) => boolean) }
    return validate instanceof RegExp ? validate.test(text) : validate(text)
  }
  return (text) => text.length <= limits.formatLength && inner(text)
}

let formats: Readonly<Record<string, (text: string) => boolean>> | undefined

const formatChecks = (): Record<string, (text: string) => boolean> => ({
  ...(formats ??= {
    ...Object.fromEntries(FORMATS.map((name) => [name, formatCheck(name)])),
    regex: (text) => compilePattern(text).ok,
  }),
})

function areUnique(items: readonly unknown[]): boolean {
  const seen = new Set<string>()
  for (const item of items) {
    const text = jcs(item)
    step(1 + (text.length >> 6))
    if (seen.has(text)) return false
    seen.add(text)
  }
  return true
}

function engine(all: boolean): Ajv.Ajv2020 {
  const made = new (ajv().Ajv2020)({
    strict: false,
    allErrors: all,
    verbose: all,
    ownProperties: true,
    inlineRefs: false,
    meta: false,
    validateSchema: false,
    addUsedSchema: false,
    logger: false,
    messages: true,
    code: { regExp, optimize: false },
    formats: formatChecks(),
  })
  made.addKeyword({
    keyword: "x-step",
    schemaType: "number",
    errors: false,
    validate: (weight: number) => step(weight),
    before: "$ref",
  })
  made.removeKeyword("uniqueItems")
  made.addKeyword({
    keyword: "uniqueItems",
    type: "array",
    schemaType: "boolean",
    error: { message: "must not hold the same item twice" },
    validate: (on: boolean, items: readonly unknown[]) => !on || areUnique(items),
  })
  return made
}

/** Nodes and depth of a value, without recursion; the number of its nodes where it is not too big. */
function sizeOf(value: unknown): ValueFault | number {
  let nodes = 0
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > limits.valueDepth) return { path: "", message: `is nested deeper than ${limits.valueDepth} levels` }
    nodes += level.length
    if (nodes > limits.valueNodes) return { path: "", message: `has more than ${limits.valueNodes} values` }
    const next: unknown[] = []
    for (const item of level)
      if (item !== null && typeof item === "object") for (const child of Object.values(item)) next.push(child)
    level = next
  }
  return nodes
}

/** With the key that was probably meant, or those that there are. */
function unknownKey(path: string, key: string, schema: object | undefined): ValueFault {
  const properties = (schema as { readonly properties?: unknown } | undefined)?.properties
  const known = properties !== null && typeof properties === "object" ? Object.keys(properties) : []
  const near = nearest(key, known)
  const names = known.slice(0, 12).map((name) => `\`${shown(name, 40)}\``)
  const help =
    near !== undefined
      ? `; did you mean \`${shown(near, 40)}\`?`
      : names.length > 0
        ? `; known are ${names.join(", ")}${known.length > names.length ? ", …" : ""}`
        : ""
  return { path: joinPath(path, key), message: `is not a known property${help}` }
}

const alternatives = (error: ErrorObject): boolean => error.keyword === "anyOf" || error.keyword === "oneOf"

/** Of alternatives that all fail, what the first one misses; each fault once. */
function tell(errors: readonly ErrorObject[], value: unknown): readonly ValueFault[] {
  const choices = errors.filter(alternatives).map((error) => error.schemaPath)
  const isTold = (error: ErrorObject): boolean =>
    !choices.some((choice) =>
      error.schemaPath === choice
        ? errors.some((other) => other.schemaPath.startsWith(`${choice}/0/`))
        : error.schemaPath.startsWith(`${choice}/`) && !error.schemaPath.startsWith(`${choice}/0/`),
    )
  const faults = errors.filter(isTold).map((error) => fault(error, value))
  return [...new Map(faults.map((each) => [`${each.path} ${each.message}`, each])).values()].slice(0, limits.allFaults)
}

function fault(error: ErrorObject, value: unknown): ValueFault {
  let path = ""
  let at: unknown = value
  for (const part of error.instancePath.split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~")
    path = joinPath(path, Array.isArray(at) ? Number(key) : key)
    at = at !== null && typeof at === "object" ? (at as Record<string, unknown>)[key] : undefined
  }
  const params = error.params as Record<string, unknown>
  switch (error.keyword) {
    case "required":
    case "dependentRequired":
      return { path: joinPath(path, shown(params["missingProperty"])), message: "is missing" }
    case "additionalProperties":
    case "unevaluatedProperties":
      return unknownKey(path, shown(params["additionalProperty"] ?? params["unevaluatedProperty"]), error.parentSchema)
    case "enum":
      return {
        path,
        message: `must be one of ${shown((params["allowedValues"] as unknown[]).map((v) => JSON.stringify(v)).join(", "), 200)}`,
      }
    case "const":
      return { path, message: `must be ${shown(params["allowedValue"])}` }
    default:
      return { path, message: shown(error.message ?? "does not match the schema", 200) }
  }
}

/** Within a budget of its own; where that is spent, none. */
function everyFault(validate: ValidateFunction, value: unknown): readonly ValueFault[] {
  budget.steps = limits.validationSteps
  budget.work = limits.patternWork
  try {
    return validate(value) ? [] : tell(validate.errors ?? [], value)
  } catch (error) {
    if (error instanceof BudgetSpent || error instanceof RangeError) return []
    throw error
  } finally {
    validate.errors = null
  }
}

function run(validate: ValidateFunction, value: unknown, thorough: () => ValidateFunction): Validation {
  const size = sizeOf(value)
  if (typeof size !== "number") return { ok: false, errors: [size] }
  budget.steps = limits.validationSteps
  budget.work = limits.patternWork
  try {
    if (validate(value)) return { ok: true }
    const first = validate.errors?.[0]
    const one = first === undefined ? { path: "", message: "does not match the schema" } : fault(first, value)
    const all = size > limits.allFaultNodes ? [] : everyFault(thorough(), value)
    return { ok: false, errors: all.length === 0 ? [one] : all }
  } catch (error) {
    if (error instanceof BudgetSpent || error instanceof RangeError) {
      return { ok: false, errors: [{ path: "", message: "takes too many steps to check against the schema" }] }
    }
    throw error
  } finally {
    validate.errors = null
  }
}

const compiled = new WeakMap<object, CompiledSchema>()

function build(schema: unknown): CompiledSchema {
  const checked = checkSchema(schema)
  if (!checked.ok) return { ok: false, ...checked.fault }
  let validate: ValidateFunction | undefined
  let thorough: ValidateFunction | undefined
  const compile = (all: boolean): ValidateFunction =>
    engine(all).compile(metered(checked.schema, false).copy as Record<string, unknown>)
  return {
    ok: true,
    validate(value) {
      try {
        validate ??= compile(false)
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error)
        return {
          ok: false,
          errors: [{ path: "", message: `cannot be checked: the schema does not compile (${shown(why, 120)})` }],
        }
      }
      return run(validate, value, () => (thorough ??= compile(true)))
    },
  }
}

/** Compile once per schema object; contracts are frozen, so the validator stays right. */
export function compileSchema(schema: unknown): CompiledSchema {
  if (schema === null || typeof schema !== "object") return build(schema)
  const known = compiled.get(schema)
  if (known !== undefined) return known
  const result = build(schema)
  if (Object.isFrozen(schema)) compiled.set(schema, result)
  return result
}
