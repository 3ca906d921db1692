/**
 * ARuntime tool contract (`*.tool.json`) → a TOOL.md. A contract has no body: some driver has to implement it.
 *
 * Guarantees: each of the seven classes of side effects has one meaning here, the stricter of what it could be; which
 * files a write changes and which hosts are reached, where the contract does not say it, is closed until annotated.
 */
import type { JsonObject, JsonValue } from "../../base-types.ts"
import { isSemver } from "../../schema/version.ts"
import { shown } from "../../values/diagnostics.ts"
import type { Report } from "../../values/diagnostics.ts"
import { isObject, object, optionalNumber, optionalObject, optionalText, text, texts } from "../../values/fields.ts"
import { annotated, tellClosed } from "../annotations.ts"
import type { Document, Format, FormatContext, Translation } from "../format.ts"
import { checkForms, type FormRow, isCount, isDuration, isMap, isOneOf, isText, isTexts } from "../../schema/forms.ts"
import { aipId } from "../ids.ts"
import { checkFields } from "../unknown.ts"
import { type EffectClass, effectClass, effectClasses } from "./classes.ts"
import { aruntimeFields } from "./fields.ts"
import { readJson } from "./json-text.ts"
import { compensationOf, concurrencyOf, egressOf, errorsOf, isIdempotent, rateOf, secretOf } from "./parts.ts"

const REQUIRED = ["toolId", "version", "description", "inputSchema", "outputSchema", "sideEffectClass"]

const TEXT = "write a text"
const DAY = "write a day or an instant in UTC, as in `2027-01-31`"
const NAMES = 'write a list of names, as in `["name"]`'
const FORMS: readonly FormRow[] = [
  ["name", isText, TEXT],
  ["description", isText, TEXT],
  ["dataClassification", isText, 'write one word, as in `"restricted"`'],
  ["permissionClass", isText, 'write one word, as in `"write"`'],
  [
    "idempotency",
    (value) => isText(value) || isMap(value) || typeof value === "boolean",
    'write `"natural"` or `"key"`',
  ],
  ["retryPolicy", isMap, 'write `{ "maxAttempts": 3 }`, or leave it out'],
  ["retryPolicy.maxAttempts", isCount, "write a whole number from 1"],
  ["retryPolicy.backoff", isOneOf("fixed", "exponential", "none"), "write `fixed` or `exponential`"],
  ["retryPolicy.initialDelayMs", isDuration, "write milliseconds"],
  ["retryPolicy.retryOn", isTexts, 'write a list of codes, as in `["dependency.unavailable"]`'],
  ["auditFields", isTexts, NAMES],
  ["deprecation", isMap, 'write `{ "removal": "2027-01-31" }`'],
  ["deprecation.introduced", isText, DAY],
  ["deprecation.deprecated", isText, DAY],
  ["deprecation.removal", isText, DAY],
  ["deprecation.replacement", isText, "write the tool's id"],
  ["deprecation.compatibility", isText, TEXT],
  ["deprecation.affectedPolicies", isTexts, NAMES],
]

const checkRequired = (front: JsonObject, report: Report): void => {
  for (const key of REQUIRED)
    if (front[key] === undefined || front[key] === null || front[key] === "")
      report.error("aruntime-required", key, `\`${key}\` is missing`, `add \`${key}\``)
  for (const key of ["inputSchema", "outputSchema"])
    if (front[key] !== undefined && !isObject(front[key]))
      report.error("aruntime-schema", key, "a schema is an object", 'write `{ "type": "object", … }`')
  const { version } = front
  if (version !== undefined && (typeof version !== "string" || !isSemver(version)))
    report.error("aruntime-version", "version", `\`${shown(version, 40)}\` is not a version`, "write `1.0.0`")
  const written = front["sideEffectClass"]
  if (written !== undefined && (typeof written !== "string" || effectClass(written) === undefined))
    report.error(
      "aruntime-class",
      "sideEffectClass",
      `\`${shown(written, 40)}\` is none of the seven classes`,
      `write one of ${effectClasses.map(({ name }) => name).join(", ")}`,
    )
  checkForms(front, FORMS, "aruntime-form", report)
  const seconds = front["timeoutSeconds"]
  if (seconds !== undefined && (typeof seconds !== "number" || !(seconds > 0) || seconds > 86_400))
    report.error("aruntime-timeout", "timeoutSeconds", "a time is a number of seconds, at most a day", "write `30`")
}

const retryOf = (front: JsonObject): JsonObject | undefined => {
  const policy = optionalObject(front, "retryPolicy")
  if (policy === undefined) return undefined
  return {
    max_attempts: optionalNumber(policy, "maxAttempts") ?? 1,
    backoff: optionalText(policy, "backoff") === "exponential" ? "exponential" : "fixed",
    initial_ms: optionalNumber(policy, "initialDelayMs") ?? 0,
  }
}

const DATES = [
  ["introduced", "introduced"],
  ["deprecated", "deprecated"],
  ["removal", "removed"],
  ["replacement", "replacement"],
  ["compatibility", "compatibility"],
] as const

const operationOf = (front: JsonObject, report: Report): JsonObject => {
  const block = object(front, "deprecation")
  const deprecation = Object.fromEntries(
    DATES.flatMap(([from, to]) => {
      const said = optionalText(block, from)
      return said === undefined ? [] : [[to, from === "replacement" ? said.replaceAll("_", "-") : said]]
    }),
  )
  const retryOn =
    object(front, "retryPolicy")["retryOn"] === undefined ? undefined : texts(object(front, "retryPolicy"), "retryOn")
  const errors = errorsOf(front["errors"], retryOn, report)
  const concurrency = concurrencyOf(front["concurrency"], report)
  const rate = rateOf(front["rateLimits"], report)
  const compensation = compensationOf(front["compensation"], report)
  const data = optionalText(front, "dataClassification")
  const permission = optionalText(front, "permissionClass")
  const audit = texts(front, "auditFields")
  return {
    spelling: "aruntime",
    ...(Object.keys(deprecation).length === 0 ? {} : { deprecation }),
    ...(errors.length === 0 ? {} : { errors }),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(rate === undefined ? {} : { rate }),
    ...(compensation === undefined ? {} : { compensation }),
    ...(data === undefined ? {} : { data_classification: data }),
    ...(permission === undefined ? {} : { permission_class: permission }),
    ...(audit.length === 0 ? {} : { audit_fields: audit }),
  }
}

const tagOf = (permission: string | undefined): readonly string[] => {
  const tag =
    permission
      ?.toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, "-")
      .replaceAll(/^-+|-+$/g, "") ?? ""
  return tag === "" ? [] : [`permission-${tag}`]
}

/** Whatever it says, and however: this host cannot tell when it applies. */
const isAnyTrigger = (written: JsonValue | undefined): boolean =>
  !(written === undefined || written === null || written === false || written === "none" || written === "") &&
  !(Array.isArray(written) && written.length === 0)

const toolFront = (front: JsonObject, id: string, effects: EffectClass, report: Report): JsonObject => {
  const hosts = egressOf(front["egressPolicy"], report)
  const secret = secretOf(front["authenticationRef"], report)
  const outside = (hosts ?? []).map((host) => `external:${host.replace(/^tcp:\/\//, "")}`)
  const mutates = effects.outside ? (outside.length === 0 ? ["external:unstated"] : outside) : []
  const isTriggered = isAnyTrigger(front["approvalTriggers"])
  const retry = retryOf(front)
  const seconds = optionalNumber(front, "timeoutSeconds")
  const owner = front["owner"]
  return {
    name: optionalText(front, "name") ?? text(front, "toolId"),
    id,
    description: text(front, "description"),
    version: text(front, "version"),
    inputs: object(front, "inputSchema"),
    outputs: object(front, "outputSchema"),
    idempotent: isIdempotent(front["idempotency"]) || effects.name === "read-only",
    mutates,
    requires: { network: [...(hosts ?? [])], ...(secret === undefined ? {} : { secrets: [secret] }) },
    approval: isTriggered ? "always" : effects.approval,
    risk_level: effects.risk,
    ...(seconds === undefined ? {} : { timeout_ms: Math.round(seconds * 1000) }),
    ...(retry === undefined ? {} : { retry }),
    ...(effects.constraints === undefined ? {} : { driver_constraints: effects.constraints }),
    tags: ["aruntime", ...tagOf(optionalText(front, "permissionClass"))],
    metadata: {
      origin: {
        format: "aruntime",
        id: text(front, "toolId"),
        side_effect_class: effects.name,
        ...(owner === undefined ? {} : { owner }),
        ...(front["observability"] === undefined ? {} : { observability: front["observability"] }),
        ...(texts(object(front, "deprecation"), "affectedPolicies").length === 0
          ? {}
          : { affected_policies: texts(object(front, "deprecation"), "affectedPolicies") }),
      },
      operation: operationOf(front, report),
    },
  }
}

const read = (bytes: Uint8Array, context: FormatContext): Translation => {
  const { report } = context
  const front = readJson(bytes, report)
  if (front === undefined) return {}
  checkRequired(front, report)
  const written = optionalText(front, "toolId")
  const id = written === undefined ? undefined : aipId(written, "toolId", report)
  checkFields(front, aruntimeFields, context)
  const effects = effectClass(text(front, "sideEffectClass"))
  if (report.failed || id === undefined || effects === undefined) return id === undefined ? {} : { id }
  const annotation = context.annotation(id)
  const tool = toolFront(front, id, effects, report)
  if (report.failed) return { id }
  if (annotation === undefined)
    tellClosed(
      id,
      [
        ...(effects.files ? ["which files of a workspace it changes"] : []),
        ...(front["egressPolicy"] === undefined ? ["which hosts it reaches"] : []),
      ],
      "sideEffectClass",
      report,
    )
  return { id, documents: [{ doctype: "tool", front: annotated(tool, annotation), from: TOOL }] }
}

const TOOL: Document["from"] = [
  ["inputs", "inputSchema"],
  ["outputs", "outputSchema"],
  ["id", "toolId"],
  ["timeout_ms", "timeoutSeconds"],
  ["requires.network", "egressPolicy"],
  ["requires.secrets", "authenticationRef"],
  ["retry.max_attempts", "retryPolicy.maxAttempts"],
  ["retry", "retryPolicy"],
  ["mutates", "sideEffectClass"],
  ["approval", "sideEffectClass"],
  ["metadata.operation.deprecation.removed", "deprecation.removal"],
  ["metadata.operation.deprecation", "deprecation"],
  ["metadata.operation.errors", "errors"],
  ["metadata.operation.rate", "rateLimits"],
  ["metadata.operation.concurrency", "concurrency"],
  ["metadata.operation.compensation", "compensation"],
  ["metadata.operation.audit_fields", "auditFields"],
]

export const aruntime: Format = {
  id: "aruntime",
  title: "ARuntime tool contract",
  files: "*.tool.json",
  owns: (name) => name.endsWith(".tool.json") && name !== ".tool.json",
  fields: aruntimeFields,
  read,
}
