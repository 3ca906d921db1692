/**
 * The secrets of one request: fetched when it is made, gone when it is over, and found wherever they come back.
 *
 * Guarantees: what a service reflects of them is overwritten, in bytes before they are read and in values after they were
 * parsed, whatever escapes stood between. Does not: see values of fewer than six bytes, or what is derived from one.
 */
import { spellingsOf } from "../../../egress-proxy/secrets/scrub.ts"
import type { JsonValue } from "../../../manifest/types.ts"
import type { Answer, Desk } from "../kind.ts"

export interface HeldSecrets {
  readonly values: Readonly<Record<string, string>>
  /** the byte strings that give one away */
  readonly spellings: readonly Buffer[]
}

export const fetchSecrets = async (
  desk: Desk,
  names: readonly string[],
  { driver, host }: { readonly driver: string; readonly host: string },
): Promise<Answer<HeldSecrets>> => {
  const values: Record<string, string> = {}
  for (const name of names) {
    const value = await desk.secret(name, host)
    if (value === undefined || value === "")
      return {
        ok: false,
        code: "auth_required",
        message: `${driver} needs the secret ${name}, which this host does not hold, or not for ${host}`,
        details: { driver, env: [name] },
      }
    values[name] = value
  }
  return { ok: true, value: { values, spellings: Object.values(values).flatMap(spellingsOf) } }
}

/** Does a text give one away, whatever the case of its letters? */
export const givesAway = (text: string, { spellings }: HeldSecrets): boolean => {
  const lower = text.toLowerCase()
  return spellings.some((spelling) => lower.includes(spelling.toString("latin1").toLowerCase()))
}

const MASK = "******"
/** A shorter one would be found in everything. */
const LEAST = 6

export const cleanText = (text: string, { values }: HeldSecrets): string =>
  Object.values(values).reduce((left, secret) => (secret.length < LEAST ? left : left.replaceAll(secret, MASK)), text)

/** A parsed value without them, keys included. */
export const withoutSecrets = (value: JsonValue, secrets: HeldSecrets): JsonValue => {
  if (secrets.spellings.length === 0) return value
  const clean = (text: string): string => cleanText(text, secrets)
  // No deeper than what the parser of outputs lets through.
  const visit = (at: JsonValue): JsonValue => {
    if (typeof at === "string") return clean(at)
    if (typeof at !== "object" || at === null) return at
    if (Array.isArray(at)) return (at as readonly JsonValue[]).map(visit)
    return Object.fromEntries(Object.entries(at).map(([key, inner]) => [clean(key), visit(inner as JsonValue)]))
  }
  return visit(value)
}
