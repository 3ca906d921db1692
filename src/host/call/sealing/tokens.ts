/**
 * Which token endpoints of a driver are captured in its sandbox, and where its access tokens may be sent. Pure.
 *
 * Guarantees: endpoints are what the operator, an AUTH.md and the manifest say, all of them, as far as the driver may reach
 * them; access tokens go to hosts that one of them names and the driver declares, and to the endpoints' own. A host that is
 * declared as `tcp://`, and would be passed on unseen, ends the call before anything runs; so does a program that logs in by
 * itself at an issuer whose endpoint nobody names, which would hold what it gets.
 */
import { trustEnvironment } from "../../../egress-proxy/tls/trust.ts"
import type { EgressCapture } from "../../../egress-proxy/types.ts"
import type { EgressEntry } from "../../../manifest/values/egress-entry.ts"
import { tokenEndpoint } from "../../../manifest/values/token-endpoint.ts"
import type { OperatorConfig } from "../../config/types.ts"
import { inside } from "../../drivers/paths.ts"
import { tokenEndpointsOf, unnamedIssuer, writtenFor } from "../../login/oauth/settings.ts"
import type { RegisteredDriver } from "../../registry/types.ts"
import type { Step } from "../steps.ts"

export interface SealedTokens {
  readonly capture?: EgressCapture
  /** variables that make the program trust the proxy */
  readonly env: Readonly<Record<string, string>>
}

const covers = ({ wildcard, host }: EgressEntry, name: string): boolean =>
  wildcard ? name.endsWith(`.${host}`) : host === name

const hostOf = (address: string | undefined): readonly string[] => {
  const url = URL.parse(address ?? "")
  return url?.protocol === "https:" && !/^[[0-9.]+/.test(url.hostname) ? [url.hostname] : []
}

const nothing: SealedTokens = Object.freeze({ env: {} })

export const sealTokens = (
  { logins }: Pick<OperatorConfig, "logins">,
  driver: RegisteredDriver,
  egress: readonly EgressEntry[],
  { logsIn = false }: { readonly logsIn?: boolean } = {},
): Step<SealedTokens> => {
  const issuer = egress.length === 0 ? undefined : unnamedIssuer(driver, logins, logsIn)
  if (issuer !== undefined)
    return {
      ok: false,
      code: "tool_unavailable",
      message: `${driver.key} logs in by itself, and its AUTH.md names ${issuer} without the endpoint that gives out tokens: they could not be kept out of its sandbox`,
      hint: "write `endpoints: { token: https://… }` in the `auth` of its AUTH.md, or in `logins` of caisson.yaml with `flow: program`",
      details: { driver: driver.key, issuer },
    }
  const { auth, tokenCapture: own } = driver.contract
  const revoked = [writtenFor(driver, logins)?.endpoints.revocation, auth?.provider?.endpoints.revocation]
  const named = [
    ...(own?.endpoints ?? []),
    ...tokenEndpointsOf(driver, logins),
    ...revoked.flatMap((address) => tokenEndpoint(address ?? "") ?? []),
  ]
  const places = [...new Map(named.map((each) => [`${each.host}:${each.port}${each.path}`, each])).values()]
  const endpoints = places.filter(({ host, port }) =>
    egress.some((entry) => covers(entry, host) && entry.ports.includes(port)),
  )
  if (endpoints.length === 0) return { ok: true, value: nothing }
  const meant = [...(own?.hosts ?? []), ...hostOf(auth?.provider?.apiBase)]
  const hosts = [...new Set(meant)].filter((host) => egress.some((entry) => covers(entry, host)))
  for (const host of [...endpoints.map((each) => each.host), ...hosts]) {
    const open = egress.find((entry) => entry.protocol === "tcp" && covers(entry, host))
    if (open !== undefined)
      return {
        ok: false,
        code: "tool_unavailable",
        message: `${driver.key} declares ${open.text}, which is passed on unseen, and gets or sends tokens there`,
        hint: `declare \`${host}\` in its \`network.egress\``,
        details: { driver: driver.key, host },
      }
  }
  const capture = { endpoints, hosts, idToken: own?.idToken ?? "replace" } as const
  return { ok: true, value: { capture, env: trustEnvironment(inside.authority) } }
}
