/**
 * Who this host is to an authorization server: registered by the operator, known by a document of the operator's, or
 * registered by itself where the operator allows it; in this order.
 *
 * Guarantees: an identity belongs to one issuer and is never shown to another. How it proves itself is what the server says
 * that it takes. What was registered is kept in the vault, for one driver, workspace and user.
 */
import * as oauth from "oauth4webapi"
import { isObject } from "../../../manifest/values/fields.ts"
import type { McpLogins, OAuthSettings } from "../../config/oauth-types.ts"
import { Secret } from "../../secrets/secret.ts"
import type { FlowFailed, LoginDesk } from "../flow.ts"
import { basicAuth } from "./basic.ts"
import { lacksSecret, type Provider } from "./provider.ts"
import { broken } from "./resource-metadata.ts"

type Method = "none" | "client_secret_basic" | "client_secret_post"

export interface KnownClient {
  readonly issuer: string
  readonly id: string
  readonly secret?: string
  readonly method: Method
}

/** What a later refresh needs to know of a login. */
export interface KeptClient extends KnownClient {
  /** where the resource publishes whom it trusts */
  readonly metadata?: string
}

const METHODS: readonly Method[] = ["client_secret_basic", "client_secret_post", "none"]

const methodFor = (
  { token_endpoint_auth_methods_supported: taken = ["client_secret_basic"] }: oauth.AuthorizationServer,
  secret: string | undefined,
): Method => {
  if (secret === undefined) return "none"
  return METHODS.find((method) => taken.includes(method)) ?? "client_secret_basic"
}

export const authBy = ({ method, secret }: KnownClient): oauth.ClientAuth => {
  if (secret === undefined || method === "none") return oauth.None()
  return method === "client_secret_post" ? oauth.ClientSecretPost(secret) : basicAuth(secret)
}

const isMethod = (value: unknown): value is Method => METHODS.some((method) => method === value)

/** One that asks for no secret, where the server does without. */
const askedMethod = ({ token_endpoint_auth_methods_supported: taken }: oauth.AuthorizationServer): Method =>
  taken === undefined || taken.includes("none") ? "none" : (METHODS.find((method) => taken.includes(method)) ?? "none")

const register = async (
  server: oauth.AuthorizationServer,
  request: Provider["request"],
  redirectUri: string,
): Promise<KnownClient | FlowFailed> => {
  const grants = server.grant_types_supported ?? ["authorization_code", "refresh_token"]
  const answer = await oauth.dynamicClientRegistrationRequest(
    server,
    {
      client_name: "Caisson",
      application_type: "native",
      redirect_uris: [redirectUri],
      grant_types: ["authorization_code", ...(grants.includes("refresh_token") ? ["refresh_token"] : [])],
      response_types: ["code"],
      token_endpoint_auth_method: askedMethod(server),
    },
    request,
  )
  if (answer.status >= 500 || answer.status === 429)
    return { ok: false, why: "unreachable", message: `${server.issuer} answered ${answer.status}` }
  // Many a server leaves out when a secret ends, which it would have to say: that one is good for this login.
  const told: unknown = await answer.json().catch(() => undefined)
  const { client_id: id, client_secret: secret, token_endpoint_auth_method: method } = isObject(told) ? told : {}
  if (answer.status >= 300 || typeof id !== "string" || id === "")
    return broken(
      `${server.issuer} does not register this host (${answer.status})`,
      "register it there by hand, and write `issuer` and `client_id` for the driver in `logins` of caisson.yaml",
    )
  const known = typeof secret === "string" && secret !== "" ? secret : undefined
  return {
    issuer: server.issuer,
    id,
    ...(known === undefined ? {} : { secret: known }),
    method: isMethod(method) ? method : methodFor(server, known),
  }
}

interface Identities {
  /** what the operator wrote for this driver */
  readonly preset: OAuthSettings | undefined
  readonly presetSecret: Secret | undefined
  readonly logins: McpLogins
}

/** `redirectUri` absent: no page is opened, so that there is nothing to register. */
export const clientFor = async (
  server: oauth.AuthorizationServer,
  request: Provider["request"],
  { preset, presetSecret, logins }: Identities,
  redirectUri?: string,
): Promise<KnownClient | FlowFailed> => {
  const { issuer } = server
  if (preset !== undefined) {
    const lacking = lacksSecret(preset, presetSecret)
    if (lacking !== undefined) return lacking
    const secret = presetSecret?.reveal()
    const method = methodFor(server, secret)
    return { issuer, id: preset.clientId, ...(secret === undefined ? {} : { secret }), method }
  }
  if (logins.clientDocument !== undefined && server["client_id_metadata_document_supported"] === true)
    return { issuer, id: logins.clientDocument, method: "none" }
  if (logins.register && server.registration_endpoint !== undefined && redirectUri !== undefined)
    return await register(server, request, redirectUri)
  return broken(
    `${issuer} does not know this host`,
    server.registration_endpoint === undefined || logins.register
      ? "register this host there, and write `issuer` and `client_id` for the driver in `logins` of caisson.yaml"
      : "write `mcp_logins: { register: true }` in caisson.yaml to have this host register itself, or `issuer` and `client_id` for the driver in `logins`",
  )
}

const slugOfClient = (slug: string): string => `${slug.slice(0, 73)}-client`

export const keepClient = async (
  desk: LoginDesk,
  slug: string,
  client: KeptClient,
): Promise<FlowFailed | undefined> => {
  const kept = await desk.kept.set(slugOfClient(slug), new Secret(JSON.stringify(client)))
  return kept.ok ? undefined : broken(`what the login needs later could not be kept: ${kept.message}`, kept.hint)
}

export const readClient = async (desk: LoginDesk, slug: string): Promise<KeptClient | undefined | FlowFailed> => {
  const found = await desk.kept.get(slugOfClient(slug))
  if (!found.ok) return { ok: false, why: "unreachable", message: found.message }
  if (found.value === undefined) return undefined
  const read: unknown = JSON.parse(found.value.reveal())
  if (!isObject(read)) return undefined
  const { issuer, id, secret, method, metadata } = read
  if (typeof issuer !== "string" || typeof id !== "string" || !isMethod(method)) return undefined
  return {
    issuer,
    id,
    method,
    ...(typeof secret === "string" ? { secret } : {}),
    ...(typeof metadata === "string" ? { metadata } : {}),
  }
}
