/**
 * Tokens of a login in the vault, for one driver, workspace and user.
 *
 * Guarantees: what a provider gave is durable before this answers, or told as not kept; the one that cannot be had again
 * comes first. While the vault cannot be opened nothing is known of the login. A bug is thrown on, whatever else went wrong
 * is told as a login tells it.
 */
import { slugOfEnv } from "../../../manifest/contracts/secrets.ts"
import type { RegisteredDriver } from "../../registry/types.ts"
import { Secret } from "../../secrets/secret.ts"
import type { OAuthSettings } from "../../config/oauth-types.ts"
import type { FlowFailed, LoginDesk } from "../flow.ts"
import { failureOf } from "./failed.ts"
import { envelopeOf, type KeptTokens, readEnvelope, timesOf, tokensOf } from "./tokens.ts"

/** What a driver's program is given: the access token alone. */
export const slugOfTokens = (
  { contract: { auth } }: RegisteredDriver,
  { secret }: Pick<OAuthSettings, "secret">,
): string | undefined => {
  const [first] = auth?.state.env ?? []
  return secret ?? (first === undefined ? undefined : slugOfEnv(first))
}

export const noPlace: FlowFailed = {
  ok: false,
  why: "broken",
  message: "the driver names no secret that its tokens could be kept under",
  fix: "list a variable in `auth.state.env` of the driver, or write `secret:` in its login's settings",
}

/** What only this host needs is kept beside it. */
export const withAll = (slug: string): string => `${slug.slice(0, 74)}-login`

/** Durable, or told that it is not. */
export const keepTokens = async (
  desk: LoginDesk,
  slug: string,
  answer: Parameters<typeof tokensOf>[0],
  before: KeptTokens | undefined,
): Promise<ReturnType<typeof timesOf> | FlowFailed> => {
  const nowMs = Date.now()
  const tokens = tokensOf(answer, before, nowMs)
  // The one that cannot be had again first: an access token that is older than it is found out at the next call.
  const whole = await desk.kept.set(withAll(slug), envelopeOf(tokens))
  const kept = whole.ok ? await desk.kept.set(slug, new Secret(tokens.accessToken)) : whole
  if (kept.ok) return timesOf(tokens, nowMs)
  return {
    ok: false,
    why: "broken",
    message: `the provider gave new tokens, and they could not be kept: ${kept.message}`,
    ...(kept.hint === undefined ? {} : { fix: `${kept.hint}, then log in again` }),
  }
}

export const readTokens = async (desk: LoginDesk, slug: string): Promise<KeptTokens | undefined | FlowFailed> => {
  const found = await desk.kept.get(withAll(slug))
  // Nothing is known of the login while the vault cannot be opened.
  if (!found.ok) return { ok: false, why: "unreachable", message: found.message }
  return found.value === undefined ? undefined : readEnvelope(found.value)
}

export const guarded = async <T>(desk: LoginDesk, work: () => Promise<T>): Promise<T | FlowFailed> => {
  try {
    return await work()
  } catch (error) {
    return failureOf(error, desk.signal, desk.deadlineMs)
  }
}
