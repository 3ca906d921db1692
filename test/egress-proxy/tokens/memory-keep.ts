/** An owner's tokens in memory, with turns as a keeper on disk gives them. */
import type { TokenKeep, TokenLogin } from "../../../src/egress-proxy/tokens/held.ts"

export interface MemoryKeep extends TokenKeep {
  now: readonly TokenLogin[]
  fails: boolean
  /** how often a turn was had at once, at most */
  most: number
}

export function memoryKeep(logins: readonly TokenLogin[] = []): MemoryKeep {
  let before = Promise.resolve()
  let inside = 0
  const keep: MemoryKeep = {
    logins,
    now: logins,
    fails: false,
    most: 0,
    turn: async () => {
      const mine = Promise.withResolvers<void>()
      const last = before
      before = before.then(() => mine.promise)
      await last
      inside += 1
      keep.most = Math.max(keep.most, inside)
      return {
        logins: keep.now,
        keep: async (next) => {
          if (!keep.fails) keep.now = next
          return !keep.fails
        },
        [Symbol.asyncDispose]: async () => {
          inside -= 1
          mine.resolve()
        },
      }
    },
  }
  return keep
}

export const tokensIn = (keep: MemoryKeep, kind: string): readonly string[] =>
  keep.now.flatMap(({ tokens }) => tokens.filter((token) => token.kind === kind).map(({ value }) => value))
