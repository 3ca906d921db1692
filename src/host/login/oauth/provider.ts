/**
 * A provider as a login speaks to it: its endpoints, this host as its client, and the way there.
 *
 * Guarantees: endpoints come from the settings, else from what the issuer, or the service itself, publishes at its
 * well-known places. Only https is spoken, but to addresses that the operator wrote in so many words, and to names that the
 * operator maps to addresses. A client's secret is fetched when it is needed and sent to the token's endpoint alone.
 */
import * as oauth from "oauth4webapi"
import type { FlowFailed, LoginDesk } from "../flow.ts"
import { basicAuth } from "./basic.ts"
import type { Secret } from "../../secrets/secret.ts"
import type { OAuthSettings } from "../../config/oauth-types.ts"
import { fetchOver, NotAsked } from "../../drivers/fetch-over.ts"
import { byIssuer, byServer, type NotPublished } from "./discovery.ts"

export interface Provider {
  readonly server: oauth.AuthorizationServer
  readonly client: oauth.Client
  readonly clientAuth: oauth.ClientAuth
  /** what each request is made with */
  readonly request: {
    readonly [oauth.customFetch]: ReturnType<typeof fetchOver>
    readonly [oauth.allowInsecureRequests]: boolean
    readonly signal: AbortSignal
  }
  /** what is asked for: scopes, and what the tokens are for */
  readonly wants: URLSearchParams
}

const isPlain = (settings: OAuthSettings): boolean =>
  [settings.issuer, ...Object.values<string | undefined>({ ...settings.endpoints })].some((address) =>
    /^http:/i.test(address ?? ""),
  )

/** Without TLS, a name of a manifest's is asked only where the operator says which address it is. */
const fetchFor = ({ plainHosts }: OAuthSettings, desk: LoginDesk): ReturnType<typeof fetchOver> => {
  const fetch = fetchOver(desk)
  return async (address, asked) => {
    const { protocol, hostname } = new URL(address)
    if (protocol === "https:" || plainHosts === undefined || plainHosts.includes(hostname))
      return await fetch(address, asked)
    throw new NotAsked({
      ok: false,
      code: "egress_denied",
      message: `${hostname} would be asked for tokens without TLS`,
      hint: "let the manifest name an https address, or map the name in `egress.services` of caisson.yaml",
      details: {},
    })
  }
}

/** What is written suffices for a login and a refresh. */
const isWhole = ({ flow, endpoints }: OAuthSettings): boolean =>
  endpoints.token !== undefined &&
  (flow !== "service-auth" || endpoints.identity !== undefined) &&
  (flow !== "device-code" || endpoints.deviceAuthorization !== undefined) &&
  (flow !== "authorization-code" || endpoints.authorization !== undefined)

const published = async (
  settings: OAuthSettings,
  request: Provider["request"],
): Promise<oauth.AuthorizationServer | NotPublished> => {
  const { issuer, server, endpoints } = settings
  if (issuer !== undefined) return await byIssuer(new URL(issuer), request)
  if (server === undefined || isWhole(settings)) return { issuer: endpoints.token ?? "" }
  return await byServer(server, request)
}

/** Over TLS alone. */
export const requestOver = (desk: LoginDesk): Provider["request"] => ({
  [oauth.customFetch]: fetchOver(desk),
  [oauth.allowInsecureRequests]: false,
  signal: desk.signal,
})

/** What the operator names and has not set. */
export const lacksSecret = (
  { clientSecret: slug }: Pick<OAuthSettings, "clientSecret">,
  secret: Secret | undefined,
): FlowFailed | undefined =>
  slug === undefined || secret !== undefined
    ? undefined
    : {
        ok: false,
        why: "broken",
        message: `the secret ${slug} of this host as a client is not in the vault`,
        fix: `run \`caisson secrets set ${slug} --shared\``,
      }

const unwritten = (what: string): FlowFailed => ({
  ok: false,
  why: "broken",
  message: `the provider has no ${what}`,
  fix: `write it in \`logins\` of caisson.yaml, or choose a flow that the provider has`,
})

export const openProvider = async (
  settings: OAuthSettings,
  desk: LoginDesk,
  clientSecret: Secret | undefined,
): Promise<Provider | FlowFailed> => {
  const { endpoints, clientId, scopes, resource } = settings
  const lacking = lacksSecret(settings, clientSecret)
  if (lacking !== undefined) return lacking
  const request = {
    [oauth.customFetch]: fetchFor(settings, desk),
    [oauth.allowInsecureRequests]: settings.plainHosts !== undefined || isPlain(settings),
    signal: desk.signal,
  }
  const told = await published(settings, request)
  const isSilent = "published" in told
  const found: oauth.AuthorizationServer = isSilent ? { issuer: settings.server ?? "" } : told
  const server: oauth.AuthorizationServer = {
    ...found,
    ...(endpoints.authorization === undefined ? {} : { authorization_endpoint: endpoints.authorization }),
    ...(endpoints.token === undefined ? {} : { token_endpoint: endpoints.token }),
    ...(endpoints.deviceAuthorization === undefined
      ? {}
      : { device_authorization_endpoint: endpoints.deviceAuthorization }),
    ...(endpoints.revocation === undefined ? {} : { revocation_endpoint: endpoints.revocation }),
  }
  if (isSilent && told.unreachable && !isWhole(settings))
    return {
      ok: false,
      why: "unreachable",
      message: `${settings.server ?? "the service"} could not be asked where its users log in`,
      fix: "try again later, or write the login's settings in `logins` of caisson.yaml",
    }
  if (server.token_endpoint === undefined) return unwritten("token endpoint")
  if (settings.flow === "device-code" && server.device_authorization_endpoint === undefined)
    return unwritten("device authorization endpoint")
  if (settings.flow === "authorization-code" && server.authorization_endpoint === undefined)
    return unwritten("authorization endpoint")
  const methods = server.token_endpoint_auth_methods_supported
  const secret = clientSecret?.reveal()
  const isPost = methods?.includes("client_secret_post") === true && !methods.includes("client_secret_basic")
  return {
    server,
    client: { client_id: clientId },
    clientAuth: secret === undefined ? oauth.None() : isPost ? oauth.ClientSecretPost(secret) : basicAuth(secret),
    request,
    wants: new URLSearchParams({
      ...(scopes.length === 0 ? {} : { scope: scopes.join(" ") }),
      ...(resource === undefined ? {} : { resource }),
    }),
  }
}
