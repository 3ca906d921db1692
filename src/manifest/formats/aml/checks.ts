/**
 * The twelve hard failures of AML and its four lint rules, each with the field it is about.
 *
 * Does not: check what is inside the two schemas; the contract's own reading does, under the same limits as a TOOL.md's.
 */
import type { JsonObject, ManifestMode } from "../../base-types.ts"
import type { FormatContext } from "../format.ts"
import {
  checkForms,
  type FormRow,
  isCount,
  isMap,
  isMapOf,
  isStatuses,
  isText,
  isTextOrTexts,
  isTexts,
} from "../../schema/forms.ts"
import { isSemver } from "../../schema/version.ts"
import { shown } from "../../values/diagnostics.ts"
import type { Report } from "../../values/diagnostics.ts"
import { isObject, object, optionalObject, optionalText, texts, valueAt } from "../../values/fields.ts"

/** AML versions that this host approves. */
const APPROVED = ["1.2"]
const TYPES = ["retrieval", "action", "function", "human"]
const STATUSES = ["draft", "active", "deprecated", "disabled"]
const TRANSPORTS = ["rest-api", "lambda", "mcp", "message-queue", "database"]
const SCHEMES = ["none", "iam-role", "api-key", "bearer-token", "oauth2", "service-account"]
const SOURCES = ["env", "aws_secrets_manager", "gcp_secret_manager", "azure_key_vault"]
const WITH_SOURCE = ["api-key", "bearer-token", "service-account"]

const REQUIRED: readonly (readonly [path: string, fix: string])[] = [
  ["spec_version", 'write `spec_version: "1.2"`'],
  ["tool_id", "write `tool_id: ticket_create`"],
  ["version", "write `version: 1.0.0`"],
  ["status", "write `status: active`"],
  ["meta.name", "write the tool's name under `meta`"],
  ["meta.description", "write two to five sentences under `meta`"],
  ["meta.owner", "write who answers for the tool under `meta`"],
  ["type", "write `type: retrieval`, `action`, `function` or `human`"],
  ["interface.input", "write the JSON Schema of the input under `interface`"],
  ["interface.output", "write the JSON Schema of the output under `interface`"],
  ["use_guidance", "write `use_when`, `avoid_when` and `side_effects` under `use_guidance`"],
]

const LIST = "write a list of texts"
const FORMS: readonly FormRow[] = [
  ["meta.tags", isTexts, LIST],
  ["meta.last_updated", isText, 'write a day, as in `"2026-01-31"`'],
  ["error_codes", isMapOf(isMap), 'write `"404": { meaning: …, agent_action: … }` below it'],
  ["transport.timeout_ms", isCount, "write a whole number of milliseconds, as in `5000`"],
  ["transport.retry_policy", isMap, "write `max_attempts: 3` below it"],
  ["transport.retry_policy.max_attempts", isCount, "write a whole number from 1, which switches it off"],
  ["transport.retry_policy.on_status", isStatuses, "write a list of statuses, as in `[503]`"],
  ["use_guidance", isMap, "write `use_when`, `avoid_when` and `side_effects` below it"],
  ["use_guidance.use_when", isTextOrTexts, LIST],
  ["use_guidance.avoid_when", isTextOrTexts, LIST],
  ["use_guidance.side_effects", isTextOrTexts, LIST],
]

/** `1.2` without quotes is a number in YAML. */
export const specVersion = (front: JsonObject): string => {
  const written = front["spec_version"]
  return typeof written === "number" ? String(written) : typeof written === "string" ? written : ""
}

const oneOf = (value: unknown, known: readonly string[], rule: string, path: string, report: Report): void => {
  if (value === undefined || (typeof value === "string" && known.includes(value))) return
  report.error(
    rule,
    path,
    `\`${shown(value, 40)}\` is not one of ${known.join(", ")}`,
    `write one of ${known.join(", ")}`,
  )
}

export const credentialsOf = (front: JsonObject): { readonly block?: JsonObject; readonly path: string } => {
  const own = optionalObject(object(front, "transport"), "credentials")
  if (own !== undefined) return { block: own, path: "transport.credentials" }
  const block = optionalObject(front, "credentials")
  return block === undefined ? { path: "transport.credentials" } : { block, path: "credentials" }
}

const checkCredentials = (front: JsonObject, report: Report): void => {
  const { block, path } = credentialsOf(front)
  if (block === undefined) {
    report.error(
      "aml-credentials-missing",
      path,
      "a tool with a transport says which credentials it needs",
      "write `credentials: { scheme: none }` under `transport`",
    )
    return
  }
  const scheme = block["scheme"]
  if (scheme === undefined) report.error("aml-scheme", `${path}.scheme`, "`scheme` is missing", "write `scheme: none`")
  oneOf(scheme, SCHEMES, "aml-scheme", `${path}.scheme`, report)
  oneOf(block["source"], SOURCES, "aml-source", `${path}.source`, report)
  if (typeof scheme === "string" && WITH_SOURCE.includes(scheme)) {
    if (block["source"] === undefined)
      report.error(
        "aml-source-missing",
        `${path}.source`,
        `\`${scheme}\` credentials come from somewhere`,
        `write \`source: env\` and \`name: SERVICE_KEY\`; the value is set with \`caisson secrets set service-key\``,
      )
    else if (optionalText(block, "name") === undefined && optionalText(block, "secret_id") === undefined)
      report.error(
        "aml-source-missing",
        path,
        "neither `name` nor `secret_id` says which secret",
        "write `name: SERVICE_KEY`",
      )
  }
  if (scheme === "oauth2" && block["provider"] === undefined && block["function_id"] === undefined)
    report.error(
      "aml-oauth2-incomplete",
      `${path}.provider`,
      "`oauth2` names a `provider` or a `function_id`",
      "write `provider: NAME`",
    )
}

/** True: it can be translated; what else is wrong is in the report. */
export const checkHard = (front: JsonObject, { report, mode }: Pick<FormatContext, "report" | "mode">): boolean => {
  for (const [path, fix] of REQUIRED)
    if (valueAt(front, path) === undefined || valueAt(front, path) === null || valueAt(front, path) === "")
      report.error("aml-required", path, `\`${path}\` is missing`, fix)
  const spec = specVersion(front)
  if (spec !== "" && !APPROVED.includes(spec))
    report.error(
      "aml-spec-version",
      "spec_version",
      `AML ${shown(spec, 20)} is not a version that this host approves`,
      `write one of ${APPROVED.join(", ")}`,
    )
  const id = front["tool_id"]
  if (id !== undefined && (typeof id !== "string" || !/^[a-z0-9_-]{3,64}$/.test(id)))
    report.error(
      "aml-tool-id",
      "tool_id",
      `\`${shown(id, 40)}\` is not a tool id`,
      "write 3 to 64 of a-z, 0-9, `_` and `-`",
    )
  const version = front["version"]
  if (version !== undefined && (typeof version !== "string" || !isSemver(version)))
    report.error("aml-version", "version", `\`${shown(version, 40)}\` is not a version`, "write `1.0.0`")
  oneOf(front["status"], STATUSES, "aml-status", "status", report)
  oneOf(front["type"], TYPES, "aml-type", "type", report)
  for (const side of ["input", "output"]) {
    const schema = valueAt(front, `interface.${side}`)
    if (schema !== undefined && !isObject(schema))
      report.error("aml-schema", `interface.${side}`, "a schema is a mapping", "write `type: object` and `properties`")
  }
  checkForms(front, FORMS, "aml-form", report)
  checkTransport(front, mode, report)
  return !report.failed
}

const checkTransport = (front: JsonObject, mode: ManifestMode, report: Report): void => {
  const transport = front["transport"]
  if (transport === undefined) {
    const { type } = front
    // A person is reached by this host; only the letter of AML wants a transport for that.
    const say = type === "human" && mode === "compat" ? report.lenient : report.error
    if (type !== "function")
      say(
        "aml-transport-missing",
        "transport",
        "a tool that is no function says how it is reached",
        "write `transport: { type: rest-api, … }`",
      )
    return
  }
  if (!isObject(transport)) {
    report.error("aml-transport", "transport", "`transport` is a mapping", "write `type: rest-api` below it")
    return
  }
  const type = transport["type"]
  if (type === "grpc")
    report.error(
      "aml-transport-type",
      "transport.type",
      "AML names grpc and does not say what such a transport looks like",
      `write one of ${TRANSPORTS.join(", ")}, or serve the tool by a DRIVER.md of your own`,
    )
  else if (typeof type !== "string" || !TRANSPORTS.includes(type))
    report.error(
      "aml-transport-type",
      "transport.type",
      `\`${shown(type, 40)}\` is not a transport`,
      `write one of ${TRANSPORTS.join(", ")}`,
    )
  checkCredentials(front, report)
}

/** Valid AML says how a person is reached; here that is the host's own matter. */
const lintHuman = (front: JsonObject, report: Report): void => {
  if (front["type"] === "human" && isObject(front["transport"]))
    report.warn(
      "aml-human-transport",
      "transport",
      "this host asks a person itself, and waits for the answer: this transport is not used",
      "see `caisson questions`; for a service that decides by itself write `type: action`",
    )
}

const nothing = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  (typeof value === "string" && /^(?:|none\.?|n\/a)$/i.test(value.trim())) ||
  (Array.isArray(value) && value.every(nothing))

export const lint = (front: JsonObject, report: Report): void => {
  lintHuman(front, report)
  const guidance = object(front, "use_guidance")
  const isAction = front["type"] === "action"
  if (isAction && guidance["side_effects"] === undefined)
    report.warn(
      "aml-side-effects-absent",
      "use_guidance.side_effects",
      "an action says what it does to the world",
      "write its consequences as a list",
    )
  else if (isAction && nothing(guidance["side_effects"]))
    report.warn(
      "aml-side-effects-none",
      "use_guidance.side_effects",
      "an action has effects, and this one says that it has none",
      "write its consequences, or `type: retrieval`",
    )
  for (const key of ["use_when", "avoid_when"])
    if (texts(guidance, key).length === 0 && (optionalText(guidance, key) ?? "") === "")
      report.warn("aml-guidance-absent", `use_guidance.${key}`, `\`${key}\` is missing`, "write when, as a list")
  if (front["status"] === "deprecated" && optionalText(object(front, "meta"), "last_updated") === undefined)
    report.warn(
      "aml-deprecated-undated",
      "meta.last_updated",
      "a deprecated tool says since when",
      "write `last_updated: 2026-01-31`",
    )
}
