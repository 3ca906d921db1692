/**
 * A contract's input → the driver's input (C-34): the mapping's key is the driver's side, `from` the contract's.
 *
 * Guarantees: pure; inputs that no mapping names go through under their own name; a mapped input goes only under its
 * driver-side name; an absent input stays absent. Unknown transforms are refused at registration.
 * Does not: validate the result, nor run a driver's own transforms: what they are for comes through as it is, and
 * `call/transform.ts` has them run.
 */
import type { Implementation, JsonObject, JsonSchema, JsonValue } from "../../manifest/types.ts"
import { factsAt } from "./schema-path.ts"

type Transform = (value: JsonValue) => JsonValue | undefined
const scalar = (value: JsonValue): string | undefined => (typeof value === "object" ? undefined : String(value))
const text =
  (change: (value: string) => string): Transform =>
  (value) =>
    typeof value === "string" ? change(value) : undefined

/** The named transformers. Each gives undefined for a value it does not take. */
const transforms: Readonly<Record<string, Transform>> = Object.freeze({
  to_string: scalar,
  to_number: (value) =>
    typeof value === "string" && value.trim() !== "" && Number.isFinite(Number(value))
      ? Number(value)
      : typeof value === "number"
        ? value
        : undefined,
  to_json: (value) => JSON.stringify(value),
  lowercase: text((value) => value.toLowerCase()),
  uppercase: text((value) => value.toUpperCase()),
  trim: text((value) => value.trim()),
  join_comma: (value) =>
    Array.isArray(value) && value.every((item) => scalar(item) !== undefined) ? value.map(scalar).join(",") : undefined,
} satisfies Record<string, Transform>)

export const transformNames: readonly string[] = Object.freeze(Object.keys(transforms))
export const isTransform = (name: string): boolean => Object.hasOwn(transforms, name)

/** `from` is an input's name, or a dotted path into one. */
const valueAt = (input: JsonObject, from: string): JsonValue | undefined => {
  let at: JsonValue | undefined = input
  for (const key of Object.hasOwn(input, from) ? [from] : from.split(".")) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return undefined
    at = (at as JsonObject)[key]
  }
  return at
}

type MappedInput =
  | { readonly ok: true; readonly input: JsonObject }
  | { readonly ok: false; readonly field: string; readonly problem: string }

/** `own`: transforms of any other name are the driver's own. */
export const mapInput = (mapping: Implementation["mapping"], input: JsonObject, own = false): MappedInput => {
  const renamed = new Set(Object.values(mapping).map((entry) => entry.from))
  const mapped = new Map<string, JsonValue>(Object.entries(input).filter(([key]) => !renamed.has(key)))
  for (const [key, { from, transform }] of Object.entries(mapping)) {
    const value = valueAt(input, from)
    if (value === undefined) continue
    if (transform === undefined || (own && !isTransform(transform))) {
      mapped.set(key, value)
      continue
    }
    const change = Object.hasOwn(transforms, transform) ? transforms[transform] : undefined
    const changed = change?.(value)
    if (changed === undefined) {
      const problem =
        change === undefined ? `there is no transform \`${transform}\`` : `\`${transform}\` does not take its value`
      return { ok: false, field: from, problem }
    }
    mapped.set(key, changed)
  }
  return { ok: true, input: Object.fromEntries(mapped) }
}

/** What a driver's own function makes of a value: under which name, and of which input. */
export interface OwnTransform {
  readonly key: string
  readonly from: string
  readonly transform: string
}
export const ownTransforms = (mapping: Implementation["mapping"]): readonly OwnTransform[] =>
  Object.entries(mapping).flatMap(([key, { from, transform }]) =>
    transform === undefined || isTransform(transform) ? [] : [{ key, from, transform }],
  )

/** With the contract's default for what such a function is to be given and the caller left out. */
export const withOwnDefaults = (
  inputs: JsonSchema,
  mapping: Implementation["mapping"],
  input: JsonObject,
): JsonObject => ({
  ...Object.fromEntries(
    ownTransforms(mapping).flatMap(({ from }) => {
      const { default: value } = factsAt(inputs, [from])
      return value === undefined ? [] : [[from, value]]
    }),
  ),
  ...input,
})
