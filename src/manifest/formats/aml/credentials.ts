/**
 * AML credentials → the variable that a driver gets its secret under, or why there is no driver for them.
 *
 * Guarantees: a secret is named, never written; which value stands behind the name is the vault's to say, and a folder that
 * nobody vouches for gets what was set for its driver alone. Where AML names a store of a cloud, that is said.
 */
import type { JsonObject } from "../../base-types.ts"
import { shown } from "../../values/diagnostics.ts"
import type { Report } from "../../values/diagnostics.ts"
import { optionalText, text } from "../../values/fields.ts"
import { credentialsOf } from "./checks.ts"

export interface Credentials {
  readonly scheme: string
  /** absent: none is needed */
  readonly variable?: string
  /** why no driver of this host can use them */
  readonly unusable?: string
}

const CLOUDS: Readonly<Record<string, string>> = {
  aws_secrets_manager: "AWS Secrets Manager",
  gcp_secret_manager: "Google Secret Manager",
  azure_key_vault: "Azure Key Vault",
}

/** `prod/crm/api-key` → `PROD_CRM_API_KEY` */
const variableOf = (name: string): string | undefined => {
  const made = name
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]+/g, "_")
    .replaceAll(/^[_0-9]+|_+$/g, "")
  return made.length < 2 || made.length > 80 ? undefined : made
}

export const readCredentials = (front: JsonObject, id: string, report: Report): Credentials => {
  const { block, path } = credentialsOf(front)
  if (block === undefined) return { scheme: "none" }
  const scheme = text(block, "scheme")
  if (scheme === "none") return { scheme }
  if (scheme === "iam-role")
    return { scheme, unusable: "it needs the role of a cloud's machine (`iam-role`), and this host has none" }
  const name = optionalText(block, "name") ?? optionalText(block, "secret_id") ?? `${id}-token`
  const variable = variableOf(name)
  if (variable === undefined) {
    report.error(
      "aml-secret-name",
      path,
      `\`${shown(name, 40)}\` cannot name a secret`,
      "write letters, digits and `_`, as in `SERVICE_KEY`",
    )
    return { scheme }
  }
  const slug = variable.toLowerCase().replaceAll("_", "-")
  const cloud = CLOUDS[text(block, "source")]
  if (cloud !== undefined)
    report.warn(
      "aml-cloud-secret",
      `${path}.source`,
      `this host does not read ${cloud}; the value is taken from its own vault, under \`${slug}\``,
      `run \`caisson secrets set ${slug}\`, or keep the vault in OpenBao (\`vault\` in caisson.yaml)`,
    )
  if (scheme === "oauth2")
    report.warn(
      "aml-oauth2",
      `${path}.scheme`,
      "AML does not say where such a login begins; the token is taken from the vault until the operator says it",
      `write \`logins: { ${id}-driver: … }\` in caisson.yaml, or run \`caisson secrets set ${slug}\``,
    )
  return { scheme, variable }
}
