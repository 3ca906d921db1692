/**
 * Regular expressions from manifests, run by RE2JS only: linear time, no backtracking.
 *
 * Guarantees: source length and compiled size are capped; the work of one match (compiled size × subject length)
 * is reported to the caller before it is done, so that a budget can stop it. Lookarounds and backreferences do not
 * exist in RE2 and are refused with a message that says so. ECMAScript spellings (`\uXXXX`, `(?<name>…)`) are
 * translated.
 */
import type * as Re2 from "re2js"
import { ambiguousRepetition } from "./ambiguous-pattern.ts"
import { shown } from "../values/diagnostics.ts"
import { limits } from "../limits.ts"
import { onDemand } from "./on-demand.ts"

const re2 = onDemand<typeof Re2>("re2js")

export interface SafePattern {
  readonly source: string
  /** steps it compiles to */
  readonly size: number
  /** does it have a group 1? */
  readonly groups: boolean
  /** what matching a subject of this length costs, in abstract steps */
  cost(length: number): number
  test(subject: string): boolean
  /** group 1 of the first match, if there is one */
  firstGroup(subject: string): string | undefined
}

type PatternResult =
  | { readonly ok: true; readonly pattern: SafePattern }
  | { readonly ok: false; readonly message: string; readonly fix: string }

const UNSUPPORTED = /\(\?<?[=!]|\\[1-9]|\\k</

/** `ambiguous`: it runs nowhere but here, so that what takes long in other engines is no matter. */
export function compilePattern(source: string, { ambiguous: may = false } = {}): PatternResult {
  if (source.length > limits.patternLength) {
    return {
      ok: false,
      message: `the pattern has ${source.length} characters; at most ${limits.patternLength} are read`,
      fix: "shorten the pattern",
    }
  }
  // what repetitions multiply out to, told before the compiler does the multiplying
  const repeats = [...source.matchAll(/\{(\d+)(?:,(\d*))?\}/g)].reduce(
    (sum, m) => sum + Math.max(Number(m[1]), Number(m[2] ?? 0)),
    0,
  )
  if (repeats > limits.patternProgram) {
    return {
      ok: false,
      message: `the pattern \`${shown(source, 60)}\` repeats ${repeats} times in all; at most ${limits.patternProgram} are allowed`,
      fix: "use smaller repetition counts",
    }
  }
  const ambiguous = may ? undefined : ambiguousRepetition(source)
  if (ambiguous !== undefined) {
    return {
      ok: false,
      message: `the pattern \`${shown(source, 60)}\` repeats \`${shown(ambiguous, 40)}\`, which can match the same text in many ways and takes exponential time in other engines`,
      fix: "repeat it once: `a+` for `(a+)+`, `a*` for `(a|aa)*`",
    }
  }
  let compiled: Re2.RE2JS
  try {
    const { RE2JS: engine } = re2()
    compiled = engine.compile(engine.translateRegExp(source))
  } catch (error) {
    const why = UNSUPPORTED.test(source)
      ? "lookarounds and backreferences are not supported (patterns run in linear time)"
      : `it is not a valid pattern: ${shown(error instanceof Error ? error.message : String(error), 100)}`
    return {
      ok: false,
      message: `the pattern \`${shown(source, 60)}\` is refused: ${why}`,
      fix: "write it without lookarounds and backreferences, in RE2 syntax",
    }
  }
  const size = compiled.programSize()
  if (size > limits.patternProgram) {
    return {
      ok: false,
      message: `the pattern \`${shown(source, 60)}\` compiles to ${size} steps; at most ${limits.patternProgram} are allowed`,
      fix: "use smaller repetition counts",
    }
  }
  const pattern: SafePattern = {
    source,
    size,
    groups: compiled.groupCount() > 0,
    cost: (length) => size * (length + 1),
    test: (subject) => compiled.matcher(subject).find(),
    firstGroup(subject) {
      const matcher = compiled.matcher(subject)
      if (!matcher.find() || matcher.groupCount() < 1) return undefined
      return matcher.group(1) ?? undefined
    },
  }
  return { ok: true, pattern }
}
