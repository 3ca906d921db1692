/**
 * How long something lasts, as manifests write it → milliseconds.
 *
 * Guarantees: total; a text that is no duration, or one of nothing, is undefined and never a guess. Calendar units count
 * as 30 days (a month) and 365 (a year), since what is meant is an age and no date.
 */
const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const WEEK = 7 * DAY
const MONTH = 30 * DAY
const YEAR = 365 * DAY

const ISO =
  /^P(?:(\d{1,6})Y)?(?:(\d{1,6})M)?(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?$/
const SHORT = /^(\d{1,6})([ymwdh])$/
const SHORT_UNITS: Readonly<Record<string, number>> = { y: YEAR, m: MONTH, w: WEEK, d: DAY, h: HOUR }

/** `PT24H`, `P1DT30M` (ISO 8601); undefined for anything else and for nothing at all (`PT0S`). */
export function parseDuration(text: string): number | undefined {
  const found = ISO.exec(text)
  if (found === null) return undefined
  const ms = [YEAR, MONTH, WEEK, DAY, HOUR, MINUTE, SECOND].reduce(
    (sum, unit, i) => sum + Number(found[i + 1] ?? 0) * unit,
    0,
  )
  return ms > 0 ? Math.ceil(ms) : undefined
}

/** How long a record is kept (AIP-19): ISO 8601, or `90d` and the like. */
export function parseRetention(text: string): number | undefined {
  const [, count, unit] = SHORT.exec(text) ?? []
  if (count === undefined || unit === undefined) return parseDuration(text)
  const ms = Number(count) * (SHORT_UNITS[unit] ?? 0)
  return ms > 0 ? ms : undefined
}
