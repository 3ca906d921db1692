/**
 * The tokens of one proxy, beside the secrets that its policy puts in: what a sandbox was given placeholders for.
 *
 * Guarantees: what was captured is turned back, and taken out of what hosts send, from that moment on, on connections that
 * are open already too. Tokens are turned back at the endpoints' own hosts and at the hosts that they are meant for, and
 * nowhere else. What is under way when the proxy is closed is waited for, within a bound.
 */
import type { EgressCapture, EgressSubstitution } from "../types.ts"
import { prepareSubstitutions, type Substitutions } from "../secrets/substitute.ts"
import { spellingsOf } from "../secrets/scrub.ts"
import { substitutionsOf, type TokenKeep, type TokenLogin, type TokenTurn } from "./held.ts"
import { captureLimits } from "./limits.ts"

export interface CapturedTokens {
  readonly logins: readonly TokenLogin[]
  turn(): Promise<TokenTurn | undefined>
  /** What is known from now on. */
  set(logins: readonly TokenLogin[]): void
  /** Counts until it is over as something that a proxy waits for when it is closed. */
  underWay<T>(work: Promise<T>): Promise<T>
  settled(): Promise<void>
  /** The policy's own substitutions and those of the tokens, as one that follows what is captured. */
  beside(own: readonly EgressSubstitution[], capture: EgressCapture): Substitutions
}

export function createCapturedTokens(keep: TokenKeep): CapturedTokens {
  let logins = keep.logins
  let version = 0
  /** tokens that were replaced while the proxy lives: they may be good for a while, and be echoed */
  const replaced = new Map<string, readonly Buffer[]>()
  const works = new Set<Promise<unknown>>()
  const current = (own: readonly EgressSubstitution[], hosts: readonly string[]): (() => Substitutions) => {
    let made: { readonly of: number; readonly it: Substitutions } | undefined
    return () => {
      if (made?.of === version) return made.it
      const prepared = prepareSubstitutions([...own, ...substitutionsOf(logins, hosts)])
      // Of what is kept by its owner nothing is unfit: it was looked at when it came.
      if (!prepared.ok) throw new TypeError(prepared.reason)
      made = { of: version, it: prepared.substitutions }
      return made.it
    }
  }
  return {
    get logins() {
      return logins
    },
    turn: () => keep.turn(),
    set(next) {
      const now = new Set(valuesIn(next))
      for (const value of valuesIn(logins)) if (!now.has(value)) replaced.set(value, spellingsOf(value))
      for (const value of [...replaced.keys()].slice(0, -captureLimits.replaced)) replaced.delete(value)
      logins = next
      version += 1
    },
    async underWay(work) {
      const ended = work.then(nothing, nothing)
      works.add(ended)
      try {
        return await work
      } finally {
        works.delete(ended)
      }
    },
    async settled() {
      if (works.size === 0) return
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, captureLimits.closeMs)
      void Promise.all(works).then(() => resolve())
      await promise
      clearTimeout(timer)
    },
    beside(own, { endpoints, hosts: meant }) {
      const hosts = boundHosts({ endpoints, hosts: meant })
      const now = current(own, hosts)
      return {
        get placeholders() {
          return now().placeholders
        },
        get headers() {
          return now().headers
        },
        boundTo: (host) => hosts.includes(host) || now().boundTo(host),
        spellingsFor: (host) => [
          ...now().spellingsFor(host),
          ...(hosts.includes(host) ? [...replaced.values()].flat() : []),
        ],
        apply: (request) => now().apply(request),
        detect: (request) => now().detect(request),
      }
    },
  }
}

const nothing = (): void => {}
const valuesIn = (logins: readonly TokenLogin[]): readonly string[] =>
  logins.flatMap(({ tokens }) => tokens.map(({ value }) => value))

/** Hosts whose TLS must be ended at the proxy. */
export const boundHosts = ({ endpoints, hosts }: Pick<EgressCapture, "endpoints" | "hosts">): readonly string[] => [
  ...new Set([...endpoints.map(({ host }) => host), ...hosts]),
]
