/**
 * `logins` of a config file: by which provider, and how, a driver's users log in. Pure.
 *
 * Guarantees: an address is a web address without credentials, query or fragment; without TLS only because the operator
 * wrote so. A driver is named by its id, with or without its major.
 */
import { joinPath, type Report } from "../../manifest/values/diagnostics.ts"
import type { McpLogins, OAuthFlow, OAuthSettings } from "./oauth-types.ts"

export interface LoginSettings {
  readonly flow: OAuthFlow
  readonly issuer?: string
  readonly endpoints?: {
    readonly authorization?: string
    readonly token?: string
    readonly device_authorization?: string
    readonly revocation?: string
  }
  /** absent where the program does the login */
  readonly client_id?: string
  readonly client_secret?: string
  readonly scopes?: readonly string[]
  readonly resource?: string
  readonly redirect_port?: number
  readonly secret?: string
}

export interface McpLoginSettings {
  readonly client_document?: string
  readonly register?: boolean
  readonly redirect_port?: number
}

const isAddress = (text: string): boolean => {
  const url = URL.parse(text)
  return (
    url !== null &&
    (url.protocol === "https:" || url.protocol === "http:") &&
    url.username === "" &&
    url.password === "" &&
    url.search === "" &&
    !text.includes("#")
  )
}

const checkAddress = (text: string | undefined, path: string, report: Report): void => {
  if (text !== undefined && !isAddress(text))
    report.error(
      "config-value",
      path,
      "this is no address of a provider's",
      "write an address such as https://id.example.com/token, without credentials, query or fragment",
    )
}

const settingsOf = (written: LoginSettings, at: string, report: Report): OAuthSettings => {
  const { issuer, endpoints = {}, scopes = [], resource } = written
  checkAddress(issuer, `${at}.issuer`, report)
  for (const [name, address] of Object.entries(endpoints)) checkAddress(address, `${at}.endpoints.${name}`, report)
  if (written.flow !== "program" && issuer === undefined && endpoints.token === undefined)
    report.error(
      "config-value",
      at,
      "a login needs `issuer`, or `endpoints` with `token`",
      "write `issuer: https://id.example.com`",
    )
  if (written.flow === "program" && endpoints.token === undefined)
    report.error(
      "config-value",
      `${at}.endpoints`,
      "a login that the program does is configured by where its tokens come from",
      "write `endpoints: { token: https://id.example.com/token }`",
    )
  if (written.flow !== "program" && written.client_id === undefined)
    report.error("missing-field", `${at}.client_id`, `\`${at}.client_id\` is missing`, "add `client_id:`")
  return Object.freeze({
    flow: written.flow,
    ...(issuer === undefined ? {} : { issuer }),
    endpoints: Object.freeze({
      ...(endpoints.authorization === undefined ? {} : { authorization: endpoints.authorization }),
      ...(endpoints.token === undefined ? {} : { token: endpoints.token }),
      ...(endpoints.device_authorization === undefined ? {} : { deviceAuthorization: endpoints.device_authorization }),
      ...(endpoints.revocation === undefined ? {} : { revocation: endpoints.revocation }),
    }),
    clientId: written.client_id ?? "",
    ...(written.client_secret === undefined ? {} : { clientSecret: written.client_secret }),
    scopes: Object.freeze([...scopes]),
    ...(resource === undefined ? {} : { resource }),
    ...(written.redirect_port === undefined ? {} : { redirectPort: written.redirect_port }),
    ...(written.secret === undefined ? {} : { secret: written.secret }),
  })
}

/** The document's address is a name, and compared to the letter: what it says is what is sent. */
const isDocument = (text: string): boolean => {
  const url = URL.parse(text)
  return url?.protocol === "https:" && url.pathname !== "/" && isAddress(text)
}

export const mcpLoginsOf = (
  { client_document: document, register = false, redirect_port: port }: McpLoginSettings,
  report: Report,
): McpLogins => {
  if (document !== undefined && !isDocument(document))
    report.error(
      "config-value",
      "mcp_logins.client_document",
      "this is no address of a Client ID Metadata Document",
      "write an address such as https://example.com/caisson.json",
    )
  return Object.freeze({
    ...(document === undefined ? {} : { clientDocument: document }),
    register,
    ...(port === undefined ? {} : { redirectPort: port }),
  })
}

export const loginsOf = (
  written: Readonly<Record<string, LoginSettings>>,
  report: Report,
): Readonly<Record<string, OAuthSettings>> =>
  Object.freeze(
    Object.fromEntries(
      Object.entries(written).map(([driver, login]) => [driver, settingsOf(login, joinPath("logins", driver), report)]),
    ),
  )
