/** Header lists as Node's parser hands them out. Pure. */
import type { HeaderPair } from "../secrets/substitute.ts"

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
