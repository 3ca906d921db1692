/**
 * What an OAuth login of a driver is made of, and where it gets its tokens. Pure.
 *
 * Guarantees: what the operator wrote in `logins` counts before an AUTH.md, whole and not by halves: an issuer of the one
 * never meets a client of the other. An address of a manifest is asked without TLS only under a name that the operator
 * maps in `egress.services`. Does not: ask anybody; what only discovery would tell is not in the list.
 */
import type { AuthProvider, DriverContract } from "../../../manifest/types.ts"
import { portOf } from "../../../manifest/values/address.ts"
import type { TokenEndpoint } from "../../../manifest/values/token-endpoint.ts"
import type { OAuthSettings } from "../../config/oauth-types.ts"
import type { RegisteredDriver } from "../../registry/types.ts"

type Named = Readonly<Record<string, OAuthSettings>>

export const writtenFor = ({ key, contract: { id } }: RegisteredDriver, logins: Named): OAuthSettings | undefined =>
  [key, id].flatMap((name) => (Object.hasOwn(logins, name) ? [logins[name]] : []))[0]

const FLOWS = ["device-code", "authorization-code", "service-auth"] as const

/** `login.url` of a driver is where its users are sent, with what the provider wants to know of this client (AIP-30). */
const askedAt = (login: NonNullable<DriverContract["auth"]>["login"], flow: OAuthSettings["flow"]) => {
  const page = flow === "authorization-code" ? URL.parse(login?.url ?? "") : null
  return page === null ? {} : { authorization: page.href }
}

/** Undefined: its flow is none of OAuth's. `mapped`: names that the operator maps to addresses. */
export const settingsIn = (
  provider: AuthProvider | undefined,
  mapped: readonly string[],
  { login, refresh }: Pick<NonNullable<DriverContract["auth"]>, "login" | "refresh"> = {},
): OAuthSettings | undefined => {
  const flow = FLOWS.find((each) => each === provider?.flow)
  if (provider === undefined || flow === undefined) return undefined
  const { apiBase, issuer, endpoints, clientId, loginHint, scopes, resource, audience } = provider
  return {
    flow,
    clientId,
    scopes,
    endpoints: { ...askedAt(login, flow), ...endpoints },
    plainHosts: mapped,
    ...(issuer === undefined ? { server: apiBase } : { issuer }),
    ...(refresh?.via === "url" ? { refreshAt: refresh.url } : {}),
    ...(loginHint === undefined ? {} : { loginHint }),
    ...(resource === undefined ? {} : { resource }),
    ...(audience === undefined ? {} : { audience }),
  }
}

const endpointOf = (address: string | undefined): readonly TokenEndpoint[] => {
  const url = URL.parse(address ?? "")
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:")) return []
  return [{ host: url.hostname.replace(/^\[|\]$/g, "").toLowerCase(), port: portOf(url), path: url.pathname }]
}

/** Where tokens of this driver come from, as the operator, its AUTH.md and its `refresh.url` say; each place once. */
export const tokenEndpointsOf = (driver: RegisteredDriver, logins: Named): readonly TokenEndpoint[] => {
  const { auth } = driver.contract
  const written = writtenFor(driver, logins)
  const places = [
    ...endpointOf(written === undefined ? auth?.provider?.endpoints.token : written.endpoints.token),
    ...endpointOf(auth?.refresh?.via === "url" ? auth.refresh.url : undefined),
  ]
  return places.filter(
    (place, index) => places.findIndex((each) => JSON.stringify(each) === JSON.stringify(place)) === index,
  )
}

/**
 * The issuer that a program of this driver's gets tokens from by itself, where nobody names the endpoint: only asking would
 * tell it, and the program asks for itself. `logsIn`: what is run logs in, whatever the manifest says of commands.
 */
export const unnamedIssuer = (driver: RegisteredDriver, logins: Named, logsIn: boolean): string | undefined => {
  const { auth, tokenCapture } = driver.contract
  const issuer = auth?.provider?.issuer
  const byItself = logsIn || auth?.login?.cmd !== undefined || auth?.refresh?.via === "cmd"
  const isNamed = (tokenCapture?.endpoints.length ?? 0) > 0 || auth?.provider?.endpoints.token !== undefined
  return byItself && !isNamed && writtenFor(driver, logins) === undefined ? issuer : undefined
}
