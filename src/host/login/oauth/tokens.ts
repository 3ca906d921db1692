/**
 * Tokens of a login as the vault keeps them: AIP-19's envelope of kind oauth. Pure.
 *
 * Guarantees: what is read back is what was written, or nothing; a token that a provider gave only once (a rotated refresh
 * token) is carried on where an answer brings no new one. When a token is to be refreshed lies before it ends.
 */
import { Secret } from "../../secrets/secret.ts"

export interface KeptTokens {
  readonly accessToken: string
  readonly refreshToken?: string
  /** epoch milliseconds */
  readonly expiresAt?: number
}

/** The answer of a token endpoint, as far as it is kept. */
interface TokenAnswer {
  readonly access_token: string
  readonly refresh_token?: string
  readonly expires_in?: number
}

const MOST_SECONDS = 10 * 365 * 24 * 3600

export const tokensOf = (answer: TokenAnswer, before: KeptTokens | undefined, nowMs: number): KeptTokens => {
  const refreshToken = answer.refresh_token ?? before?.refreshToken
  const { expires_in: seconds } = answer
  return {
    accessToken: answer.access_token,
    ...(refreshToken === undefined ? {} : { refreshToken }),
    ...(seconds === undefined ? {} : { expiresAt: nowMs + Math.min(seconds, MOST_SECONDS) * 1000 }),
  }
}

export const envelopeOf = (tokens: KeptTokens): Secret => new Secret(JSON.stringify(tokens))

export const readEnvelope = (secret: Secret): KeptTokens | undefined => {
  try {
    const { accessToken, refreshToken, expiresAt } = JSON.parse(secret.reveal()) as Partial<KeptTokens>
    if (typeof accessToken !== "string" || accessToken === "") return undefined
    return {
      accessToken,
      ...(typeof refreshToken === "string" && refreshToken !== "" ? { refreshToken } : {}),
      ...(typeof expiresAt === "number" ? { expiresAt } : {}),
    }
  } catch {
    return undefined
  }
}

const MARGIN_MS = 60_000

/** For the login's record: when the token ends, and when it is to be refreshed, a tenth of its life before or a minute. */
export const timesOf = (
  { expiresAt }: Pick<KeptTokens, "expiresAt">,
  nowMs: number,
): { expiresMs?: number; refreshMs?: number } => {
  if (expiresAt === undefined) return {}
  const life = Math.max(0, expiresAt - nowMs)
  return { expiresMs: expiresAt, refreshMs: expiresAt - Math.min(MARGIN_MS, life / 10) }
}
