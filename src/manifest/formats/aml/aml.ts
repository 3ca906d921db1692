/**
 * AML "Tool Definition Specification" (`*.tool.md`) → a TOOL.md, and the driver that its transport amounts to.
 *
 * Guarantees: the twelve hard failures refuse the file; what AML cannot say (what of a workspace is changed, hosts of
 * functions and databases) is closed until the operator's annotation says it. The body is never read.
 */
import type { JsonObject } from "../../base-types.ts"
import { limits } from "../../limits.ts"
import { isObject, list, object, optionalNumber, optionalText, text, texts } from "../../values/fields.ts"
import { annotated, tellClosed } from "../annotations.ts"
import type { Document, Format, FormatContext, Translation } from "../format.ts"
import { aipId } from "../ids.ts"
import { checkFields } from "../unknown.ts"
import { checkHard, lint, specVersion } from "./checks.ts"
import { readCredentials } from "./credentials.ts"
import { amlFields } from "./fields.ts"
import { type Reached, readTransport } from "./transport.ts"

const MOST_TEXT = 2000

const guidanceText = (front: JsonObject): string => {
  const guidance = object(front, "use_guidance")
  const part = (title: string, key: string): readonly string[] => {
    const said = texts(guidance, key)
    const alone = optionalText(guidance, key)
    const all = alone === undefined ? said : [alone]
    return all.length === 0 ? [] : [`${title}: ${all.join("; ")}`]
  }
  return [
    ...part("Use when", "use_when"),
    ...part("Avoid when", "avoid_when"),
    ...part("Side effects", "side_effects"),
  ].join("\n")
}

const describe = (front: JsonObject): string => {
  const whole = `${text(object(front, "meta"), "description")}\n\n${guidanceText(front)}`.trim()
  return whole.length > MOST_TEXT ? `${whole.slice(0, MOST_TEXT - 1).toWellFormed()}…` : whole
}

/** What each type of behaviour amounts to; AML does not say more of effects. */
const behaviour = (front: JsonObject, { hosts }: Reached): JsonObject => {
  const type = text(front, "type")
  const outside = hosts.map((host) => `external:${host.replace(/^tcp:\/\//, "")}`)
  if (type === "action")
    return { mutates: outside.length > 0 ? outside : ["external:unstated"], approval: "on-mutate", risk_level: 2 }
  // The answer itself is the yes: nothing happens before a person gives it.
  if (type === "human") return { approval: "auto", risk_level: 0, timeout_ms: limits.humanWaitMs }
  return { approval: "auto", risk_level: 0, idempotent: true }
}

const errorsOf = (front: JsonObject): readonly JsonObject[] =>
  Object.entries(object(front, "error_codes")).map(([code, said]) => {
    const row = isObject(said) ? said : {}
    const status = /^[1-5]\d\d$/.test(code) ? { status: Number(code) } : { code }
    const meaning = optionalText(row, "meaning")
    const action = optionalText(row, "agent_action")
    return { ...status, ...(meaning === undefined ? {} : { meaning }), ...(action === undefined ? {} : { action }) }
  })

/** A person is asked, whatever else the file says of how. */
const isHuman = (front: JsonObject): boolean => text(front, "type") === "human"
const HUMAN: Reached = {
  hosts: [],
  driver: { top: { kind: "builtin" }, call: { builtin: { host_id: "caisson.human" } } },
}

const retryOf = (front: JsonObject): { readonly retry?: JsonObject; readonly onStatus?: readonly number[] } => {
  const transport = object(front, "transport")
  if (text(transport, "type") !== "rest-api" || isHuman(front)) return {}
  const policy = object(transport, "retry_policy")
  const most = optionalNumber(policy, "max_attempts") ?? 3
  const statuses = policy["on_status"]
  return {
    retry: { max_attempts: most, backoff: "exponential", initial_ms: 200 },
    ...(Array.isArray(statuses)
      ? { onStatus: list(policy, "on_status").filter((each): each is number => typeof each === "number") }
      : {}),
  }
}

const TAG = /^[a-z0-9][a-z0-9-]*$/

const toolFront = (front: JsonObject, id: string, reached: Reached): JsonObject => {
  const meta = object(front, "meta")
  const transport = object(front, "transport")
  const { retry, onStatus } = retryOf(front)
  const timeout = text(transport, "type") === "rest-api" ? (optionalNumber(transport, "timeout_ms") ?? 5000) : undefined
  const errors = errorsOf(front)
  return {
    name: text(meta, "name"),
    id,
    description: describe(front),
    version: text(front, "version"),
    inputs: object(object(front, "interface"), "input"),
    outputs: object(object(front, "interface"), "output"),
    ...(timeout === undefined ? {} : { timeout_ms: timeout }),
    ...behaviour(front, reached),
    requires: { network: [...reached.hosts] },
    ...(retry === undefined ? {} : { retry }),
    tags: [...new Set(["aml", ...texts(meta, "tags").filter((tag) => TAG.test(tag))])],
    metadata: {
      origin: {
        format: "aml",
        id: text(front, "tool_id"),
        spec_version: specVersion(front),
        type: text(front, "type"),
        owner: text(meta, "owner"),
        ...(optionalText(meta, "last_updated") === undefined ? {} : { last_updated: text(meta, "last_updated") }),
        ...(["lambda", "message-queue"].includes(text(transport, "type")) ? { transport } : {}),
      },
      operation: {
        status: text(front, "status"),
        ...(errors.length === 0 ? {} : { errors }),
        ...(onStatus === undefined ? {} : { retry_on_status: [...onStatus] }),
      },
    },
  }
}

const driverFront = (front: JsonObject, id: string, { driver }: Reached): JsonObject | undefined => {
  if (driver === undefined) return undefined
  const version = text(front, "version")
  return {
    name: text(object(front, "meta"), "name"),
    id: `${id}-driver`,
    description: `Serves ${id} as its AML file says.`,
    version,
    ...driver.top,
    implements: [{ tool: id, version: `^${version}`, metadata: driver.call }],
  }
}

const closedIn = (front: JsonObject, { hosts }: Reached): readonly string[] => {
  const type = text(object(front, "transport"), "type")
  const unsaid =
    hosts.length === 0 && (type === "" || type === "database" || type === "lambda" || type === "message-queue")
  return isHuman(front)
    ? []
    : [
        ...(text(front, "type") === "action" ? ["what of a workspace it changes"] : []),
        ...(unsaid ? ["which hosts it reaches"] : []),
      ]
}

const read = (bytes: Uint8Array, context: FormatContext): Translation => {
  const { report } = context
  const front = context.frontmatter(bytes, report)
  if (front === undefined) return {}
  const written = optionalText(front, "tool_id")
  const sound = checkHard(front, context)
  const id = written === undefined ? undefined : aipId(written, "tool_id", report)
  checkFields(front, amlFields, context)
  lint(front, report)
  if (!sound || id === undefined) return id === undefined ? {} : { id }
  const annotation = context.annotation(id)
  const inputs = object(object(front, "interface"), "input")
  const reached = isHuman(front)
    ? HUMAN
    : readTransport(front, inputs, readCredentials(front, id, report), { id, annotation }, report)
  if (report.failed) return { id }
  if (text(front, "status") === "draft")
    report.warn("aml-draft", "status", "a draft is served as it is; nobody has approved it", "write `status: active`")
  if (annotation === undefined) tellClosed(id, closedIn(front, reached), "type", report)
  const driver = driverFront(front, id, reached)
  const tool: Document = { doctype: "tool", front: annotated(toolFront(front, id, reached), annotation), from: TOOL }
  return {
    id,
    documents: [tool, ...(driver === undefined ? [] : [{ doctype: "driver", front: driver, from: DRIVER } as const])],
  }
}

const TOOL: Document["from"] = [
  ["inputs", "interface.input"],
  ["outputs", "interface.output"],
  ["name", "meta.name"],
  ["description", "meta.description"],
  ["id", "tool_id"],
  ["version", "version"],
  ["timeout_ms", "transport.timeout_ms"],
  ["retry.max_attempts", "transport.retry_policy.max_attempts"],
  ["metadata.operation.errors", "error_codes"],
  ["metadata.operation.retry_on_status", "transport.retry_policy.on_status"],
  ["metadata.operation.status", "status"],
  ["mutates", "type"],
  ["approval", "type"],
]
const DRIVER: Document["from"] = [
  ["base_url", "transport.base_url"],
  ["network", "transport"],
  ["server", "transport.url"],
  ["protocol_version", "transport.protocol_version"],
  ["auth", "transport.credentials"],
  ["implements[0].metadata.http", "transport.endpoint"],
  ["implements[0].metadata.mcp", "transport.tool_name"],
  ["version", "version"],
  ["", "transport"],
]

export const aml: Format = {
  id: "aml",
  title: "AML Tool Definition Specification",
  files: "*.tool.md",
  owns: (name) => name.endsWith(".tool.md") && name !== ".tool.md",
  fields: amlFields,
  read,
}
