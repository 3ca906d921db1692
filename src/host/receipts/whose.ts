/**
 * Whose an entry of the log is, and who may be told of it.
 *
 * Guarantees: pure, and from the entry itself. Of a call it is whose call it was, as the host wrote it down; an entry of
 * the host's own that names no tenant is told to operators of this host alone. A caller is told of what is its user's, an
 * operator of all of its tenant.
 */
import type { JsonObject } from "../../manifest/types.ts"
import { type Caller, isOperator, mayActForUser, OWN_TENANT, tenantOf } from "../access/caller.ts"
import type { AuditEvent } from "./event.ts"

interface Whose {
  readonly tenant: string
  /** "": nobody's in particular */
  readonly user: string
}

/** Written down of every tenant but this host's own. */
export const tenantFact = (caller: Pick<Caller, "tenant">): JsonObject =>
  tenantOf(caller) === OWN_TENANT ? {} : { tenant: tenantOf(caller) }

const textAt = (facts: JsonObject, key: string): string | undefined => {
  const value = facts[key]
  return typeof value === "string" ? value : undefined
}

export const whoseEntry = ({ actor, metadata = {} }: Pick<AuditEvent, "actor" | "metadata">): Whose => {
  const tenant = textAt(metadata, "tenant")
  const isCalls = typeof metadata["call"] === "string"
  if (!isCalls && tenant === undefined) return { tenant: OWN_TENANT, user: "" }
  const caller = metadata["caller"] as JsonObject | undefined
  const named = textAt(metadata, "user_id") ?? (caller === undefined ? undefined : textAt(caller, "for"))
  return { tenant: tenant ?? OWN_TENANT, user: named ?? (actor.role === "host" ? "" : actor.id) }
}

/** Of a caller's own tenant, the one user whose entries it is told; `undefined`: everybody's; `""`: nobody's. */
export const userToldTo = (caller: Caller): string | undefined =>
  isOperator(caller) ? undefined : mayActForUser(caller) ? caller.user : ""

export const mayBeTold = (event: AuditEvent, caller: Caller): boolean => {
  const { tenant, user } = whoseEntry(event)
  if (tenant !== tenantOf(caller)) return false
  const only = userToldTo(caller)
  return only === undefined || (only !== "" && only === user)
}
