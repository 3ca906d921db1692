/**
 * SECRETS.md (AIP-19) → SecretsInventory: which secrets there are, never what they are.
 *
 * Guarantees: an entry that carries a value under any name is refused before anything else looks at it, naming the
 * field and not the value; slugs are unique; unknown kinds of access and exposure are kept out and reported.
 */
import { sourceOf } from "../values/context.ts"
import type { Context } from "../values/context.ts"
import { checkCredentials } from "../values/credentials.ts"
import { joinPath, shown } from "../values/diagnostics.ts"
import { defined, isObject, object, objects, optionalText, text, texts, without } from "../values/fields.ts"
import { deepFreeze } from "../values/freeze.ts"
import { readAccess, readAudit, readEnvBindings, readExposures } from "../policies/secret-rules.ts"
import { checkShape } from "../schema/shape.ts"
import type { JsonObject, SecretEntry, SecretsInventory } from "../types.ts"

const VALUE_KEYS = ["value", "plaintext", "ciphertext", "secret", "data", "key", "token"]

function refuseValues(front: JsonObject, context: Context): boolean {
  let clean = true
  objects(front, "secrets").forEach((entry, i) => {
    for (const key of VALUE_KEYS.filter((name) => Object.hasOwn(entry, name))) {
      clean = false
      context.report.error(
        "secret-value",
        joinPath(joinPath("secrets", i), key),
        `\`${key}\` would put a secret's value into a manifest`,
        "remove it, and treat the value as leaked; a manifest holds names alone, as in `slug: api-key`",
      )
    }
  })
  return clean
}

function readEntry(entry: JsonObject, path: string, context: Context): SecretEntry {
  return defined({
    slug: text(entry, "slug"),
    name: text(entry, "name"),
    description: text(entry, "description"),
    secretKind: (optionalText(entry, "kind") ?? "opaque") as SecretEntry["secretKind"],
    backend: optionalText(entry, "backend"),
    access: {
      reveal: readAccess(entry, "reveal", path, context),
      bind: readAccess(entry, "bind", path, context),
      rotate: readAccess(entry, "rotate", path, context),
    },
    audit: readAudit(entry),
    exposures: readExposures(entry, path, context),
    env: readEnvBindings(entry, path, context),
    tags: texts(entry, "tags"),
    metadata: object(entry, "metadata"),
  })
}

/** The front matter with the forbidden values gone, so that no later message or digest can carry them. */
const withoutValues = (front: JsonObject): JsonObject => ({
  ...front,
  ...(Array.isArray(front["secrets"])
    ? { secrets: front["secrets"].map((e: unknown) => (isObject(e) ? without(e, VALUE_KEYS) : null)) }
    : {}),
})

export function readSecrets(written: JsonObject, context: Context): SecretsInventory | undefined {
  const { report } = context
  if (!refuseValues(written, context)) {
    checkShape("secrets", withoutValues(written), report)
    return undefined
  }
  checkCredentials(written, report)
  if (!checkShape("secrets", written, report)) return undefined
  const secrets = objects(written, "secrets").map((entry, i) => readEntry(entry, joinPath("secrets", i), context))
  secrets.forEach((entry, i) => {
    if (secrets.findIndex((other) => other.slug === entry.slug) < i) {
      report.error(
        "duplicate-slug",
        joinPath("secrets", i),
        `the slug \`${shown(entry.slug)}\` is used twice`,
        "give each secret its own slug",
      )
    }
  })
  if (report.failed) return undefined
  return deepFreeze({ kind: "secrets" as const, secrets, source: sourceOf(context, written) })
}

/** A consumer's `ENV → source` map: exactly one known source per name (AIP-19 §Discriminator). */
export function checkSecretBindings(
  bindings: JsonObject,
  slugs: ReadonlySet<string>,
  providers: ReadonlySet<string>,
): readonly { readonly name: string; readonly message: string; readonly fix: string }[] {
  return Object.entries(bindings).flatMap(([name, source]) => {
    const bad = (message: string, fix: string): { name: string; message: string; fix: string }[] => [
      { name, message, fix },
    ]
    if (!/^[A-Z][A-Z0-9_]*$/.test(name))
      return bad(`\`${shown(name, 40)}\` is not a variable name in capitals`, "write a name such as `GH_TOKEN`")
    const kinds = isObject(source) ? ["vault", "oauth", "value"].filter((kind) => source[kind] !== undefined) : []
    const [kind] = kinds
    if (!isObject(source) || kinds.length !== 1 || kind === undefined || Object.keys(source).length !== 1)
      return bad("needs exactly one of `vault`, `oauth`, `value`", "write `{ vault: slug }`")
    const given = source[kind]
    if (typeof given !== "string") return bad(`\`${kind}\` must be text`, "quote it")
    if (kind === "vault" && !slugs.has(given))
      return bad(`there is no secret \`${shown(given)}\``, "declare it in a SECRETS.md")
    if (kind === "oauth" && !providers.has(given))
      return bad(`the OAuth provider \`${shown(given)}\` is not configured`, "configure it, or use `vault`")
    return []
  })
}

/** The slug that a name in `requires.secrets` means: itself, or with dots read as `/` or `-` (C-39). */
export function matchSecretSlug(name: string, slugs: ReadonlySet<string>): string | undefined {
  return [name, name.replace(".", "/"), name.replaceAll(".", "-")].find((slug) => slugs.has(slug))
}

/** `GH_TOKEN` → `gh-token` (AIP-19). */
export const slugOfEnv = (name: string): string => name.toLowerCase().replaceAll("_", "-")
