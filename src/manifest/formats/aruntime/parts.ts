/** Parts of an ARuntime contract whose form its text leaves open: each of the forms that are read, and no other. */
import type { JsonObject, JsonValue } from "../../base-types.ts"
import { shown } from "../../values/diagnostics.ts"
import type { Report } from "../../values/diagnostics.ts"
import { isObject, optionalNumber, optionalText, texts } from "../../values/fields.ts"
import { isOneOf, isTexts } from "../../schema/forms.ts"

const wrong = (field: string, value: JsonValue | undefined, fix: string, report: Report): void =>
  report.error("aruntime-form", field, `\`${shown(value, 60)}\` is no form of \`${field}\` that is read`, fix)

/** A word beside those that are read would be a limit that nobody holds. */
const hasOnly = (value: JsonObject, ...known: readonly string[]): boolean =>
  Object.keys(value).every((key) => known.includes(key))

const HOSTS = ["allow", "allowedHosts", "hosts"] as const
/** Hosts; undefined: it says nothing. */
export const egressOf = (value: JsonValue | undefined, report: Report): readonly string[] | undefined => {
  if (value === undefined || value === null) return undefined
  if (value === "none" || value === "deny") return []
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value as readonly string[]
  if (isObject(value) && hasOnly(value, ...HOSTS, "default", "mode")) {
    const isListed = HOSTS.every((key) => value[key] === undefined || isTexts(value[key]))
    const modes = [value["default"], value["mode"]].filter((mode) => mode !== undefined)
    if (isListed && modes.every(isOneOf("deny", "allowlist", "none"))) return HOSTS.flatMap((key) => texts(value, key))
  }
  wrong(
    "egressPolicy",
    value,
    'write `["api.example.com"]`, `"none"`, or `{ "default": "deny", "allow": […] }`',
    report,
  )
  return undefined
}

/** `vault://team/crm` → `team-crm`; a slug as it is. */
export const secretOf = (value: JsonValue | undefined, report: Report): string | undefined => {
  if (value === undefined || value === null || value === "none") return undefined
  const written = typeof value === "string" ? value : isObject(value) ? optionalText(value, "ref") : undefined
  const slug = written
    ?.replace(/^[a-z][a-z0-9-]*:\/\//, "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^[-0-9]+|-+$/g, "")
  if (slug !== undefined && slug.length >= 2 && slug.length <= 80) return slug
  wrong("authenticationRef", value, 'write the reference of one secret, as in `"vault://crm/api-key"`', report)
  return undefined
}

export const isIdempotent = (value: JsonValue | undefined): boolean => {
  const word = typeof value === "string" ? value : isObject(value) ? optionalText(value, "mode") : value
  return word === true || word === "natural" || word === "idempotent"
}

export const compensationOf = (value: JsonValue | undefined, report: Report): JsonObject | undefined => {
  if (value === undefined || value === null || value === "none") return undefined
  const tool = typeof value === "string" ? value : isObject(value) ? optionalText(value, "toolId") : undefined
  if (tool === undefined) {
    wrong("compensation", value, 'write `{ "toolId": "order_cancel" }`', report)
    return undefined
  }
  const note = isObject(value) ? optionalText(value, "description") : undefined
  return { tool: tool.replaceAll("_", "-"), ...(note === undefined ? {} : { note }) }
}

export const concurrencyOf = (value: JsonValue | undefined, report: Report): number | undefined => {
  if (value === undefined || value === null) return undefined
  const most =
    typeof value === "number"
      ? value
      : isObject(value) && hasOnly(value, "max", "limit")
        ? (optionalNumber(value, "max") ?? optionalNumber(value, "limit"))
        : undefined
  if (most !== undefined && Number.isInteger(most) && most >= 1 && most <= 10_000) return most
  wrong("concurrency", value, 'write a whole number of calls, as in `4` or `{ "max": 4 }`', report)
  return undefined
}

export const rateOf = (value: JsonValue | undefined, report: Report): JsonObject | undefined => {
  if (value === undefined || value === null) return undefined
  const block = Array.isArray(value) && value.length === 1 ? (value as readonly JsonValue[])[0] : value
  const perMinute =
    isObject(block) && hasOnly(block, "perMinute", "requestsPerMinute", "burst")
      ? (optionalNumber(block, "perMinute") ?? optionalNumber(block, "requestsPerMinute"))
      : undefined
  const burst = isObject(block) ? (optionalNumber(block, "burst") ?? 1) : 1
  const isCount = (count: number | undefined): boolean =>
    count !== undefined && Number.isInteger(count) && count >= 1 && count <= 1_000_000
  if (isCount(perMinute) && isCount(burst)) return { per_minute: perMinute as number, burst }
  wrong("rateLimits", value, 'write `{ "perMinute": 60, "burst": 5 }`', report)
  return undefined
}

export const errorsOf = (
  value: JsonValue | undefined,
  retryOn: readonly string[] | undefined,
  report: Report,
): readonly JsonObject[] => {
  if (value === undefined || value === null) return (retryOn ?? []).map((code) => ({ code, retryable: true }))
  const rows: readonly JsonValue[] | undefined = Array.isArray(value)
    ? (value as readonly JsonValue[])
    : isObject(value)
      ? Object.entries(value).map(([code, said]) => (isObject(said) ? { ...said, code } : { code, meaning: said }))
      : undefined
  if (rows === undefined) {
    wrong("errors", value, 'write `[{ "code": "conflict", "retryable": false }]`', report)
    return []
  }
  const listed = rows.flatMap((row): readonly JsonObject[] => {
    if (typeof row === "string")
      return [{ code: row, ...(retryOn === undefined ? {} : { retryable: retryOn.includes(row) }) }]
    const code = isObject(row) ? optionalText(row, "code") : undefined
    if (!isObject(row) || code === undefined) {
      wrong("errors", row, 'write `{ "code": "conflict", "meaning": "…", "action": "…", "retryable": false }`', report)
      return []
    }
    const first = (...keys: readonly string[]): string | undefined =>
      keys.map((key) => optionalText(row, key)).find((each) => each !== undefined)
    const meaning = first("meaning", "description", "message")
    const action = first("action", "agentAction", "recovery")
    const said = ["retryable", "retryEligible", "retry"]
      .map((key) => row[key])
      .find((each) => typeof each === "boolean")
    const retryable = retryOn === undefined ? said : retryOn.includes(code)
    return [
      {
        code,
        ...(meaning === undefined ? {} : { meaning }),
        ...(action === undefined ? {} : { action }),
        ...(retryable === undefined ? {} : { retryable }),
      },
    ]
  })
  const left = (retryOn ?? []).filter((code) => listed.every((row) => row["code"] !== code))
  return [...listed, ...left.map((code) => ({ code, retryable: true }))]
}
