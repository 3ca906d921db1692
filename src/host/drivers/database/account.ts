/** Whom a database is asked as: a secret of the vault, read. Pure. */
import type { JsonValue } from "../../../manifest/types.ts"

export interface Account {
  readonly user: string
  readonly password: string
}

/** A service account is a JSON object in the vault. */
export const accountOf = (secret: string): Account | undefined => {
  let value: JsonValue
  try {
    value = JSON.parse(secret) as JsonValue
  } catch {
    return undefined
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined
  const { user, username, password } = value as Readonly<Record<string, JsonValue>>
  const name = user ?? username
  return typeof name === "string" && typeof password === "string" ? { user: name, password } : undefined
}
