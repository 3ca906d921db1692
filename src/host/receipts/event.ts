/**
 * One line of the audit log: the AIP-7 audit-event, closed, hashed and chained.
 *
 * Guarantees: `sealEvent` yields an entry whose `hash` is the lower-case SHA-256 of the JCS form of all its other
 * fields, and `parseEvent` accepts nothing that the closed schema does not allow; what it would not accept is not sealed.
 * Pure: no clock, no disk.
 * Does not: decide what goes into `metadata`; that is `receipt.ts`.
 */
import { createHash } from "node:crypto"
import { jcs } from "../../manifest/values/digest.ts"
import type { JsonObject, JsonValue } from "../../manifest/types.ts"

export const GENESIS = "GENESIS"

export interface AuditEvent {
  readonly $schema: "agentgovernance/v1"
  readonly doctype: "audit-event"
  readonly seq: number
  readonly ts: string
  readonly actor: { readonly id: string; readonly role?: string }
  readonly action: string
  readonly subject: { readonly kind: string; readonly ref?: string; readonly path?: string }
  readonly input?: JsonObject
  readonly output?: JsonObject
  readonly policy?: { readonly ref: string; readonly decision: "allow" | "deny" | "require-approval" | "escalate" }
  readonly signatures?: readonly string[]
  readonly prevHash: string
  readonly hash: string
  readonly hashAlg: "sha256"
  readonly metadata?: JsonObject
}

/** What a writer brings along; the log adds its place in the chain. */
export type EventDraft = Omit<AuditEvent, "$schema" | "doctype" | "seq" | "ts" | "prevHash" | "hash" | "hashAlg">

interface ChainPlace {
  readonly seq: number
  readonly prevHash: string
  readonly ts: string
}

const hashOf = (entry: object): string =>
  createHash("sha256")
    .update(jcs(entry as JsonObject))
    .digest("hex")

export const hashOfEvent = (event: AuditEvent): string => {
  const { hash: _hash, ...body } = event
  return hashOf(body)
}

const LONGEST = { name: 256, path: 1024 } as const
const allowed = new Set([
  "$schema",
  "doctype",
  "seq",
  "ts",
  "actor",
  "action",
  "subject",
  "input",
  "output",
  "policy",
  "signatures",
  "prevHash",
  "hash",
  "hashAlg",
  "metadata",
])
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
const isText = (value: unknown, longest: number): value is string =>
  typeof value === "string" && value.length > 0 && value.length <= longest
const onlyKeys = (value: Record<string, unknown>, keys: readonly string[]): boolean =>
  Object.keys(value).every((key) => keys.includes(key))
const decisions: readonly unknown[] = ["allow", "deny", "require-approval", "escalate"]
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/
const ACTION = /^[a-z][a-z0-9._-]*[a-z0-9]$/
const HASH = /^[0-9a-f]{64}$/

/** Why a value is no audit-event, or undefined when it is one. */
const problemOf = (value: unknown): string | undefined => {
  if (!isObject(value)) return "the line is not an object"
  const foreign = Object.keys(value).find((key) => !allowed.has(key))
  if (foreign !== undefined) return `unknown field \`${foreign}\``
  if (value["$schema"] !== "agentgovernance/v1" || value["doctype"] !== "audit-event")
    return "`$schema` or `doctype` is not that of an audit event"
  if (!Number.isSafeInteger(value["seq"]) || (value["seq"] as number) < 0) return "`seq` is not a whole number"
  if (typeof value["ts"] !== "string" || !DATE_TIME.test(value["ts"]) || Number.isNaN(Date.parse(value["ts"])))
    return "`ts` is not a date-time"
  const { actor, subject, policy, signatures } = value
  if (!isObject(actor) || !onlyKeys(actor, ["id", "role"]) || !isText(actor["id"], LONGEST.name))
    return "`actor` is malformed"
  if (!isText(value["action"], 128) || !ACTION.test(value["action"])) return "`action` is malformed"
  if (!isObject(subject) || !onlyKeys(subject, ["kind", "ref", "path"]) || !isText(subject["kind"], 32))
    return "`subject` is malformed"
  if (subject["ref"] !== undefined && !isText(subject["ref"], LONGEST.name)) return "`subject.ref` is malformed"
  if (subject["path"] !== undefined && !isText(subject["path"], LONGEST.path)) return "`subject.path` is malformed"
  for (const key of ["input", "output", "metadata"])
    if (value[key] !== undefined && !isObject(value[key])) return `\`${key}\` is not an object`
  if (
    policy !== undefined &&
    (!isObject(policy) ||
      !onlyKeys(policy, ["ref", "decision"]) ||
      !isText(policy["ref"], 256) ||
      !decisions.includes(policy["decision"]))
  )
    return "`policy` is malformed"
  if (signatures !== undefined && !(Array.isArray(signatures) && signatures.every((path) => isText(path, 1024))))
    return "`signatures` is malformed"
  if (value["hashAlg"] !== "sha256") return "`hashAlg` is not sha256"
  if (value["prevHash"] !== GENESIS && !(typeof value["prevHash"] === "string" && HASH.test(value["prevHash"])))
    return "`prevHash` is malformed"
  if (typeof value["hash"] !== "string" || !HASH.test(value["hash"])) return "`hash` is malformed"
  return undefined
}

const fitting = (text: string, instead: string): string =>
  text.toWellFormed().slice(0, LONGEST.name).toWellFormed() || instead

/** Names that a caller or a manifest brought along, as the schema has room for them. */
const fitted = ({ actor, subject, ...rest }: EventDraft): EventDraft => {
  const { ref, path, ...kind } = subject
  const isPath = path !== undefined && isText(path.toWellFormed(), LONGEST.path)
  return {
    ...rest,
    actor: { ...actor, id: fitting(actor.id, "unknown") },
    subject: {
      ...kind,
      ...(ref === undefined ? {} : { ref: fitting(ref, "?") }),
      ...(isPath ? { path: path.toWellFormed() } : {}),
    },
  }
}

/** The entry and the exact line (with its newline) that goes to disk. Throws for one that nobody could read there. */
export const sealEvent = (draft: EventDraft, place: ChainPlace): { event: AuditEvent; line: string } => {
  const body = {
    $schema: "agentgovernance/v1",
    doctype: "audit-event",
    ...fitted(draft),
    ...place,
    hashAlg: "sha256",
  } as const
  const event: AuditEvent = { ...body, hash: hashOf(body) }
  const problem = problemOf(event)
  if (problem !== undefined) throw new TypeError(`an entry that is none: ${problem}`)
  return { event, line: `${jcs(event as unknown as JsonObject)}\n` }
}

type ParsedEvent = { readonly ok: true; readonly event: AuditEvent } | { readonly ok: false; readonly message: string }

export const parseEvent = (line: string): ParsedEvent => {
  let value: JsonValue
  try {
    value = JSON.parse(line) as JsonValue
  } catch {
    return { ok: false, message: "the line is not JSON" }
  }
  const problem = problemOf(value)
  return problem === undefined ? { ok: true, event: value as unknown as AuditEvent } : { ok: false, message: problem }
}
