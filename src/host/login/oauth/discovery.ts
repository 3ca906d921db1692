/**
 * What a provider publishes of itself: by its issuer, or, where only a service's address is known, by AIP-50's chain: the
 * service's protected-resource metadata, the metadata of the authorization server that it names, else the service's own
 * `agentproto-host.json`.
 *
 * Guarantees: metadata counts where it names whom it was asked of (RFC 8414, RFC 9728); no redirect is followed, TLS is
 * verified, and every request goes by the login's own way, so to declared hosts alone. A service that publishes nothing is
 * no failure where what is written suffices; the failure is told where it does not.
 */
import * as oauth from "oauth4webapi"
import { NotAsked } from "../../drivers/fetch-over.ts"
import type { Provider } from "./provider.ts"

type Request = Provider["request"]

/** Nothing usable is published, and why. Never a mistake of the provider's alone: what is written may do. */
export interface NotPublished {
  readonly published: false
  /** it could not be asked: nothing is known of it */
  readonly unreachable: boolean
}

export const byIssuer = async (issuer: URL, request: Request): Promise<oauth.AuthorizationServer> => {
  const ask = async (algorithm: "oauth2" | "oidc"): Promise<Response> =>
    await oauth.discoveryRequest(issuer, { algorithm, ...request })
  const first = await ask("oauth2")
  return await oauth.processDiscoveryResponse(issuer, first.status === 200 ? first : await ask("oidc"))
}

/** A step of the chain; one that gives nothing leads to the next. A cancel and a bug are neither. */
const attempt = async <T>(signal: AbortSignal, step: () => Promise<T>): Promise<T | NotPublished> => {
  try {
    return await step()
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : ""
    const isTheirs = error instanceof NotAsked || error instanceof SyntaxError || code.startsWith("OAUTH_")
    if (signal.aborted || !isTheirs) throw error
    return { published: false, unreachable: error instanceof NotAsked }
  }
}

const isNone = (found: object): found is NotPublished => "published" in found

const fromResource = async (server: URL, request: Request): Promise<oauth.AuthorizationServer | NotPublished> => {
  const resource = await oauth.processResourceDiscoveryResponse(
    server,
    await oauth.resourceDiscoveryRequest(server, request),
  )
  const [issuer] = resource.authorization_servers ?? []
  const place = URL.parse(issuer ?? "")
  return place === null ? { published: false, unreachable: false } : await byIssuer(place, request)
}

const HOST_FILE = "/.well-known/agentproto-host.json"

const fromHostFile = async (server: URL, request: Request): Promise<oauth.AuthorizationServer | NotPublished> => {
  const answer = await request[oauth.customFetch](new URL(HOST_FILE, server))
  const told: unknown = answer.status === 200 ? await answer.json() : undefined
  const places = typeof told === "object" && told !== null ? (told as Record<string, unknown>) : {}
  const placeOf = (name: string): string | undefined => {
    const place = places[name]
    return typeof place === "string" && URL.canParse(place) ? place : undefined
  }
  const token = placeOf("token_endpoint")
  const device = placeOf("device_authorization_endpoint")
  if (token === undefined) return { published: false, unreachable: false }
  return {
    issuer: server.href,
    token_endpoint: token,
    ...(device === undefined ? {} : { device_authorization_endpoint: device }),
  }
}

/** AIP-50 §Discovery, in its order. */
export const byServer = async (
  address: string,
  request: Request,
): Promise<oauth.AuthorizationServer | NotPublished> => {
  const server = new URL(address)
  const first = await attempt(request.signal, () => fromResource(server, request))
  if (!isNone(first)) return first
  const second = await attempt(request.signal, () => fromHostFile(server, request))
  return isNone(second) ? { published: false, unreachable: first.unreachable && second.unreachable } : second
}
