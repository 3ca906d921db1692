/**
 * The tokens of one owner that the sandbox knows by placeholders, as the proxy holds them while it lives. Types, and what
 * is made of them. Pure but for the random part of a placeholder.
 *
 * Guarantees: a placeholder stands for the newest token of its login: what a refresh brings takes the old one's place, so
 * that a placeholder which was written down before it is good after it. Tokens that came together share their login. No
 * placeholder is part of another, and none says anything of its token.
 */
import { randomBytes } from "node:crypto"
import type { EgressSubstitution } from "../types.ts"
import { captureLimits } from "./limits.ts"

export type TokenKind = "access" | "refresh" | "id"

export interface HeldToken {
  /** what the sandbox sees */
  readonly placeholder: string
  readonly kind: TokenKind
  readonly value: string
}

/** What one login of a program's was given, with what refreshes brought since. */
export interface TokenLogin {
  readonly id: string
  readonly tokens: readonly HeldToken[]
  /** of the last answer; epoch milliseconds */
  readonly at: number
  readonly expiresAt?: number
}

/** Where tokens are kept for their owner. The proxy holds no more of it than this. */
export interface TokenKeep {
  /** as they were when the proxy was made */
  readonly logins: readonly TokenLogin[]
  /** The owner's turn: as they are now, and nobody else uses or changes them until it is disposed of. Undefined: it did not come. */
  turn(): Promise<TokenTurn | undefined>
}
export interface TokenTurn extends AsyncDisposable {
  readonly logins: readonly TokenLogin[]
  /** true: on disk, whatever happens now */
  keep(logins: readonly TokenLogin[], changed: TokenLogin): Promise<boolean>
}

/** A token as it came, in its order. */
export interface NewToken {
  readonly kind: TokenKind
  readonly value: string
}

const placeholderOf = (id: string, kind: TokenKind, nth: number): string => `caisson-${kind}-${nth}-${id}`

/** What came in one answer, as a login: of `before` where it was a refresh of that. */
export function loginOf(
  came: readonly NewToken[],
  before: TokenLogin | undefined,
  times: { readonly now: number; readonly expiresIn: number | undefined },
): TokenLogin {
  const id = before?.id ?? randomBytes(16).toString("hex")
  const tokens: HeldToken[] = []
  const counted = { access: 0, refresh: 0, id: 0 }
  for (const { kind, value } of came) {
    if (tokens.some((held) => held.kind === kind && held.value === value)) continue
    counted[kind] += 1
    tokens.push({ kind, value, placeholder: placeholderOf(id, kind, counted[kind]) })
  }
  const kept = (before?.tokens ?? []).filter(
    (old) => !tokens.some(({ placeholder }) => placeholder === old.placeholder),
  )
  const { now, expiresIn } = times
  return {
    id,
    tokens: [...tokens, ...kept],
    at: now,
    ...(expiresIn === undefined ? {} : { expiresAt: now + expiresIn * 1000 }),
  }
}

/** With this one among them; the oldest are forgotten. */
export const withLogin = (logins: readonly TokenLogin[], login: TokenLogin): readonly TokenLogin[] =>
  [login, ...logins.filter(({ id }) => id !== login.id)].sort((a, b) => b.at - a.at).slice(0, captureLimits.logins)

/** As secrets are put in and taken out again: an access token in `Authorization`, the others in no header at all. */
export const substitutionsOf = (
  logins: readonly TokenLogin[],
  hosts: readonly string[],
): readonly EgressSubstitution[] =>
  logins
    .flatMap(({ tokens }) => tokens)
    .map(({ placeholder, kind, value }) => ({
      placeholder,
      value,
      hosts,
      headers: kind === "access" ? ["authorization"] : [],
    }))
