/** How long and how often, as a block says it: cut to what this host waits at most, with a warning that says so. */
import type { Context } from "../values/context.ts"
import { parseDuration } from "../values/duration.ts"
import { optionalNumber, optionalText } from "../values/fields.ts"
import type { JsonObject } from "../base-types.ts"

interface Wait {
  readonly key: string
  readonly fallback: number
  readonly most: number
}

export function readWait(block: JsonObject, { key, fallback, most }: Wait, path: string, context: Context): number {
  const asked = optionalNumber(block, key) ?? fallback
  if (asked > most)
    context.report.warn(
      "wait-too-long",
      `${path}.${key}`,
      `${asked} ms is longer than this host waits; it ends after ${most}`,
      `write at most ${most}, as in \`${key}: ${fallback}\``,
    )
  return Math.min(asked, most)
}

/** `every`: an ISO 8601 duration, never shorter than `least`. */
export function readEvery(block: JsonObject, least: number, path: string, context: Context): number | undefined {
  const written = optionalText(block, "every")
  if (written === undefined) return undefined
  const ms = parseDuration(written)
  if (ms === undefined)
    context.report.error(
      "bad-value",
      `${path}.every`,
      `\`${path}.every\` is not a duration`,
      "write an ISO 8601 duration such as `PT24H`",
    )
  else if (ms < least)
    context.report.warn(
      "every-too-often",
      `${path}.every`,
      `this host does it every ${least} ms at most`,
      `write a longer time, as in \`every: PT${Math.ceil(least / 1000)}S\``,
    )
  return ms === undefined ? undefined : Math.max(ms, least)
}
