/**
 * Versions and ranges as programs and manifests really write them (C-41).
 *
 * Guarantees: lengths are capped before the semver library sees them; a range that would match everything by
 * accident (`1||`) is refused; PEP 440 ranges (`>=0.40,<1`, `~=1.4`, `==1.2`) are translated; a pre-release never
 * passes an upper bound that its release would not pass. Pure.
 */
import satisfiesRange from "semver/functions/satisfies.js"
import validVersion from "semver/functions/valid.js"
import rangesIntersect from "semver/ranges/intersects.js"
import validRange from "semver/ranges/valid.js"
import { shown } from "../values/diagnostics.ts"
import { limits } from "../limits.ts"
import { compilePattern } from "./pattern.ts"

const SEMVER = /^\d+\.\d+\.\d+(?:[-+][\w.-]+)?$/
const PRERELEASE = /^[-.]?(?:alpha|beta|rc|pre|preview|dev|next|canary|nightly|a|b|c|snapshot)(?![a-z])[.-]?\d*/i

export const isSemver = (text: string): boolean => text.length <= limits.versionLength && SEMVER.test(text)

export const majorOf = (version: string): number => Number.parseInt(version, 10)

/** `v5.1`, `n4.4.2-0ubuntu0.22.04.1`, `2.43.0`, `22.04` → semver text; undefined when it does not start with a number. */
export function coerceVersion(text: string): string | undefined {
  if (text.length > limits.versionLength) return undefined
  const found = /^\s*[vVnN=]?\s*(\d{1,15})(?:\.(\d{1,15}))?(?:\.(\d{1,15}))?(.*)$/s.exec(text)
  if (found === null) return undefined
  const base = [found[1], found[2], found[3]].map((part) => String(Number(part ?? "0"))).join(".")
  const suffix = PRERELEASE.exec(found[4] ?? "")?.[0].replace(/^[-.]/, "")
  return suffix === undefined || suffix === "" ? base : (validVersion(`${base}-${suffix}`) ?? base)
}

function translatePart(part: string): string | undefined {
  const found = /^(===|==|~=|!=|>=|<=|>|<|=|\^|~)?\s*v?(.+)$/.exec(part.trim())
  if (found === null) return undefined
  const [, operator = "", version = ""] = found
  if (operator === "!=") return undefined
  if (operator === "===" || operator === "==")
    return version.endsWith(".*") ? version.replace(/\.\*$/, ".x") : `=${version}`
  if (operator !== "~=") return `${operator}${version}`
  const numbers = version.split(".")
  if (numbers.length < 2 || numbers.some((n) => !/^\d+$/.test(n))) return undefined
  const upper = numbers.slice(0, -1).map(Number)
  upper[upper.length - 1] = (upper.at(-1) ?? 0) + 1
  return `>=${version} <${upper.join(".")}`
}

type RangeResult =
  | { readonly ok: true; readonly range: string; readonly translated: boolean }
  | { readonly ok: false; readonly message: string; readonly fix: string }

/** A range in npm form; `translated` says that it was written in another dialect. */
export function parseRange(text: string): RangeResult {
  const fix = "write an npm version range such as `>=2.30.0 <3` or `^1.6.0`"
  const bad = (why: string): RangeResult => ({
    ok: false,
    message: `the version range \`${shown(text, 60)}\` ${why}`,
    fix,
  })
  if (text.length > limits.rangeLength) return bad(`is longer than ${limits.rangeLength} characters`)
  if (text.trim() === "") return bad("is empty")
  const dialect = /,|===?|~=|!=/.test(text)
  const alternatives: string[] = []
  for (const alternative of text.split("||")) {
    if (alternative.trim() === "") return bad("has an empty alternative beside `||`, which would match every version")
    const parts = dialect ? alternative.split(",").map(translatePart) : [alternative.trim()]
    if (parts.some((part) => part === undefined || part === "")) return bad("cannot be read (`!=` is not supported)")
    alternatives.push(parts.join(" "))
  }
  const range = alternatives.join(" || ")
  return validRange(range, { includePrerelease: true }) === null
    ? bad("is not a version range")
    : { ok: true, range, translated: dialect }
}

/** Can one version satisfy both? True where one of them cannot be read. */
export function rangesMeet(a: string, b: string): boolean {
  const [first, second] = [parseRange(a), parseRange(b)]
  if (!first.ok || !second.ok) return true
  return rangesIntersect(first.range, second.range, { includePrerelease: true })
}

/** Is the version that was found inside the range? False for anything that cannot be read. */
export function satisfies(found: string, range: string): boolean {
  const version = coerceVersion(found)
  const parsed = parseRange(range)
  if (version === undefined || !parsed.ok) return false
  const release = version.split("-")[0] ?? version
  return (
    satisfiesRange(version, parsed.range, { includePrerelease: true }) &&
    (release === version || satisfiesRange(release, parsed.range))
  )
}

type VersionOutcome =
  | { readonly ok: true; readonly version: string; readonly raw: string }
  | { readonly ok: false; readonly message: string }

/** Group 1 of `parse` in stdout, then in stderr (AIP-29 §Version). */
export function parseVersionOutput(parse: string, stdout: string, stderr: string): VersionOutcome {
  const compiled = compilePattern(parse)
  if (!compiled.ok) return { ok: false, message: compiled.message }
  for (const output of [stdout, stderr]) {
    const raw = compiled.pattern.firstGroup(output.slice(0, limits.versionOutput))
    const version = raw === undefined ? undefined : coerceVersion(raw)
    if (raw !== undefined && version !== undefined) return { ok: true, version, raw }
  }
  return {
    ok: false,
    message: `no version found: \`${shown(parse, 60)}\` matches neither stdout nor stderr with a version in group 1`,
  }
}
