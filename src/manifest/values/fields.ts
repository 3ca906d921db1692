/** Typed reads of front matter that a schema has already accepted; each gives the stated default for what is absent. */
import type { JsonObject, JsonValue } from "../base-types.ts"

export const isObject = (value: unknown): value is JsonObject =>
  value !== null && typeof value === "object" && !Array.isArray(value)

export const optionalText = (from: JsonObject, key: string): string | undefined => {
  const value = from[key]
  return typeof value === "string" ? value : undefined
}
export const text = (from: JsonObject, key: string): string => optionalText(from, key) ?? ""
export const optionalNumber = (from: JsonObject, key: string): number | undefined => {
  const value = from[key]
  return typeof value === "number" ? value : undefined
}
export const flag = (from: JsonObject, key: string): boolean => from[key] === true
export const object = (from: JsonObject, key: string): JsonObject => {
  const value = from[key]
  return isObject(value) ? value : {}
}
export const optionalObject = (from: JsonObject, key: string): JsonObject | undefined => {
  const value = from[key]
  return isObject(value) ? value : undefined
}
export const list = (from: JsonObject, key: string): readonly JsonValue[] => {
  const value = from[key]
  return Array.isArray(value) ? (value as readonly JsonValue[]) : []
}
export const texts = (from: JsonObject, key: string): readonly string[] =>
  list(from, key).filter((item) => typeof item === "string")
export const objects = (from: JsonObject, key: string): readonly JsonObject[] => list(from, key).filter(isObject)

/** What lies at a dotted path. */
export const valueAt = (from: JsonObject, path: string): JsonValue | undefined =>
  path.split(".").reduce<JsonValue | undefined>((value, key) => (isObject(value) ? value[key] : undefined), from)

/** The object without some keys. */
export const without = (from: JsonObject, keys: readonly string[]): JsonObject =>
  Object.fromEntries(Object.entries(from).filter(([key]) => !keys.includes(key)))

/** Members whose value is undefined are left out, as `exactOptionalPropertyTypes` wants. */
export function defined<T extends object>(
  from: T,
): { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
} {
  return Object.fromEntries(Object.entries(from).filter(([, value]) => value !== undefined)) as ReturnType<
    typeof defined<T>
  >
}
