/**
 * Which part of a secret's value is meant, where it has several (AIP-19: oauth, keypair, json). Pure.
 *
 * Guarantees: an exposure that names a field gets that field alone; without one, a login's secret is its access token and a
 * pair of keys its private one, so that a refresh token leaves the vault only for whoever asks for it by name. A value that
 * does not have the form of its kind is told by name, never shown.
 */
import type { SecretEntry } from "../../manifest/types.ts"
import type { Failure } from "../failure.ts"
import { Secret } from "./secret.ts"
import type { VaultAnswer } from "./vault.ts"

const USUAL: Readonly<Partial<Record<SecretEntry["secretKind"], string>>> = {
  oauth: "accessToken",
  keypair: "private",
}

export interface Field {
  readonly name: string
  /** nobody asked for it by name: a value that is no JSON is taken to be it */
  readonly usual: boolean
}

/** Undefined: all of it. `asked`: the field that a file of it is to hold. */
export const fieldFor = (entry: SecretEntry | undefined, variable: string, asked?: string): Field | undefined => {
  if (entry === undefined) return undefined
  if (asked !== undefined) return { name: asked, usual: false }
  const named = entry.exposures.find((exposure) => exposure.kind === "env" && exposure.name === variable)
  if (named?.kind === "env" && named.field !== undefined) return { name: named.field, usual: false }
  const name = USUAL[entry.secretKind]
  return name === undefined ? undefined : { name, usual: true }
}

const unfit = (slug: string, what: string): Failure => ({
  ok: false,
  code: "auth_required",
  message: `the secret ${slug} ${what}`,
  hint: `set it as JSON text with that field: \`caisson secrets set ${slug}\``,
  details: { secrets: [slug] },
})

/** A number is told as it is written; anything else that is no text is JSON. */
const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value))

export const pickField = (slug: string, value: Secret, wanted: Field | undefined): VaultAnswer<Secret> => {
  if (wanted === undefined) return { ok: true, value }
  const { name: field, usual } = wanted
  let parsed: unknown
  try {
    parsed = JSON.parse(value.reveal())
  } catch {
    if (usual) return { ok: true, value }
    return unfit(slug, `is no JSON text, and its field \`${field}\` is wanted`)
  }
  if (typeof parsed !== "object" || parsed === null || !Object.hasOwn(parsed, field))
    return unfit(slug, `has no field \`${field}\``)
  const found = (parsed as Record<string, unknown>)[field]
  if (found === null || found === "") return unfit(slug, `has an empty field \`${field}\``)
  return { ok: true, value: new Secret(textOf(found)) }
}
