/**
 * The three ways to tokens: a device code, a page with a callback (PKCE, always S256), this host's own credentials.
 *
 * Guarantees: a person is only ever shown https pages of the provider's, or those that the operator wrote. The provider is
 * asked as often as it allows and never more often than a limit. An answer counts only where state, issuer and PKCE fit.
 */
import { setTimeout as pause } from "node:timers/promises"
import * as oauth from "oauth4webapi"
import type { FlowFailed, LoginDesk } from "../flow.ts"
import { loginLimits } from "../limits.ts"
import type { Callback, CallbackOptions } from "../callback/loopback.ts"
import type { Provider } from "./provider.ts"
import type { KeptTokens } from "./tokens.ts"
import type { OAuthSettings } from "../../config/oauth-types.ts"

export type OpenCallback = (options: CallbackOptions) => Promise<Callback>
type Got = oauth.TokenEndpointResponse | FlowFailed

const needsPage: FlowFailed = {
  ok: false,
  why: "needs-person",
  message: "somebody must open the provider's page, and nobody is there",
}

const codeIn = (error: unknown): unknown =>
  error instanceof oauth.ResponseBodyError ? (error.error as unknown) : undefined

export const byDevice = async (provider: Provider, desk: LoginDesk): Promise<Got> => {
  const { server, client, clientAuth, request, wants } = provider
  const { person, signal } = desk
  if (person.open === undefined) return needsPage
  const asked = await oauth.deviceAuthorizationRequest(server, client, clientAuth, wants, request)
  const device = await oauth.processDeviceAuthorizationResponse(server, client, asked)
  person.open({
    url: device.verification_uri,
    code: device.user_code,
    ...(device.verification_uri_complete === undefined ? {} : { direct: device.verification_uri_complete }),
    from: "host",
  })
  desk.tell({ at: "waiting", for: "person" })
  let waitMs = (device.interval ?? 5) * 1000
  for (;;) {
    await pause(Math.max(waitMs, loginLimits.pollMs.value), undefined, { signal })
    try {
      const answer = await oauth.deviceCodeGrantRequest(server, client, clientAuth, device.device_code, {
        ...request,
        ...(wants.has("resource") ? { additionalParameters: { resource: wants.get("resource") ?? "" } } : {}),
      })
      return await oauth.processDeviceCodeResponse(server, client, answer)
    } catch (error) {
      const code = codeIn(error)
      if (code === "slow_down") waitMs += 5000
      else if (code !== "authorization_pending") throw error
    }
  }
}

export const byPage = async (
  provider: Provider,
  desk: LoginDesk,
  { redirectPort }: Pick<OAuthSettings, "redirectPort">,
  openCallback: OpenCallback,
  refused: CallbackOptions["refused"],
): Promise<Got> => {
  const { server, client, clientAuth, request, wants } = provider
  const { person, signal, deadlineMs } = desk
  if (person.open === undefined || server.authorization_endpoint === undefined) return needsPage
  const verifier = oauth.generateRandomCodeVerifier()
  await using callback = await openCallback({
    key: desk.key,
    forMs: Math.max(1, deadlineMs - Date.now()),
    refused,
    ...(redirectPort === undefined ? {} : { port: redirectPort }),
  })
  const page = new URL(server.authorization_endpoint)
  for (const [name, value] of [
    ...wants,
    ["client_id", client.client_id],
    ["redirect_uri", callback.redirectUri],
    ["response_type", "code"],
    ["state", callback.state],
    ["code_challenge", await oauth.calculatePKCECodeChallenge(verifier)],
    ["code_challenge_method", "S256"],
  ] as const)
    page.searchParams.set(name, value)
  // Asked for again where it is to last: some providers give a refresh token only then.
  if ((wants.get("scope") ?? "").split(" ").includes("offline_access")) page.searchParams.set("prompt", "consent")
  person.open({ url: page.href, from: "host" })
  desk.tell({ at: "waiting", for: "person" })
  const came = await callback.wait(signal)
  if (came === undefined) throw new DOMException("the login ended first", "AbortError")
  const parameters = oauth.validateAuthResponse(server, client, came, callback.state)
  const answer = await oauth.authorizationCodeGrantRequest(
    server,
    client,
    clientAuth,
    parameters,
    callback.redirectUri,
    verifier,
    {
      ...request,
      ...(wants.has("resource") ? { additionalParameters: { resource: wants.get("resource") ?? "" } } : {}),
    },
  )
  return await oauth.processAuthorizationCodeResponse(server, client, answer)
}

export const byCredentials = async ({ server, client, clientAuth, request, wants }: Provider): Promise<Got> =>
  await oauth.processClientCredentialsResponse(
    server,
    client,
    await oauth.clientCredentialsGrantRequest(server, client, clientAuth, wants, request),
  )

export const byRefreshToken = async (
  { server, client, clientAuth, request, wants }: Provider,
  refreshToken: string,
): Promise<Got> =>
  await oauth.processRefreshTokenResponse(
    server,
    client,
    await oauth.refreshTokenGrantRequest(server, client, clientAuth, refreshToken, {
      ...request,
      ...(wants.has("resource") ? { additionalParameters: { resource: wants.get("resource") ?? "" } } : {}),
    }),
  )

/** Both tokens, the one that makes others first; nothing where the provider has no place for that. */
export const revoke = async (
  { server, client, clientAuth, request }: Provider,
  { refreshToken, accessToken }: KeptTokens,
): Promise<void> => {
  if (server.revocation_endpoint === undefined) return
  for (const token of [refreshToken, accessToken])
    if (token !== undefined)
      await oauth.processRevocationResponse(await oauth.revocationRequest(server, client, clientAuth, token, request))
}

/** Whom the tokens belong to, where the provider says so in the same answer. */
export const accountIn = (answer: oauth.TokenEndpointResponse): string | undefined => {
  const claims = oauth.getValidatedIdTokenClaims(answer)
  if (claims === undefined) return undefined
  for (const name of ["email", "preferred_username", "sub"] as const) {
    const claim = claims[name]
    if (typeof claim === "string" && /^[^\p{Cc}\p{Cf}]{1,200}$/u.test(claim)) return claim
  }
  return undefined
}
