/**
 * AIP-38 (`policy/v1`) → GrantSet: who may do what, under which conditions, until when.
 *
 * Guarantees: what this host cannot read is kept under its name as something that does not hold (a condition that is not
 * known or not readable skips its grant, a requirement denies), so that no reader can pass over it; a grant that ends
 * says when, and one whose end cannot be told has ended. Does not: evaluate anything.
 */
import { isIP } from "node:net"
import type { Context } from "../values/context.ts"
import { joinPath, shown } from "../values/diagnostics.ts"
import {
  defined,
  flag,
  isObject,
  object,
  objects,
  optionalNumber,
  optionalText,
  text,
  texts,
} from "../values/fields.ts"
import type { JsonObject, JsonValue } from "../base-types.ts"

const PRINCIPAL_SCHEMES = ["operator", "user", "org", "guild", "bot", "group", "role"] as const
export type Principal =
  /** `*` */
  | { readonly kind: "anyone" }
  /** `user://ana`, `user://current`, `role://owner` */
  | { readonly kind: "scheme"; readonly scheme: (typeof PRINCIPAL_SCHEMES)[number]; readonly name: string }
  | { readonly kind: "ref"; readonly ref: string }
  | { readonly kind: "file"; readonly file: string }
  | { readonly kind: "person"; readonly name: string; readonly email: string }
  /** an object of another form: it is nobody */
  | { readonly kind: "unknown" }

export type GrantCondition =
  | { readonly kind: "during-business-hours"; readonly timezone: string }
  | { readonly kind: "ip-range"; readonly address: string; readonly prefix: number }
  | { readonly kind: "mfa-recent"; readonly withinSeconds: number }
  | { readonly kind: "approval-from"; readonly role: string; readonly count: number }
  | { readonly kind: "signed-by"; readonly role: string }
  /** not known here, or not readable: it never holds */
  | { readonly kind: "unknown"; readonly name: string }

export interface Grant {
  readonly id?: string
  readonly principal: Principal
  /** `action` may end in `*` */
  readonly actions: readonly { readonly action: string; readonly scope?: string }[]
  /** all of them must hold */
  readonly conditions: readonly GrantCondition[]
  /** epoch milliseconds; 0 where `ttl_seconds` has no readable start, which counts as ended */
  readonly endsAt?: number
  readonly grantedBy?: Principal
  readonly revoked: boolean
}

export interface PolicyLimit {
  readonly kind: "max-concurrent-sandboxes" | "rate-tool-calls" | "max-egress-bytes-per-day"
  readonly value: number
  readonly scope?: string
  readonly per?: "second" | "minute" | "hour" | "day"
  /** actions; empty: all */
  readonly appliesTo: readonly string[]
}

export interface GrantSet {
  readonly version?: string
  readonly default: "allow" | "deny"
  readonly grants: readonly Grant[]
  /** limits of known kinds; others are reported and not here */
  readonly limits: readonly PolicyLimit[]
  /** each must be met; this host knows none, so each denies */
  readonly requirements: readonly { readonly kind: string; readonly appliesTo: readonly string[] }[]
  /** behaviour of other blocks, by block; open by the specification */
  readonly defaults: JsonObject
}

const CONDITIONS = ["during-business-hours", "ip-range", "mfa-recent", "approval-from", "signed-by"]
const LIMITS = ["max-concurrent-sandboxes", "rate-tool-calls", "max-egress-bytes-per-day"] as const

function isTimezone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone.length > 0
  } catch {
    return false
  }
}

/** `10.0.0.0/8`, `2001:db8::/32`, or one address. */
function readRange(cidr: string): { readonly address: string; readonly prefix: number } | undefined {
  const [, address = "", bits] = /^([0-9A-Fa-f:.]{2,45})(?:\/(\d{1,3}))?$/.exec(cidr) ?? []
  const most = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1
  const prefix = bits === undefined ? most : Number(bits)
  return most < 0 || prefix > most ? undefined : { address, prefix }
}

const positive = (from: JsonObject, key: string): number | undefined => {
  const value = optionalNumber(from, key)
  return value !== undefined && Number.isSafeInteger(value) && value > 0 ? value : undefined
}

/** A condition whose fields say what its kind needs; undefined when they do not. */
function knownCondition(entry: JsonObject): GrantCondition | undefined {
  const role = optionalText(entry, "role") ?? ""
  switch (text(entry, "kind")) {
    case "during-business-hours": {
      const timezone = text(entry, "timezone")
      return isTimezone(timezone) ? { kind: "during-business-hours", timezone } : undefined
    }
    case "ip-range": {
      const range = readRange(text(entry, "cidr"))
      return range === undefined ? undefined : { kind: "ip-range", ...range }
    }
    case "mfa-recent": {
      const withinSeconds = positive(entry, "within_seconds")
      return withinSeconds === undefined ? undefined : { kind: "mfa-recent", withinSeconds }
    }
    case "approval-from": {
      const count = entry["count"] === undefined ? 1 : positive(entry, "count")
      return role === "" || count === undefined ? undefined : { kind: "approval-from", role, count }
    }
    case "signed-by":
      return role === "" ? undefined : { kind: "signed-by", role }
    default:
      return undefined
  }
}

function readCondition(entry: JsonObject, path: string, context: Context): GrantCondition {
  const known = knownCondition(entry)
  if (known !== undefined) return known
  const name = text(entry, "kind")
  if (CONDITIONS.includes(name))
    context.report.warn(
      "condition-unreadable",
      path,
      `the condition \`${name}\` lacks what it needs to be checked; the grant is skipped`,
      "give it `timezone`, `cidr`, `within_seconds`, `role` or `count`, as its kind needs",
    )
  else
    context.report.warn(
      "condition-unknown",
      path,
      `the condition \`${shown(name, 40)}\` is not known; the grant is skipped`,
      `use one of ${CONDITIONS.join(", ")}`,
    )
  return { kind: "unknown", name }
}

function readPrincipal(value: JsonValue | undefined, path: string, context: Context): Principal {
  if (value === "*") return { kind: "anyone" }
  if (typeof value === "string") {
    const [, scheme, name = ""] = /^([a-z]+):\/\/(\S+)$/.exec(value) ?? []
    const known = PRINCIPAL_SCHEMES.find((each) => each === scheme)
    if (known !== undefined) return { kind: "scheme", scheme: known, name }
  } else if (isObject(value)) {
    const [ref, file, name, email] = ["ref", "file", "name", "email"].map((key) => optionalText(value, key))
    if (ref !== undefined) return { kind: "ref", ref }
    if (file !== undefined) return { kind: "file", file }
    if (name !== undefined && email !== undefined) return { kind: "person", name, email }
  }
  context.report.warn(
    "principal-unknown",
    path,
    `\`${shown(value, 60)}\` names nobody; it is granted to no one`,
    "write a principal such as `user://ana`, `role://owner` or `*`",
  )
  return { kind: "unknown" }
}

const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/

function readEnd(grant: JsonObject, at: string, context: Context): number | undefined {
  const start = optionalText(grant, "granted_at")
  const startsAt = start === undefined || !DATE_TIME.test(start) ? Number.NaN : Date.parse(start)
  if (start !== undefined && Number.isNaN(startsAt))
    context.report.warn(
      "grant-start-unreadable",
      `${at}.granted_at`,
      `\`${shown(start, 40)}\` is not a date with a time`,
      "write it as in `2026-01-31T09:00:00Z`",
    )
  const seconds = optionalNumber(grant, "ttl_seconds")
  if (seconds === undefined) return undefined
  if (start === undefined)
    context.report.warn(
      "grant-without-start",
      `${at}.granted_at`,
      "`ttl_seconds` without `granted_at` counts as expired",
      "add `granted_at:`",
    )
  return Number.isNaN(startsAt) ? 0 : startsAt + seconds * 1000
}

const readGrant = (grant: JsonObject, at: string, context: Context): Grant =>
  defined({
    id: optionalText(grant, "id"),
    principal: readPrincipal(grant["principal"], `${at}.principal`, context),
    actions: objects(grant, "actions").map((entry) =>
      defined({ action: text(entry, "action"), scope: optionalText(entry, "scope") }),
    ),
    endsAt: readEnd(grant, at, context),
    conditions: objects(grant, "conditions").map((entry, j) =>
      readCondition(entry, joinPath(`${at}.conditions`, j), context),
    ),
    grantedBy:
      grant["granted_by"] === undefined ? undefined : readPrincipal(grant["granted_by"], `${at}.granted_by`, context),
    revoked: flag(grant, "revoked"),
  })

function readLimit(entry: JsonObject, path: string, context: Context): readonly PolicyLimit[] {
  const kind = LIMITS.find((known) => known === entry["kind"])
  if (kind !== undefined)
    return [
      defined({
        kind,
        value: optionalNumber(entry, "value") ?? 0,
        scope: optionalText(entry, "scope"),
        per: optionalText(entry, "per") as PolicyLimit["per"] | undefined,
        appliesTo: texts(entry, "applies_to"),
      }),
    ]
  context.report.warn(
    "limit-unknown",
    path,
    `the limit \`${shown(text(entry, "kind"), 40)}\` is not known and not enforced`,
    `use one of ${LIMITS.join(", ")}`,
  )
  return []
}

export function readGrants(front: JsonObject, context: Context): GrantSet {
  const { report } = context
  const id = optionalText(front, "id")
  if (id !== undefined && id.split("/").length > 2) {
    const say = context.mode === "strict" ? report.error : report.lenient
    say("policy-id-segments", "id", `\`${shown(id)}\` has more than two segments`, "write `@owner/name`")
  }
  if (front["default"] === "allow")
    report.warn(
      "policy-default-allow",
      "default",
      "`default: allow` grants whatever no rule speaks about",
      "write `default: deny` and grant what is needed",
    )
  return defined({
    version: optionalText(front, "version"),
    default: front["default"] === "allow" ? ("allow" as const) : ("deny" as const),
    grants: objects(front, "grants").map((grant, i) => readGrant(grant, joinPath("grants", i), context)),
    requirements: objects(front, "requirements").map((entry, i) => {
      const kind = text(entry, "kind")
      report.warn(
        "requirement-unknown",
        joinPath("requirements", i),
        `the requirement \`${shown(kind, 40)}\` cannot be met by this host; it denies`,
        "remove it, or use an approval",
      )
      return { kind, appliesTo: texts(entry, "applies_to") }
    }),
    limits: objects(front, "limits").flatMap((entry, i) => readLimit(entry, joinPath("limits", i), context)),
    defaults: object(front, "defaults"),
  })
}
