/**
 * The secrets of one call, from the vault.
 *
 * Guarantees: whether the call may have a secret is decided before the vault is asked for it. A driver of a folder that
 * the operator does not vouch for gets only what was set for that driver, so that naming a variable is not a way to
 * another driver's secret. What is missing is told by name, with the command that sets it. A call that needs none never
 * opens the vault. Values stay wrapped (`Secret`) until the one place that they are for.
 */
import type { Caller } from "../access/caller.ts"
import type { ToolContract } from "../../manifest/types.ts"
import type { Failure } from "../failure.ts"
import { isHostsOwn } from "./captured-tokens.ts"
import { pickField } from "./fields.ts"
import { grantedBy, type SecretFile, type SecretNeed, waysOf } from "./needs.ts"
import type { Secret } from "./secret.ts"
import { meant, type SecretName, type SecretScope, type SecretUse, type Vault, type VaultAnswer } from "./vault.ts"

export interface BoundSecret extends SecretNeed {
  readonly value: Secret
  /** by which rule */
  readonly grantedBy: string
  /** it goes to the program as this file */
  readonly file?: SecretFile
}

/** What the vault has for a need, once for each way that it goes to the program. */
export const boundBy = (need: SecretNeed, found: Secret, by: string): VaultAnswer<readonly BoundSecret[]> => {
  const bound: BoundSecret[] = []
  for (const { field, file } of waysOf(need)) {
    const picked = pickField(need.slug, found, field)
    if (!picked.ok) return picked
    bound.push({ ...need, value: picked.value, grantedBy: by, ...(file === undefined ? {} : { file }) })
  }
  return { ok: true, value: bound }
}

/** Who asks, for what. */
export interface Binding {
  readonly use: SecretUse
  /** `id@major` */
  readonly driver: string
  /** the operator vouches for the driver's folder */
  readonly vouched: boolean
  readonly tool: Pick<ToolContract, "id">
  readonly caller: Pick<Caller, "user" | "roles">
}

/** The secret that is meant, of those that the driver may be given. */
export const scopeFor = (
  held: readonly SecretName[],
  { slug }: Pick<SecretNeed, "slug">,
  { use, vouched }: Pick<Binding, "use" | "vouched">,
): SecretScope | undefined =>
  isHostsOwn(slug)
    ? undefined
    : meant(vouched ? held : held.filter(({ scope }) => scope.driver !== undefined), slug, use)

/** What sets them. */
export const settingFix = (
  slugs: readonly string[],
  { driver, vouched }: Pick<Binding, "driver" | "vouched">,
): string =>
  slugs.map((slug) => `run \`caisson secrets set ${slug}${vouched ? "" : ` --driver ${driver}`}\``).join(", ")

const missing = (needs: readonly SecretNeed[], binding: Binding): Failure => {
  const { driver } = binding
  const slugs = needs.map(({ slug }) => slug)
  return {
    ok: false,
    code: "auth_required",
    message: `${driver} needs secrets that this host does not hold for this user: ${slugs.join(", ")}`,
    hint: settingFix(slugs, binding),
    details: { driver, secrets: slugs, env: needs.filter(({ bound }) => bound).map(({ name }) => name) },
  }
}

const denied = ({ slug }: SecretNeed, { driver, tool }: Binding): Failure => ({
  ok: false,
  code: "unauthorised",
  message: `the rules of the secret ${slug} let neither ${tool.id} nor this user have it`,
  hint: "add a rule to `access.bind` in its SECRETS.md",
  details: { driver, secret: slug },
  evidence: { event: "secret.reveal.denied", slug, tool: tool.id, driver },
})

export const bindSecrets = async (
  vault: Vault,
  needs: readonly SecretNeed[],
  binding: Binding,
): Promise<VaultAnswer<readonly BoundSecret[]>> => {
  if (needs.length === 0) return { ok: true, value: [] }
  const granted = needs.map((need) => ({ need, by: grantedBy(need, binding.tool, binding.caller) }))
  const refused = granted.find(({ by }) => by === undefined)
  if (refused !== undefined) return denied(refused.need, binding)
  const held = await vault.list()
  if (!held.ok) return held
  const bound: BoundSecret[] = []
  const absent: SecretNeed[] = []
  for (const { need, by = "" } of granted) {
    const scope = scopeFor(held.value, need, binding)
    const found = scope === undefined ? undefined : await vault.get(need.slug, scope)
    if (found !== undefined && !found.ok) return found
    if (found?.value === undefined) {
      if (need.optional !== true) absent.push(need)
    } else {
      const ways = boundBy(need, found.value, by)
      if (!ways.ok) return ways
      bound.push(...ways.value)
    }
  }
  return absent.length === 0 ? { ok: true, value: bound } : missing(absent, binding)
}
