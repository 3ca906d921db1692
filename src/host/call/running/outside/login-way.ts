/**
 * The way out of a login: what a driver's command or function may reach while it signs somebody in, and what became of it.
 *
 * Guarantees: the same for both: the hosts that the driver declares and the operator allows, the secrets that are put in at
 * the proxy, tokens captured for their owner. Requests that change something are let through: that is what a login is for.
 */
import { type EgressEntry, intersectEgress } from "../../../../manifest/values/egress-entry.ts"
import type { CollectedSandbox, PreparedSandbox, SandboxProfile } from "../../../../sandbox/backend.ts"
import type { OpenedHome } from "../../../homes/sealed-homes.ts"
import { egressBudgets, hostLimits } from "../../../limits.ts"
import type { RegisteredDriver } from "../../../registry/types.ts"
import type { BoundSecret } from "../../../secrets/bind.ts"
import { openTokenKeep } from "../../../secrets/captured-tokens.ts"
import type { SecretUse } from "../../../secrets/vault.ts"
import type { HostCore, ServedEgress } from "../../core.ts"
import { channelFor } from "../../sealing/network.ts"
import { sealSecrets, type SealedSecrets } from "../../sealing/secrets.ts"
import { type SealedTokens, sealTokens } from "../../sealing/tokens.ts"
import { keepHome } from "../keep-home.ts"

export interface LoginWay {
  readonly egress: readonly EgressEntry[]
  readonly network: SandboxProfile["network"]
  readonly secrets: SealedSecrets
  readonly tokens: SealedTokens
}
/** `of`: what could not be sealed */
type Refused<Of extends string = string> = {
  readonly ok: false
  readonly of: Of
  readonly message: string
  readonly fix: string
}
type Sealed = { readonly ok: true; readonly way: LoginWay } | Refused<"secrets" | "tokens">

/** `logsIn`: it signs somebody in by itself, wherever its driver says. */
export const sealWay = (
  { config }: Pick<HostCore, "config">,
  driver: RegisteredDriver,
  given: readonly BoundSecret[],
  { logsIn = false }: { readonly logsIn?: boolean } = {},
): Sealed => {
  const { egress: declared } = driver.contract
  const { allow } = config.egress
  const egress = allow === undefined ? declared : intersectEgress(declared, allow)
  const secrets = sealSecrets(given, egress)
  if (!secrets.ok)
    return { ok: false, of: "secrets", message: secrets.message, fix: secrets.hint ?? "correct its SECRETS.md" }
  const tokens = sealTokens(config, driver, egress, { logsIn })
  if (!tokens.ok) return { ok: false, of: "tokens", message: tokens.message, fix: tokens.hint ?? "correct it" }
  const network = egress.length === 0 ? "none" : channelFor(egress)
  return { ok: true, way: { egress, network, secrets: secrets.value, tokens: tokens.value } }
}

type Served = { readonly ok: true; readonly proxy?: ServedEgress } | Omit<Refused, "of">

/** `owner`: whose captured tokens are. The proxy belongs to the scope. */
export const serveWay = async (
  core: Pick<HostCore, "data" | "vault" | "config" | "egressProxy">,
  { channel }: PreparedSandbox,
  { egress, secrets, tokens: { capture } }: LoginWay,
  owner: SecretUse | undefined,
  scope: AsyncDisposableStack,
): Promise<Served> => {
  if (channel === "none") return { ok: true }
  if (capture !== undefined && owner === undefined)
    return {
      ok: false,
      message: "nobody is named whose tokens it would be given",
      fix: "run it as a login of a user's",
    }
  const keep = capture === undefined || owner === undefined ? undefined : await openTokenKeep(core, owner)
  if (keep?.ok === false)
    return { ok: false, message: keep.message, fix: keep.hint ?? "see why the vault cannot be opened" }
  const { services, private: granted, budgets } = core.config.egress
  const proxy = scope.use(
    await core.egressProxy(
      {
        entries: egress,
        services,
        private: granted,
        budgets: { ...egressBudgets, ...budgets },
        readOnlyHttp: "off",
        substitutions: secrets.substitutions,
        ...(capture === undefined ? {} : { capture }),
      },
      keep?.value,
    ),
  )
  proxy.serve(channel)
  return { ok: true, proxy }
}

const targets = (list: readonly { readonly target: string }[]): readonly string[] =>
  [...new Set(list.map(({ target }) => target))].slice(0, hostLimits.unreachable.value)

/** Declared hosts that could not be reached while it ran, and hosts that it was kept from. */
export const metOnTheWay = (
  { denied }: Pick<CollectedSandbox, "denied">,
  proxy: ServedEgress | undefined,
): { readonly unreachable: readonly string[]; readonly denied: readonly string[] } => ({
  unreachable: targets(proxy?.failures() ?? []),
  denied: targets([...(proxy?.denials() ?? []), ...denied.filter(({ layer }) => layer === "egress")]),
})

/** Why what it left in the home is lost; undefined where it was kept. */
export const keptHome = async (exited: CollectedSandbox, home: OpenedHome | undefined): Promise<string | undefined> => {
  const [kept] = await keepHome(exited, home)
  if (kept === undefined || kept.result.ok) return undefined
  return kept.result.reason === "conflict" ? "its home was changed by another call meanwhile" : kept.result.message
}
