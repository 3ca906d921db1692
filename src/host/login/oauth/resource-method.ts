/**
 * Logins at a service that says itself where its tokens come from: an MCP server that runs elsewhere.
 *
 * Guarantees: nothing is asked of anybody but in a login that somebody began, or a refresh. The service is asked first what
 * it wants; where that leads is checked before a person is sent there. Tokens are asked for this resource alone
 * (RFC 8707), kept before anybody is told of them, and renewed only by the issuer that gave them, while the service still
 * names it. What the operator wrote for the driver counts before what is found.
 */
import type * as oauth from "oauth4webapi"
import type { McpLogins, OAuthSettings } from "../../config/oauth-types.ts"
import type { Challenge, ProtectedResource } from "../../drivers/resource.ts"
import { NotAsked } from "../../drivers/fetch-over.ts"
import { loginWebLimits } from "../../limits.ts"
import type { RegisteredDriver } from "../../registry/types.ts"
import type { Secret } from "../../secrets/secret.ts"
import type { FlowFailed, LoginDesk, LoginEnd, LoginMethod, RefreshEnd } from "../flow.ts"
import { openLoopbackCallback } from "../callback/loopback.ts"
import { isFailed } from "./failed.ts"
import { guarded, keepTokens, noPlace, readTokens, slugOfTokens } from "./kept-tokens.ts"
import type { OAuthOptions } from "./method.ts"
import type { Provider } from "./provider.ts"
import { findResource, type Resource } from "./resource-metadata.ts"

interface ResourceOptions extends Pick<OAuthOptions, "settingsOf" | "clientSecret" | "refused" | "openCallback"> {
  /** undefined: it is none */
  readonly resourceOf: (driver: RegisteredDriver) => ProtectedResource | undefined
  readonly logins: McpLogins
}

/** One login's way: to whom it leads, and what the operator said of it. */
interface Way {
  readonly resource: ProtectedResource
  readonly preset: OAuthSettings | undefined
  readonly slug: string | undefined
}

/** What speaks the protocol is loaded when somebody logs in. */
const parts = async () => ({
  ...(await import("./flows.ts")),
  ...(await import("./provider.ts")),
  ...(await import("./resource-client.ts")),
  ...(await import("./resource-server.ts")),
})

/** What is asked for: what the operator, the refusal or the metadata names, and what a call was missing since. */
const scopesFor = (
  { scopes: { before, wanted } }: Pick<LoginDesk, "scopes">,
  preset: Pick<OAuthSettings, "scopes"> | undefined,
  challenge: Pick<Challenge, "scopes"> | undefined,
  resource: Pick<Resource, "scopes">,
  { scopes_supported: known = [] }: Pick<oauth.AuthorizationServer, "scopes_supported">,
): readonly string[] => {
  const written = preset?.scopes ?? []
  const base = written.length > 0 ? written : (challenge?.scopes ?? resource.scopes)
  const all = new Set([...base, ...(wanted.length === 0 ? [] : [...before, ...wanted])])
  // Without it many a server gives no refresh token; one that does not know it may refuse the whole.
  if (all.size > 0 && known.includes("offline_access")) all.add("offline_access")
  return [...all].slice(0, loginWebLimits.scopes.value)
}

const wantsOf = (scopes: readonly string[], resource: string | undefined): URLSearchParams =>
  new URLSearchParams({
    ...(scopes.length === 0 ? {} : { scope: scopes.join(" ") }),
    ...(resource === undefined ? {} : { resource }),
  })

/** A client that registered itself and is not known any more: only a new login registers it again. */
const forgotten = (error: unknown, preset: OAuthSettings | undefined): FlowFailed => {
  const said = error instanceof Error && "error" in error ? error.error : undefined
  const code = error instanceof Error && "code" in error ? error.code : undefined
  const isForgotten = said === "invalid_client" || said === "unauthorized_client" || code === CHALLENGED
  if (preset !== undefined || !isForgotten) throw error
  return { ok: false, why: "refused", message: "the provider does not know this host any more" }
}
const CHALLENGED = "OAUTH_WWW_AUTHENTICATE_CHALLENGE"

export const resourceMethod = (options: ResourceOptions): LoginMethod => {
  const { settingsOf, resourceOf, clientSecret, refused, logins, openCallback = openLoopbackCallback } = options

  const wayOf = (driver: RegisteredDriver): Way | undefined => {
    const resource = resourceOf(driver)
    const preset = settingsOf(driver)
    const { login, provider } = driver.contract.auth ?? {}
    // What an AUTH.md says of its login is its author's word; what no one wrote is found.
    const isUnsaid = login !== undefined && login.cmd === undefined && provider === undefined
    const isFound = preset === undefined ? isUnsaid : preset.issuer !== undefined && preset.flow !== "program"
    return resource === undefined || !isFound
      ? undefined
      : { resource, preset, slug: slugOfTokens(driver, preset ?? {}) }
  }

  const secretOf = async (preset: OAuthSettings | undefined, desk: LoginDesk): Promise<Secret | undefined> =>
    preset?.clientSecret === undefined ? undefined : await clientSecret(preset.clientSecret, desk)

  /** With a page, this host has to know where it is sent back to before it can say who it is. */
  const byPage = async (desk: LoginDesk, { preset }: Way, base: Omit<Provider, "client" | "clientAuth">) => {
    const { authBy, byPage: openPage, clientFor } = await parts()
    const port = preset?.redirectPort ?? logins.redirectPort
    await using callback = await openCallback({
      key: desk.key,
      forMs: Math.max(1, desk.deadlineMs - Date.now()),
      refused: (why) => refused(desk, why),
      ...(port === undefined ? {} : { port }),
    })
    const identities = { preset, presetSecret: await secretOf(preset, desk), logins }
    const known = await clientFor(base.server, base.request, identities, callback.redirectUri)
    if (isFailed(known)) return known
    const provider = { ...base, client: { client_id: known.id }, clientAuth: authBy(known) }
    const kept = { redirectUri: callback.redirectUri, state: callback.state, wait: callback.wait }
    const open = async () => ({ ...kept, [Symbol.asyncDispose]: async () => undefined })
    const got = await openPage(provider, desk, {}, open, () => undefined)
    return isFailed(got) ? got : { got, known }
  }

  const withoutPage = async (desk: LoginDesk, { preset }: Way, base: Omit<Provider, "client" | "clientAuth">) => {
    const { authBy, byCredentials, byDevice, clientFor } = await parts()
    const known = await clientFor(base.server, base.request, {
      preset,
      presetSecret: await secretOf(preset, desk),
      logins,
    })
    if (isFailed(known)) return known
    const provider = { ...base, client: { client_id: known.id }, clientAuth: authBy(known) }
    const got = preset?.flow === "device-code" ? await byDevice(provider, desk) : await byCredentials(provider)
    return isFailed(got) ? got : { got, known }
  }

  const logIn = async (desk: LoginDesk, way: Way): Promise<LoginEnd> => {
    const { resource, preset, slug } = way
    if (slug === undefined) return noPlace
    const { accountIn, chooseIssuer, keepClient, openServer, requestOver } = await parts()
    const said = await resource.ask(desk)
    if (!said.ok) throw new NotAsked(said)
    const found = await findResource(desk, new URL(resource.url), said.value)
    if (isFailed(found)) return found
    const issuer = chooseIssuer(desk, found, preset?.issuer)
    if (typeof issuer !== "string") return issuer
    const server = await openServer(desk, issuer, found)
    if (isFailed(server)) return server
    const scopes = scopesFor(desk, preset, said.value, found, server)
    const base = { server, request: requestOver(desk), wants: wantsOf(scopes, preset?.resource ?? found.id) }
    const isPage = preset === undefined || preset.flow === "authorization-code"
    const ended = await (isPage ? byPage(desk, way, base) : withoutPage(desk, way, base))
    if (isFailed(ended)) return ended
    const { got, known } = ended
    const { metadata } = found
    const unkept = await keepClient(desk, slug, { ...known, ...(metadata === undefined ? {} : { metadata }) })
    if (unkept !== undefined) return unkept
    const kept = await keepTokens(desk, slug, got, undefined)
    if (isFailed(kept)) return kept
    const account = accountIn(got)
    return { ok: true, ...kept, scopes, ...(account === undefined ? {} : { account }) }
  }

  /** The provider of a login that was done, as the service names it now. */
  const again = async (
    desk: LoginDesk,
    { resource, preset, slug = "" }: Way,
  ): Promise<{ readonly provider: Provider } | FlowFailed> => {
    const { authBy, chooseIssuer, openServer, readClient, requestOver } = await parts()
    const client = await readClient(desk, slug)
    if (client === undefined) return { ok: false, why: "refused", message: "nothing is known of who gave its tokens" }
    if (isFailed(client)) return client
    const found = await findResource(desk, new URL(resource.url), client)
    if (isFailed(found)) return found
    const issuer = chooseIssuer(desk, found, client.issuer)
    if (typeof issuer !== "string") return issuer
    const server = await openServer(desk, issuer, found)
    if (isFailed(server)) return server
    const wants = wantsOf([], preset?.resource ?? found.id)
    const request = requestOver(desk)
    return { provider: { server, request, wants, client: { client_id: client.id }, clientAuth: authBy(client) } }
  }

  const refresh = async (desk: LoginDesk, way: Way): Promise<RefreshEnd> => {
    const { preset, slug = "" } = way
    const before = await readTokens(desk, slug)
    if (before !== undefined && isFailed(before)) return before
    const byItself = preset?.flow === "client-credentials"
    if (!byItself && before?.refreshToken === undefined)
      return { ok: false, why: "refused", message: "there is no refresh token to renew it by" }
    const opened = await again(desk, way)
    if (isFailed(opened)) return opened
    const { byCredentials, byRefreshToken } = await parts()
    const token = before?.refreshToken
    const asking = token === undefined ? byCredentials(opened.provider) : byRefreshToken(opened.provider, token)
    const got = await asking.catch((error: unknown) => forgotten(error, preset))
    if (isFailed(got)) return got
    const kept = await keepTokens(desk, slug, got, before)
    return isFailed(kept) ? kept : { ok: true, ...kept }
  }

  const endAt = async (desk: LoginDesk, way: Way): Promise<RefreshEnd> => {
    const tokens = way.slug === undefined ? undefined : await readTokens(desk, way.slug)
    if (tokens === undefined) return { ok: true }
    if (isFailed(tokens)) return tokens
    const opened = await again(desk, way)
    if (isFailed(opened)) return opened
    await (await parts()).revoke(opened.provider, tokens)
    return { ok: true }
  }

  return {
    loginOf: (driver) => {
      const way = wayOf(driver)
      if (way === undefined) return undefined
      const flow = way.preset?.flow ?? "authorization-code"
      return {
        method: `oauth ${flow}`,
        needs: flow === "client-credentials" ? [] : ["open"],
        run: (desk) => guarded(desk, () => logIn(desk, way)),
        revoke: (desk) => guarded(desk, () => endAt(desk, way)),
      }
    },
    refreshOf: (driver) => {
      const way = wayOf(driver)
      if (way?.slug === undefined) return undefined
      return { method: "oauth", run: (desk) => guarded(desk, () => refresh(desk, way)) }
    },
  }
}
