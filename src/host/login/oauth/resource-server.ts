/**
 * The authorization server of a resource: which one, and its endpoints (RFC 8414, OpenID discovery).
 *
 * Guarantees: a server is asked only if the driver declares its host, whoever named it; so are the endpoints that it names,
 * the page for a person among them. Metadata counts only where it names the issuer that was asked, and PKCE with S256. Where
 * the operator says whose client this host is, only that issuer is spoken to.
 */
import * as oauth from "oauth4webapi"
import { portOf } from "../../../manifest/values/address.ts"
import { shown } from "../../../manifest/values/diagnostics.ts"
import { intersectEgress, parseEgressEntry } from "../../../manifest/values/egress-entry.ts"
import type { FlowFailed, LoginDesk } from "../flow.ts"
import { isFailed } from "./failed.ts"
import { broken, isPlainHttps, published, type Resource } from "./resource-metadata.ts"

const targetOf = (address: string): string => {
  const url = new URL(address)
  return `${url.hostname}:${portOf(url)}`
}

const isDeclared = ({ driver }: LoginDesk, address: string): boolean => {
  const own = parseEgressEntry(targetOf(address))
  return own.ok && intersectEgress([own.entry], driver.contract.egress).length > 0
}

const undeclared = (what: string, address: string): FlowFailed => {
  const target = targetOf(address)
  return broken(
    `${what} ${shown(target, 100)}, which its driver does not declare: the login was not begun`,
    `if that is where the service's users sign in, add \`${target}\` to \`network.egress\` of the driver`,
  )
}

const same = (one: string, other: string): boolean => URL.parse(one)?.href === URL.parse(other)?.href

/** Which of those that the resource names; `bound`: the one that this host is a client of already. */
export const chooseIssuer = (
  desk: LoginDesk,
  { servers }: Resource,
  bound: string | undefined,
): string | FlowFailed => {
  const [first = ""] = servers
  if (bound === undefined)
    return servers.find((each) => isDeclared(desk, each)) ?? undeclared("the service sends its users to", first)
  const known = servers.find((each) => same(each, bound))
  if (known !== undefined) return isDeclared(desk, known) ? known : undeclared("its users sign in at", known)
  return {
    ok: false,
    why: "refused",
    message: `the service takes tokens of ${shown(first, 100)}, and no longer those of ${shown(bound, 100)}`,
    fix: "see what changed at the service; a client that is registered with one issuer is never shown to another",
  }
}

/** Where RFC 8414 and OpenID have it, in the order in which they are asked. */
const places = (issuer: URL): readonly URL[] => {
  const path = issuer.pathname === "/" ? "" : issuer.pathname.replace(/\/$/, "")
  const paths = [
    `/.well-known/oauth-authorization-server${path}`,
    `/.well-known/openid-configuration${path}`,
    ...(path === "" ? [] : [`${path}/.well-known/openid-configuration`]),
  ]
  return paths.map((each) => new URL(each, issuer))
}

const named = async (issuer: URL, response: Response): Promise<oauth.AuthorizationServer | FlowFailed> => {
  try {
    return await oauth.processDiscoveryResponse(issuer, response)
  } catch (error) {
    if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") throw error
    return error.code === "OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED"
      ? broken(`what ${issuer.host} publishes names another issuer: none of it was used`)
      : broken(`what ${issuer.host} publishes is no metadata of an authorization server (${error.code})`)
  }
}

const checked = (desk: LoginDesk, server: oauth.AuthorizationServer): oauth.AuthorizationServer | FlowFailed => {
  const { issuer, authorization_endpoint, token_endpoint, registration_endpoint } = server
  for (const endpoint of [authorization_endpoint, token_endpoint, registration_endpoint]) {
    if (endpoint === undefined) continue
    if (URL.parse(endpoint)?.protocol !== "https:") return broken(`${shown(issuer, 100)} names an endpoint without TLS`)
    if (!isDeclared(desk, endpoint)) return undeclared(`${shown(issuer, 100)} has an endpoint at`, endpoint)
  }
  if (authorization_endpoint !== undefined && server.code_challenge_methods_supported?.includes("S256") !== true)
    return broken(
      `${shown(issuer, 100)} does not say that it takes PKCE with S256, without which a page proves nothing`,
    )
  return server
}

export const openServer = async (
  desk: LoginDesk,
  issuer: string,
  { metadata }: Resource,
): Promise<oauth.AuthorizationServer | FlowFailed> => {
  if (!isPlainHttps(issuer)) return broken(`\`${shown(issuer, 100)}\` is no address of an authorization server`)
  const url = new URL(issuer)
  for (const place of places(url)) {
    const found = await published(desk, place)
    if (found === undefined) continue
    if (isFailed(found)) return found
    const server = await named(url, found.response)
    return isFailed(server) ? server : checked(desk, server)
  }
  if (metadata !== undefined) return broken(`${url.host} publishes no metadata of an authorization server`)
  // As the protocol had it before there was any metadata, at the service's own origin.
  const at = (path: string): string => new URL(path, url).href
  return {
    issuer: url.origin,
    authorization_endpoint: at("/authorize"),
    token_endpoint: at("/token"),
    registration_endpoint: at("/register"),
  }
}
