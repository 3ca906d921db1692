/**
 * Fields whose value is not of the form that is read: refused by name, never passed over, because what would be
 * lost is a limit, a date or a name that somebody counts on. Pure.
 */
import type { JsonObject, JsonValue } from "../base-types.ts"
import type { Report } from "../values/diagnostics.ts"
import { shown } from "../values/diagnostics.ts"
import { isObject, valueAt } from "../values/fields.ts"

type Form = (value: JsonValue) => boolean

export const isText: Form = (value) => typeof value === "string"
export const isListOf =
  (each: Form): Form =>
  (value) =>
    Array.isArray(value) && (value as readonly JsonValue[]).every(each)
export const isTexts: Form = isListOf(isText)
export const isTextOrTexts: Form = (value) => isText(value) || isTexts(value)
export const isMap: Form = isObject
export const isMapOf =
  (each: Form): Form =>
  (value) =>
    isObject(value) && Object.values(value).every(each)
export const isCount: Form = (value) => typeof value === "number" && Number.isInteger(value) && value >= 1
export const isDuration: Form = (value) => typeof value === "number" && Number.isFinite(value) && value >= 0
export const isStatuses: Form = isListOf((each) => typeof each === "number" && each >= 100 && each <= 599)
export const isOneOf =
  (...known: readonly JsonValue[]): Form =>
  (value) =>
    known.includes(value)

/** dotted path, its form, what to write */
export type FormRow = readonly [path: string, is: Form, fix: string]

export const checkForms = (front: JsonObject, rows: readonly FormRow[], rule: string, report: Report): void => {
  for (const [path, is, fix] of rows) {
    const value = valueAt(front, path)
    if (value !== undefined && value !== null && !is(value))
      report.error(rule, path, `\`${shown(value, 60)}\` is no form of \`${path}\` that is read`, fix)
  }
}
