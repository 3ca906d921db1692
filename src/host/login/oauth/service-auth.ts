/**
 * AIP-50's flow `service-auth`: a person approves this host at the service's own page, by a code, and what is kept of it is
 * an assertion of the service's, from which access tokens are made.
 *
 * Guarantees: the assertion alone is kept, in the vault, for one driver, workspace and user; the word by which the approval
 * is asked after, and access tokens, are in memory and nowhere else. A newer assertion is durable before its token is used.
 * A person is shown https pages alone, but under names that the operator maps; the service is asked no more often than it
 * allows. Does not: mint assertions of its own, or register anybody without a person.
 */
import { setTimeout as pause } from "node:timers/promises"
import * as oauth from "oauth4webapi"
import type { OAuthSettings } from "../../config/oauth-types.ts"
import { Secret } from "../../secrets/secret.ts"
import type { FlowFailed, LoginDesk, LoginEnd, RefreshEnd } from "../flow.ts"
import { loginLimits } from "../limits.ts"
import { isFailed } from "./failed.ts"
import { withAll } from "./kept-tokens.ts"
import { openProvider, type Provider } from "./provider.ts"
import { timesOf, tokensOf } from "./tokens.ts"

const CLAIM = "urn:workos:agent-auth:grant-type:claim"
const ASSERTION = "urn:ietf:params:oauth:grant-type:jwt-bearer"
const POLL_SECONDS = 5
/** As long as a secret may be, and what no header could not hold. */
const WORD = /^[\x21-\x7e]{8,16384}$/

interface Claim {
  readonly token: string
  readonly code: string
  readonly page: string
  readonly waitMs: number
}

const broken = (message: string): FlowFailed => ({
  ok: false,
  why: "broken",
  message,
  fix: "see that issuer and endpoints of the login are the service's own",
})

const object = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {}
const word = (value: unknown): string | undefined => (typeof value === "string" && WORD.test(value) ? value : undefined)

const mayBeShown = (page: unknown, { plainHosts = [] }: OAuthSettings): page is string => {
  const url = typeof page === "string" ? URL.parse(page) : null
  if (url === null || url.username !== "" || url.password !== "") return false
  return url.protocol === "https:" || (url.protocol === "http:" && plainHosts.includes(url.hostname))
}

const readClaim = (told: unknown, settings: OAuthSettings): Claim | FlowFailed => {
  const { claim_token: token, claim } = object(told)
  const { user_code: code, verification_uri: page, interval } = object(claim)
  const known = word(token)
  if (
    known === undefined ||
    typeof code !== "string" ||
    !/^[\x20-\x7e]{1,64}$/.test(code) ||
    !mayBeShown(page, settings)
  )
    return broken("what the service answered is no approval that a person could give")
  const seconds = typeof interval === "number" && interval >= 0 && interval <= 600 ? interval : POLL_SECONDS
  return { token: known, code, page, waitMs: seconds * 1000 }
}

const begin = async (settings: OAuthSettings, { server, request, client }: Provider): Promise<Claim | FlowFailed> => {
  const found = object((server as Record<string, unknown>)["agent_auth"])["identity_endpoint"]
  const endpoint = settings.endpoints.identity ?? (typeof found === "string" ? found : undefined)
  if (endpoint === undefined || !URL.canParse(endpoint))
    return broken("the service does not say where an approval is asked for (`agent_auth.identity_endpoint`)")
  const { loginHint } = settings
  const asked = { type: "service_auth", client_id: client.client_id }
  const answer = await request[oauth.customFetch](endpoint, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify({ ...asked, ...(loginHint === undefined ? {} : { login_hint: loginHint }) }),
  })
  const told: unknown = await answer.json().catch(() => undefined)
  if (answer.status >= 500 || answer.status === 429)
    return { ok: false, why: "unreachable", message: `the service answered ${answer.status}`, fix: "try again later" }
  if (answer.status < 200 || answer.status > 299) {
    const { error } = object(told)
    const said = typeof error === "string" && /^\w{1,64}$/.test(error) ? error : String(answer.status)
    return { ok: false, why: "refused", message: `the service does not begin such a login (${said})` }
  }
  return readClaim(told, settings)
}

const granted = async (
  { server, client, clientAuth, request }: Provider,
  grant: string,
  given: Readonly<Record<string, string>>,
): Promise<oauth.TokenEndpointResponse> =>
  await oauth.processGenericTokenEndpointResponse(
    server,
    client,
    await oauth.genericTokenEndpointRequest(server, client, clientAuth, grant, { ...given }, request),
  )

const approved = async (
  provider: Provider,
  claim: Claim,
  signal: AbortSignal,
): Promise<oauth.TokenEndpointResponse> => {
  let { waitMs } = claim
  for (;;) {
    await pause(Math.max(waitMs, loginLimits.pollMs.value), undefined, { signal })
    try {
      return await granted(provider, CLAIM, { claim_token: claim.token, client_id: provider.client.client_id })
    } catch (error) {
      const code: unknown = error instanceof oauth.ResponseBodyError ? error.error : undefined
      if (code === "slow_down") waitMs += 5000
      else if (code !== "authorization_pending") throw error
    }
  }
}

/** Durable, where there is a newer one than it was `given`; then the token, in memory. */
const take = async (
  desk: LoginDesk,
  slug: string,
  got: oauth.TokenEndpointResponse,
  given?: Secret,
): Promise<RefreshEnd> => {
  const newer = word(got["identity_assertion"])
  const assertion = newer === undefined ? given : new Secret(newer)
  if (assertion === undefined)
    return broken("the service gave a token and no assertion, by which another one could be made")
  if (assertion !== given) {
    const kept = await desk.kept.set(withAll(slug), assertion)
    if (!kept.ok)
      return {
        ok: false,
        why: "broken",
        message: `what the service gave could not be kept: ${kept.message}`,
        ...(kept.hint === undefined ? {} : { fix: `${kept.hint}, then log in again` }),
      }
  }
  desk.kept.hold(slug, new Secret(got.access_token), { slug: withAll(slug), value: assertion })
  const nowMs = Date.now()
  return { ok: true, ...timesOf(tokensOf(got, undefined, nowMs), nowMs) }
}

export const logIn = async (desk: LoginDesk, settings: OAuthSettings, slug: string): Promise<LoginEnd> => {
  const { person } = desk
  if (person.open === undefined)
    return { ok: false, why: "needs-person", message: "somebody must open the service's page, and nobody is there" }
  const provider = await openProvider(settings, desk, undefined)
  if (isFailed(provider)) return provider
  const claim = await begin(settings, provider)
  if (isFailed(claim)) return claim
  person.open({ url: claim.page, code: claim.code, from: "host" })
  desk.tell({ at: "waiting", for: "person" })
  return await take(desk, slug, await approved(provider, claim, desk.signal))
}

export const refresh = async (desk: LoginDesk, settings: OAuthSettings, slug: string): Promise<RefreshEnd> => {
  const found = await desk.kept.get(withAll(slug))
  if (!found.ok) return { ok: false, why: "unreachable", message: found.message }
  if (found.value === undefined) return { ok: false, why: "refused", message: "nothing is kept of its login" }
  const provider = await openProvider(settings, desk, undefined)
  if (isFailed(provider)) return provider
  const given = { assertion: found.value.reveal(), client_id: provider.client.client_id }
  return await take(desk, slug, await granted(provider, ASSERTION, given), found.value)
}

export const revoke = async (desk: LoginDesk, settings: OAuthSettings, slug: string): Promise<RefreshEnd> => {
  const provider = await openProvider(settings, desk, undefined)
  if (isFailed(provider)) return provider
  const { server, client, clientAuth, request } = provider
  for (const name of server.revocation_endpoint === undefined ? [] : [withAll(slug), slug]) {
    const found = await desk.kept.get(name)
    if (!found.ok || found.value === undefined) continue
    const answer = await oauth.revocationRequest(server, client, clientAuth, found.value.reveal(), request)
    await oauth.processRevocationResponse(answer)
  }
  return { ok: true }
}
