/**
 * Header lists as they cross an intercepting proxy.
 *
 * Guarantees: order, spelling and repetition of what is kept are kept. Hop-by-hop headers, those that `Connection`
 * nominates, `Proxy-*`, `Via`, `Alt-Svc` (another way to the host, around the proxy) and this product's own control
 * headers never cross, in either direction. Pure.
 */
import { hopByHop } from "../http/hop-by-hop.ts"
import type { HeaderPair } from "../secrets/substitute.ts"

const dropped: ReadonlySet<string> = new Set(hopByHop)

export function pairsOf(rawHeaders: readonly string[]): readonly HeaderPair[] {
  const pairs: HeaderPair[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    pairs.push([rawHeaders[at] as string, rawHeaders[at + 1] as string])
  }
  return pairs
}

export const flatten = (pairs: readonly HeaderPair[]): string[] => pairs.flatMap(([name, value]) => [name, value])

export const valuesOf = (pairs: readonly HeaderPair[], name: string): readonly string[] =>
  pairs.filter(([key]) => key.toLowerCase() === name).map(([, value]) => value)

/** The members of a comma-separated header, lower case, over all its lines. */
export const membersOf = (pairs: readonly HeaderPair[], name: string): readonly string[] =>
  valuesOf(pairs, name)
    .flatMap((value) => value.split(","))
    .map((member) => member.trim().toLowerCase())
    .filter((member) => member !== "")

export function endToEnd(pairs: readonly HeaderPair[]): readonly HeaderPair[] {
  const nominated = new Set(membersOf(pairs, "connection"))
  return pairs.filter(([name]) => {
    const lower = name.toLowerCase()
    return (
      !dropped.has(lower) && !nominated.has(lower) && !lower.startsWith("proxy-") && !lower.startsWith("x-caisson-")
    )
  })
}
