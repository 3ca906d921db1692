/**
 * Logins by OAuth 2: tokens are asked for by the host itself and kept in the vault; no program ever holds a refresh token.
 *
 * Guarantees: what a provider gave is in the vault before anyone is told that it came, so that a token that was rotated is
 * never lost to a crash after it was used; one that could not be kept is told as that. Tokens belong to one driver,
 * workspace and user, as all that a desk keeps. Logging out tells the provider, where it has a place for that.
 */
import type { RegisteredDriver } from "../../registry/types.ts"
import type { Secret } from "../../secrets/secret.ts"
import type { FlowFailed, LoginDesk, LoginFlow, LoginMethod, RefreshFlow } from "../flow.ts"
import { openLoopbackCallback } from "../callback/loopback.ts"
import type { RefusedCallback } from "../callback/page.ts"
import { isFailed } from "./failed.ts"
import type { OpenCallback } from "./flows.ts"
import { guarded, keepTokens, noPlace, readTokens, slugOfTokens, withAll } from "./kept-tokens.ts"
import type { Provider } from "./provider.ts"
import type { OAuthSettings } from "../../config/oauth-types.ts"

export interface OAuthOptions {
  /** undefined: the driver has no such login */
  readonly settingsOf: (driver: RegisteredDriver) => OAuthSettings | undefined
  /** a secret of this host as a client; of the operator's, for everybody */
  readonly clientSecret: (slug: string, desk: LoginDesk) => Promise<Secret | undefined>
  /** told of answers to a login's page that were refused */
  readonly refused: (desk: LoginDesk, why: RefusedCallback) => void
  readonly openCallback?: OpenCallback
}

/** What speaks the protocol is loaded when somebody logs in. */
const flows = () => import("./flows.ts")

export const oauthMethod = (options: OAuthOptions): LoginMethod => {
  const { settingsOf, clientSecret, refused, openCallback = openLoopbackCallback } = options

  const providerFor = async (settings: OAuthSettings, desk: LoginDesk): Promise<Provider | FlowFailed> =>
    await (await import("./provider.ts")).openProvider(
      settings,
      desk,
      settings.clientSecret === undefined ? undefined : await clientSecret(settings.clientSecret, desk),
    )

  const tokensBy = async (settings: OAuthSettings, provider: Provider, desk: LoginDesk) => {
    const { byCredentials, byDevice, byPage } = await flows()
    if (settings.flow === "device-code") return await byDevice(provider, desk)
    if (settings.flow === "client-credentials") return await byCredentials(provider)
    return await byPage(provider, desk, settings, openCallback, (why) => refused(desk, why))
  }

  const loginBy = (settings: OAuthSettings, slug: string | undefined): LoginFlow => ({
    method: `oauth ${settings.flow}`,
    ...(slug === undefined ? {} : { keeps: [slug, withAll(slug)] }),
    needs: settings.flow === "client-credentials" ? [] : ["open"],
    run: async (desk) =>
      await guarded(desk, async () => {
        if (slug === undefined) return noPlace
        const provider = await providerFor(settings, desk)
        if (isFailed(provider)) return provider
        const got = await tokensBy(settings, provider, desk)
        if (isFailed(got)) return got
        const kept = await keepTokens(desk, slug, got, undefined)
        if (isFailed(kept)) return kept
        const account = (await flows()).accountIn(got)
        return { ok: true as const, ...kept, ...(account === undefined ? {} : { account }) }
      }),
    revoke: async (desk) =>
      await guarded(desk, async () => {
        const tokens = slug === undefined ? undefined : await readTokens(desk, slug)
        if (tokens === undefined) return { ok: true as const }
        if (isFailed(tokens)) return tokens
        const provider = await providerFor(settings, desk)
        if (isFailed(provider)) return provider
        await (await flows()).revoke(provider, tokens)
        return { ok: true as const }
      }),
  })

  const refreshBy = (settings: OAuthSettings, slug: string): RefreshFlow => ({
    method: "oauth",
    run: async (desk) =>
      await guarded(desk, async () => {
        const before = await readTokens(desk, slug)
        if (before !== undefined && isFailed(before)) return before
        if (settings.flow !== "client-credentials" && before?.refreshToken === undefined)
          return { ok: false as const, why: "refused" as const, message: "there is no refresh token to renew it by" }
        const { refreshAt, endpoints } = settings
        const at = refreshAt === undefined ? settings : { ...settings, endpoints: { ...endpoints, token: refreshAt } }
        const provider = await providerFor(at, desk)
        if (isFailed(provider)) return provider
        const { byCredentials, byRefreshToken } = await flows()
        const got =
          before?.refreshToken === undefined
            ? await byCredentials(provider)
            : await byRefreshToken(provider, before.refreshToken)
        if (isFailed(got)) return got
        const kept = await keepTokens(desk, slug, got, before)
        return isFailed(kept) ? kept : { ok: true as const, ...kept }
      }),
  })

  return {
    loginOf: (driver) => {
      const settings = settingsOf(driver)
      return settings === undefined ? undefined : loginBy(settings, slugOfTokens(driver, settings))
    },
    oauthOf: (driver, slug) => {
      const settings = settingsOf(driver)
      return settings === undefined ? undefined : loginBy(settings, slug)
    },
    refreshOf: (driver) => {
      const settings = settingsOf(driver)
      const slug = settings === undefined ? undefined : slugOfTokens(driver, settings)
      return settings === undefined || slug === undefined ? undefined : refreshBy(settings, slug)
    },
  }
}
