/**
 * What a program says, without the secrets that it was given: in its value, its messages and what it printed, and in what
 * is told of it while it runs.
 *
 * Guarantees: the value itself, wherever it stands in a text, is overwritten; in what it prints however that is cut, at the
 * price of a few bytes that wait for the next. Does not: find what is derived from it (cut, reversed), nor values of fewer
 * than six characters, which would be found in everything.
 */
import { pipeline, type Readable, Transform } from "node:stream"
import { createScrubber, spellingsOf } from "../../egress-proxy/secrets/scrub.ts"
import type { JsonValue } from "../../manifest/types.ts"
import type { Tell } from "../events.ts"
import type { Failure, Success } from "../failure.ts"
import type { Secret } from "./secret.ts"

const MASK = "******"
const LEAST = 6

const valuesOf = (secrets: readonly Secret[]): readonly string[] =>
  secrets.map((secret) => secret.reveal()).filter((value) => value.length >= LEAST)

interface Cleaning {
  readonly clean: (text: string) => string
  readonly visit: (value: JsonValue) => JsonValue
}
const cleaningOf = (values: readonly string[]): Cleaning => {
  const clean = (text: string): string => values.reduce((left, value) => left.replaceAll(value, MASK), text)
  const visit = (at: JsonValue): JsonValue => {
    if (typeof at === "string") return clean(at)
    if (typeof at !== "object" || at === null) return at
    if (Array.isArray(at)) return (at as readonly JsonValue[]).map(visit)
    return Object.fromEntries(Object.entries(at).map(([key, inner]) => [clean(key), visit(inner as JsonValue)]))
  }
  return { clean, visit }
}

const linesOf = (values: readonly string[]): readonly string[] =>
  values.flatMap((value) => value.split(/\r?\n/)).filter((line) => line.length >= LEAST)

interface Teller {
  readonly tell: Tell
  /** Nothing more is printed: what waited is told. */
  end(): void
}

/** Tells what a program prints and streams without the secrets that it was given. */
export const tellWithout = (tell: Tell, secrets: readonly Secret[]): Teller => {
  const values = valuesOf(secrets)
  if (values.length === 0) return { tell, end: () => undefined }
  const { visit } = cleaningOf(values)
  // No spelling may hold a newline; of a value with several lines each is looked for.
  const spellings = linesOf(values).flatMap(spellingsOf)
  const scrubbers = { stdout: createScrubber(spellings), stderr: createScrubber(spellings) }
  const print = (stream: "stdout" | "stderr", bytes: Uint8Array): void => {
    if (bytes.length > 0) tell({ type: "output", stream, bytes })
  }
  return {
    tell: (event) => {
      if (event.type === "output") print(event.stream, scrubbers[event.stream].push(Buffer.from(event.bytes)))
      else tell(event.type === "progress" ? { ...event, value: visit(event.value) } : event)
    },
    end: () => {
      for (const stream of ["stdout", "stderr"] as const) print(stream, scrubbers[stream].end())
    },
  }
}

/** The same of a stream, for whoever takes it while it is printed. */
export const streamWithout = (stream: Readable, secrets: readonly Secret[]): Readable => {
  const spellings = linesOf(valuesOf(secrets)).flatMap(spellingsOf)
  if (spellings.length === 0) return stream
  const scrubber = createScrubber(spellings)
  const cleaned = new Transform({
    transform: (chunk: Buffer, _encoding, done) => done(null, scrubber.push(chunk)),
    flush: (done) => done(null, scrubber.end()),
  })
  // Whoever takes it and goes away closes both.
  return pipeline(stream, cleaned, () => undefined)
}

/** A text without them. */
export const textWithout = (text: string, secrets: readonly Secret[]): string =>
  cleaningOf(valuesOf(secrets)).clean(text)

export const withoutSecrets = (outcome: Success | Failure, secrets: readonly Secret[]): Success | Failure => {
  const values = valuesOf(secrets)
  if (values.length === 0) return outcome
  const { clean, visit } = cleaningOf(values)
  if (!outcome.ok)
    return { ...outcome, message: clean(outcome.message), details: visit(outcome.details) as Failure["details"] }
  return {
    ...outcome,
    value: visit(outcome.value),
    notes: outcome.notes.map(clean),
    ...(outcome.stderr === undefined ? {} : { stderr: clean(outcome.stderr) }),
  }
}
