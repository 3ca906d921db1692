/**
 * Finds secrets written into manifests: a manifest is shown, logged and shared, so a value in it is already lost.
 *
 * Guarantees: well-known token forms anywhere in the front matter, and literal values of variables named like
 * credentials, are errors that name the field and never repeat the value.
 * Does not: recognise every secret; it catches the common accidents.
 */
import { joinPath } from "./diagnostics.ts"
import type { Report } from "./diagnostics.ts"
import { isObject } from "./fields.ts"
import type { JsonObject, JsonValue } from "../base-types.ts"

const TOKENS: readonly RegExp[] = [
  /\bgh[pousr]_[A-Za-z0-9]{30,}/,
  /\bgithub_pat_[A-Za-z0-9_]{40,}/,
  /\bsk_(?:live|test)_[A-Za-z0-9]{16,}/,
  /\bsk-[A-Za-z0-9_-]{32,}/,
  /\bAKIA[A-Z0-9]{16}\b/,
  /\bxox[abprs]-[A-Za-z0-9-]{20,}/,
  /\bAIza[A-Za-z0-9_-]{35}/,
  /\bglpat-[A-Za-z0-9_-]{20,}/,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----/,
  /\bBearer [A-Za-z0-9._~+/-]{24,}/,
]
const NAMED = /(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|PRIVATE_KEY|CREDENTIALS?)$/i

function walk(value: JsonValue, path: string, report: Report): void {
  if (typeof value === "string") {
    if (TOKENS.some((token) => token.test(value))) {
      report.error(
        "plaintext-credential",
        path,
        "this looks like a real credential",
        "revoke it, keep it in the vault, and name it by its slug or environment variable",
      )
    }
  } else if (Array.isArray(value)) value.forEach((item: JsonValue, i) => walk(item, joinPath(path, i), report))
  else if (isObject(value)) for (const [key, item] of Object.entries(value)) walk(item, joinPath(path, key), report)
}

export const checkCredentials = (front: JsonObject, report: Report): void => walk(front, "", report)

/** `env.set` and the like: a literal under a credential's name. Templates (`${secrets.x}`) and empty values are fine. */
export function checkEnvLiterals(env: JsonObject, path: string, report: Report): void {
  for (const [name, value] of Object.entries(env)) {
    if (typeof value !== "string" || value === "" || value.includes("${") || !NAMED.test(name)) continue
    report.error(
      "plaintext-credential",
      joinPath(path, name),
      `\`${name}\` gets a literal value in a manifest`,
      "list the name in `auth.state.env` and keep the value in the vault",
    )
  }
}
