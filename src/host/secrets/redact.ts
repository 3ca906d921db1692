/**
 * What a program says, without the secrets that it was given: in its value, its messages and what it printed.
 *
 * Guarantees: the value itself, wherever it stands in a text, is overwritten. Does not: find what is derived from it
 * (encoded, cut, reversed), nor values of fewer than six characters, which would be found in everything.
 */
import type { JsonValue } from "../../manifest/types.ts"
import type { Failure, Success } from "../failure.ts"
import type { Secret } from "./secret.ts"

const MASK = "******"
const LEAST = 6

export const withoutSecrets = (outcome: Success | Failure, secrets: readonly Secret[]): Success | Failure => {
  const values = secrets.map((secret) => secret.reveal()).filter((value) => value.length >= LEAST)
  if (values.length === 0) return outcome
  const clean = (text: string): string => values.reduce((left, value) => left.replaceAll(value, MASK), text)
  const visit = (at: JsonValue): JsonValue => {
    if (typeof at === "string") return clean(at)
    if (typeof at !== "object" || at === null) return at
    if (Array.isArray(at)) return (at as readonly JsonValue[]).map(visit)
    return Object.fromEntries(Object.entries(at).map(([key, inner]) => [clean(key), visit(inner as JsonValue)]))
  }
  if (!outcome.ok)
    return { ...outcome, message: clean(outcome.message), details: visit(outcome.details) as Failure["details"] }
  return {
    ...outcome,
    value: visit(outcome.value),
    notes: outcome.notes.map(clean),
    ...(outcome.stderr === undefined ? {} : { stderr: clean(outcome.stderr) }),
  }
}
