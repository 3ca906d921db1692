/**
 * How this room speaks about faults: a `Report` collects diagnostics for one file.
 *
 * Guarantees: every diagnostic carries file, path, message and fix; text taken from a manifest is shortened and
 * stripped of control characters, so that a manifest cannot write to the reader's terminal.
 */
import type { Diagnostic } from "../base-types.ts"

export interface Report {
  readonly file: string
  readonly diagnostics: readonly Diagnostic[]
  /** names of the leniencies that were applied, each once */
  readonly leniencies: readonly string[]
  readonly failed: boolean
  error(rule: string, path: string, message: string, fix: string): void
  warn(rule: string, path: string, message: string, fix: string): void
  /** a warning that is also recorded as an applied leniency */
  lenient(rule: string, path: string, message: string, fix: string): void
}

const MAX_DIAGNOSTICS = 100
const MAX_TEXT = 600

/** Manifest text made fit to print: one line, no control characters, at most `max` characters. */
export function shown(value: unknown, max = 80): string {
  const raw = typeof value === "string" ? value : (JSON.stringify(value) ?? String(value))
  const line = raw.toWellFormed().replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, "�")
  return line.length > max ? `${line.slice(0, max).toWellFormed()}…` : line
}

/** `a`, 0, `b` → `a[0].b` */
export function joinPath(base: string, key: string | number): string {
  if (typeof key === "number") return `${base}[${key}]`
  const name = /^[A-Za-z_$][\w$-]*$/.test(key) ? key : `["${shown(key, 40)}"]`
  return base === "" || name.startsWith("[") ? `${base}${name}` : `${base}.${name}`
}

const fit = (text: string): string => shown(text, MAX_TEXT)

export function createReport(file: string): Report {
  const diagnostics: Diagnostic[] = []
  const leniencies: string[] = []
  let failed = false
  const add = (severity: Diagnostic["severity"], rule: string, path: string, message: string, fix: string): void => {
    if (severity === "error") failed = true
    const said = diagnostics.some((d) => d.rule === rule && d.path === path && d.message === message)
    if (!said && diagnostics.length < MAX_DIAGNOSTICS) {
      diagnostics.push(Object.freeze({ severity, rule, file, path: fit(path), message: fit(message), fix: fit(fix) }))
    }
  }
  return {
    file,
    diagnostics,
    leniencies,
    get failed() {
      return failed
    },
    error: (rule, path, message, fix) => add("error", rule, path, message, fix),
    warn: (rule, path, message, fix) => add("warning", rule, path, message, fix),
    lenient(rule, path, message, fix) {
      if (!leniencies.includes(rule)) leniencies.push(rule)
      add("warning", rule, path, message, fix)
    },
  }
}

const distance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + cost))
    }
    row = next
  }
  return row[b.length] ?? 0
}

/** The known word nearest to a misspelt one, if one is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (word.length > 64) return undefined
  const flat = (s: string): string => s.toLowerCase().replaceAll(/[-_]/g, "")
  let best: string | undefined
  let bestDistance = 3
  for (const candidate of known) {
    const d = distance(flat(word), flat(candidate))
    if (d < bestDistance && d < Math.max(2, candidate.length / 2)) {
      best = candidate
      bestDistance = d
    }
  }
  return best
}
