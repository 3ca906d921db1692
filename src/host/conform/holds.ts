/**
 * An envelope against what was expected of it: the faults, a line each. Pure.
 *
 * Guarantees: every expectation that does not hold is told, with what came instead, cut to its limit. Whoever expects no
 * error gets none for a call that ended well and a fault for any other.
 */
import { isDeepStrictEqual } from "node:util"
import { shown } from "../../manifest/values/diagnostics.ts"
import { isObject } from "../../manifest/values/fields.ts"
import { matches, parseGlob, parseWorkspacePath } from "../../manifest/values/globs.ts"
import { effectWords } from "../../manifest/kinds/conform.ts"
import { compileSchema } from "../../manifest/schema/json-schema.ts"
import { compilePattern } from "../../manifest/schema/pattern.ts"
import type { JsonValue } from "../../manifest/types.ts"
import type { CallError, Envelope, ReportedEffect } from "../types.ts"
import { shownChars } from "./limits.ts"
import type { Expected } from "./types.ts"

const told = (value: unknown): string => shown(JSON.stringify(value) ?? "nothing", shownChars)

/** Where two values part first: `items[2].name`. */
const differenceAt = (wanted: JsonValue, got: JsonValue, at = ""): string => {
  if (Array.isArray(wanted) && Array.isArray(got)) {
    const i = wanted.findIndex((item, index) => !isDeepStrictEqual(item, got[index]))
    return i < 0 || i >= got.length ? at : differenceAt(wanted[i] as JsonValue, got[i] as JsonValue, `${at}[${i}]`)
  }
  if (isObject(wanted) && isObject(got)) {
    const key = Object.keys({ ...wanted, ...got }).find((name) => !isDeepStrictEqual(wanted[name], got[name]))
    if (key === undefined || !Object.hasOwn(wanted, key) || !Object.hasOwn(got, key))
      return key === undefined ? at : `${at}.${key}`
    return differenceAt(wanted[key] as JsonValue, got[key] as JsonValue, `${at}.${key}`)
  }
  return at
}

const valueFaults = (expected: Expected, value: JsonValue): readonly string[] => {
  const faults: string[] = []
  if (expected.output !== undefined && !isDeepStrictEqual(expected.output.value, value)) {
    const at = differenceAt(expected.output.value, value)
    const where = at === "" ? "" : ` (they part at ${shown(at.replace(/^\./, ""), 200)})`
    faults.push(`the output is another${where}: expected ${told(expected.output.value)}, got ${told(value)}`)
  }
  if (expected.pattern !== undefined) {
    const compiled = compilePattern(expected.pattern)
    const subject = typeof value === "string" ? value : JSON.stringify(value)
    if (!compiled.ok) faults.push(`the pattern cannot be used: ${compiled.message}`)
    else if (!compiled.pattern.test(subject))
      faults.push(`the output does not match the pattern ${told(expected.pattern)}: got ${told(value)}`)
  }
  if (expected.schema !== undefined) {
    const compiled = compileSchema(expected.schema)
    const validation = compiled.ok ? compiled.validate(value) : undefined
    if (!compiled.ok) faults.push(`the schema cannot be used: ${compiled.message}`)
    else if (validation?.ok === false)
      for (const { path, message } of validation.errors.slice(0, 10))
        faults.push(`the output does not match the schema: ${path === "" ? "it" : path} ${message}`)
  }
  return faults
}

const fits = (wanted: string, { kind, path }: ReportedEffect): boolean => {
  const words = effectWords(wanted)
  const glob = parseGlob(words.path)
  const parsed = parseWorkspacePath(path)
  return words.kind === kind && glob.ok && parsed.ok && matches(glob.glob, parsed.path)
}

const effectFaults = (wanted: readonly string[], effects: readonly ReportedEffect[]): readonly string[] => [
  ...wanted
    .filter((effect) => !effects.some((each) => fits(effect, each)))
    .map((effect) => `an expected effect is missing: ${told(effect)}`),
  ...effects
    .filter((each) => !wanted.some((effect) => fits(effect, each)))
    .map(({ kind, path }) => `an effect was not expected: ${told(`${kind} ${path}`)}`),
]

const errorText = ({ code, message, hint }: CallError): string =>
  `${code}: ${shown(message, shownChars)}${hint === "" ? "" : ` (${shown(hint, shownChars)})`}`

export const faultsOf = (expected: Expected, envelope: Envelope): readonly string[] => {
  const { error, effects } = expected
  const ofEffects = effects === undefined ? [] : effectFaults(effects, envelope.effects)
  if (envelope.ok) {
    if (error === undefined) return [...valueFaults(expected, envelope.value), ...ofEffects]
    return [`it ended well, where ${told(error)} was expected: got ${told(envelope.value)}`, ...ofEffects]
  }
  if (error === envelope.error.code) return ofEffects
  const instead = error === undefined ? "" : `, where ${told(error)} was expected`
  return [`it ended as ${errorText(envelope.error)}${instead}`, ...ofEffects]
}
