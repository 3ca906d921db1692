/**
 * Where a secret lies in a key-value engine: `<prefix>/<scope>/<slug>`, and back. Pure.
 *
 * Guarantees: what is read back is what was written; a name in the engine that this host would not have written is nobody's.
 * A scope is one segment that a person can write too: `shared`, `user=alice`, `driver=…,workspace=…,user=…`.
 */
import { isSlug, type SecretScope } from "../vault.ts"

const FIELDS = ["driver", "workspace", "user"] as const
const SHARED = "shared"

/** What separates fields, and what separates segments, is written by its number. */
const encode = (text: string): string => encodeURIComponent(text).replaceAll(".", "%2E")

const decode = (text: string): string | undefined => {
  try {
    const plain = decodeURIComponent(text)
    return encode(plain) === text ? plain : undefined
  } catch {
    return undefined
  }
}

const segmentOf = (scope: SecretScope): string => {
  const fields = FIELDS.flatMap((field) => {
    const value = scope[field]
    return value === undefined ? [] : [`${field}=${encode(value)}`]
  })
  return fields.length === 0 ? SHARED : fields.join(",")
}

/** Undefined: this host writes no such segment. */
export const scopeOf = (segment: string): SecretScope | undefined => {
  const scope: { -readonly [field in keyof SecretScope]: SecretScope[field] } = {}
  if (segment !== SHARED)
    for (const part of segment.split(",")) {
      const at = part.indexOf("=")
      const field = FIELDS.find((each) => each === part.slice(0, at))
      const value = decode(part.slice(at + 1))
      if (field === undefined || value === undefined || value === "") return undefined
      scope[field] = value
    }
  return segmentOf(scope) === segment ? scope : undefined
}

/** The segments below the prefix; undefined where it is no secret's name. */
export const placeOf = (slug: string, scope: SecretScope): readonly string[] | undefined =>
  isSlug(slug) ? [segmentOf(scope), ...slug.split("/")] : undefined
