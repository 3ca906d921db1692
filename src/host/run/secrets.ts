/** The variables that a run's secrets are given as: what a SECRETS.md says of each, else the slug in upper case. Pure. */
import type { SecretEntry } from "../../manifest/types.ts"
import type { Registry } from "../registry/types.ts"

const variableOf = (slug: string, inventory: readonly SecretEntry[]): string => {
  const entry = inventory.find((each) => each.slug === slug)
  const exposed = entry?.exposures.flatMap((exposure) =>
    exposure.kind === "env" ? [exposure.name] : exposure.kind === "egress-substitute" ? [exposure.placeholderName] : [],
  )
  return entry?.env[0] ?? exposed?.[0] ?? slug.toUpperCase().replaceAll(/[.-]/g, "_")
}

export const secretVariables = (
  slugs: readonly string[],
  { vouchedSecrets }: Pick<Registry, "vouchedSecrets">,
): readonly string[] => slugs.map((slug) => variableOf(slug, vouchedSecrets))
