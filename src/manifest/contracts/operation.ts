/**
 * `metadata.operation` of a tool: how it is run and told of, beyond what AIP-14 says. Formats that have words for it write
 * it; a TOOL.md may as well.
 *
 * Guarantees: dates are days or instants in UTC; whatever is not of the form that is read refuses the tool, so that no
 * limit or date is passed over because it was misspelt. Another tool is named by its id alone.
 */
import { checkForms, type FormRow, isListOf, isMap, isOneOf, isStatuses, isText, isTexts } from "../schema/forms.ts"
import { joinPath, shown } from "../values/diagnostics.ts"
import type { Report } from "../values/diagnostics.ts"
import { defined, isObject, objects, optionalNumber, optionalObject, optionalText, texts } from "../values/fields.ts"
import type { JsonObject, Operation, OperationError } from "../base-types.ts"

const AT = "metadata.operation"
const KEYS = [
  "status",
  "deprecation",
  "errors",
  "retry_on_status",
  "concurrency",
  "rate",
  "data_classification",
  "permission_class",
  "audit_fields",
  "compensation",
  "status_tool",
  "spelling",
]
const STATUSES = ["draft", "active", "deprecated", "disabled"] as const

const KEYS_BELOW: Readonly<Record<string, readonly string[]>> = {
  deprecation: ["introduced", "deprecated", "removed", "replacement", "compatibility"],
  rate: ["per_minute", "burst"],
  compensation: ["tool", "note"],
}
/** What is read elsewhere in this file says itself what is wrong with it. */
const FORMS: readonly FormRow[] = (
  [
    ["status", isText, `write one of ${STATUSES.join(", ")}`],
    ["deprecation", isMap, "write `removed: 2027-01-31` below it"],
    ["deprecation.compatibility", isText, "write a text"],
    ["errors", isListOf(isMap), "write a list, as in `[{ code: conflict, meaning: … }]`"],
    ["retry_on_status", isStatuses, "write a list of statuses, as in `[503]`"],
    ["rate", isMap, "write `{ per_minute: 60 }`"],
    ["data_classification", isText, "write one word, as in `restricted`"],
    ["permission_class", isText, "write one word"],
    ["audit_fields", isTexts, "write a list of inputs' names"],
    ["compensation", isMap, "write `tool: order-cancel` below it"],
    ["compensation.note", isText, "write a text"],
    ["spelling", isOneOf("aruntime"), "write `aruntime`, or leave it out"],
  ] as const
).map(([path, is, fix]) => [`${AT}.${path}`, is, fix])

const refuseUnknown = (block: JsonObject, path: string, known: readonly string[], report: Report): void => {
  for (const key of Object.keys(block).filter((each) => !known.includes(each)))
    refuse(joinPath(path, key), `\`${shown(key, 40)}\` is not known here`, `write one of ${known.join(", ")}`, report)
}

const refuse = (path: string, message: string, fix: string, report: Report): undefined => {
  report.error("operation", path, message, fix)
  return undefined
}

/** Of a day: its first instant. */
const dateIn = (block: JsonObject, key: string, report: Report): number | undefined => {
  const written = block[key]
  if (written === undefined) return undefined
  const isForm = typeof written === "string" && /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{1,3})?Z)?$/.test(written)
  const at = isForm ? Date.parse(written) : Number.NaN
  const isReal = isForm && !Number.isNaN(at) && new Date(at).toISOString().startsWith(written.slice(0, 10))
  if (isReal) return at
  return refuse(
    joinPath(`${AT}.deprecation`, key),
    `\`${shown(written, 40)}\` is no date`,
    "write a day or an instant in UTC, as in `2027-01-31` or `2027-01-31T12:00:00Z`",
    report,
  )
}

/** Another tool, as its caller is told of it in this host's own words: an id, and nothing that could be more than that. */
const toolIn = (block: JsonObject, key: string, path: string, report: Report): string | undefined => {
  const value = block[key]
  if (value === undefined) return undefined
  if (typeof value === "string" && /^[a-z0-9][a-z0-9.-]{0,126}[a-z0-9](?:@\d{1,9})?$/.test(value)) return value
  return refuse(
    joinPath(path, key),
    `\`${shown(value, 40)}\` is no tool's id`,
    "write an id such as `order-cancel`",
    report,
  )
}

const deprecationOf = (block: JsonObject | undefined, report: Report): Operation["deprecation"] => {
  if (block === undefined) return undefined
  const introduced = dateIn(block, "introduced", report)
  const deprecated = dateIn(block, "deprecated", report)
  const removed = dateIn(block, "removed", report)
  if (removed !== undefined && deprecated !== undefined && removed < deprecated)
    refuse(`${AT}.deprecation.removed`, "it is removed before it is deprecated", "put the dates in order", report)
  return defined({
    introduced,
    deprecated,
    removed,
    replacement: toolIn(block, "replacement", `${AT}.deprecation`, report),
    compatibility: optionalText(block, "compatibility"),
  })
}

const errorsOf = (block: JsonObject): readonly OperationError[] =>
  objects(block, "errors").map((row) =>
    defined({
      status: optionalNumber(row, "status"),
      code: optionalText(row, "code"),
      meaning: optionalText(row, "meaning"),
      action: optionalText(row, "action"),
      retryable: typeof row["retryable"] === "boolean" ? row["retryable"] : undefined,
    }),
  )

const countIn = (block: JsonObject, key: string, path: string, report: Report): number | undefined => {
  const value = block[key]
  if (value === undefined) return undefined
  if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= 1_000_000) return value
  return refuse(joinPath(path, key), `\`${shown(value, 40)}\` is no count`, "write a whole number from 1", report)
}

export const readOperation = (metadata: JsonObject, report: Report): Operation | undefined => {
  const { operation: block } = metadata
  if (block === undefined) return undefined
  if (!isObject(block)) return refuse(AT, "`operation` is a mapping", "write `status: active` below it", report)
  refuseUnknown(block, AT, KEYS, report)
  for (const [key, known] of Object.entries(KEYS_BELOW))
    refuseUnknown(optionalObject(block, key) ?? {}, `${AT}.${key}`, known, report)
  checkForms({ metadata: { operation: block } }, FORMS, "operation", report)
  const status = optionalText(block, "status")
  const known = STATUSES.find((each) => each === status)
  if (status !== undefined && known === undefined)
    refuse(`${AT}.status`, `\`${shown(status, 40)}\` is no status`, `write one of ${STATUSES.join(", ")}`, report)
  const rate = optionalObject(block, "rate")
  const perMinute = rate === undefined ? undefined : countIn(rate, "per_minute", `${AT}.rate`, report)
  if (rate !== undefined && perMinute === undefined)
    refuse(`${AT}.rate.per_minute`, "a rate needs `per_minute`", "write `per_minute: 60`", report)
  const compensation = optionalObject(block, "compensation")
  const undo = compensation === undefined ? undefined : toolIn(compensation, "tool", `${AT}.compensation`, report)
  if (compensation !== undefined && compensation["tool"] === undefined)
    refuse(`${AT}.compensation.tool`, "a compensation names a tool", "write `tool: order-cancel`", report)
  const onStatus = block["retry_on_status"]
  return defined({
    status: known,
    deprecation: deprecationOf(optionalObject(block, "deprecation"), report),
    errors: errorsOf(block),
    retryOnStatus: Array.isArray(onStatus)
      ? (onStatus as readonly unknown[]).filter((each): each is number => typeof each === "number")
      : undefined,
    concurrency: countIn(block, "concurrency", AT, report),
    rate:
      rate === undefined || perMinute === undefined
        ? undefined
        : { perMinute, burst: countIn(rate, "burst", `${AT}.rate`, report) ?? 1 },
    dataClassification: optionalText(block, "data_classification"),
    permissionClass: optionalText(block, "permission_class"),
    auditFields: texts(block, "audit_fields").slice(0, 64),
    compensation:
      compensation === undefined || undo === undefined
        ? undefined
        : defined({ tool: undo, note: optionalText(compensation, "note") }),
    statusTool: toolIn(block, "status_tool", AT, report),
    spelling: block["spelling"] === "aruntime" ? ("aruntime" as const) : undefined,
  })
}
