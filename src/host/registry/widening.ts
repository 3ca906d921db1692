/**
 * Does one reach go beyond another? The answer is an example of what the one lets pass and the other does not. Pure.
 *
 * Guarantees: a part that is not wider has no answer; where two globs or hosts cannot be compared for certain, the answer
 * is that it is wider. A part that was not there before (a tool that a driver newly implements) is not held against it.
 */
import { type EgressEntry, coversName, parseEgressEntry } from "../../manifest/values/egress-entry.ts"
import { covers, matches, parseGlob, parseWorkspacePath } from "../../manifest/values/globs.ts"
import { globCovers } from "../../manifest/values/sandbox-globs.ts"
import type { Part, Reach } from "./reach.ts"

export interface Widening {
  /** of the field */
  readonly path: string
  readonly before: string
  readonly now: string
  /** what passes now and did not before */
  readonly example: string
}

const listed = (of: readonly string[]): string => (of.length === 0 ? "none" : of.join(", "))

/** Paths and names that a pattern means; the longer one for `**` first. */
const instances = (glob: string): readonly string[] =>
  [
    ["x/y/z", "x"],
    ["x", "x"],
    ["x/y", "any-1"],
  ].map(([deep = "", one = ""]) =>
    glob.replace(/\/$/, "/**").replaceAll("**", "\0").replaceAll("*", one).replaceAll("\0", deep),
  )

/** From the home, from the root, or from the workspace. */
const PLACE = /^(?:~\/|\/)?/

/** A path that the glob matches and none of the others does; the glob itself where none was found. */
const pathOutside = (glob: string, others: readonly string[]): string => {
  const place = PLACE.exec(glob)?.[0] ?? ""
  const all = others.flatMap((each) => {
    const parsed = PLACE.exec(each)?.[0] === place ? parseGlob(each.slice(place.length)) : undefined
    return parsed?.ok === true ? [parsed.glob] : []
  })
  const outside = instances(glob).find((each) => {
    const path = parseWorkspacePath(each.slice(place.length))
    return path.ok && !all.some((other) => matches(other, path.path))
  })
  return outside ?? glob
}

const widerPaths = (before: readonly string[], now: readonly string[]): string | undefined => {
  const wider = now.find((glob) => !before.some((wide) => globCovers(wide, glob)))
  return wider === undefined ? undefined : pathOutside(wider, before)
}

const split = (effect: string): readonly [string, string] => {
  const colon = effect.indexOf(":")
  return [effect.slice(0, colon), effect.slice(colon + 1)]
}

const effectCovers = (wide: string, narrow: string): boolean => {
  const [[cls, scope], [other, part]] = [split(wide), split(narrow)]
  if (cls !== other) return false
  if (scope === part || scope === "*") return true
  const [one, two] = [parseGlob(scope), parseGlob(part)]
  return one.ok && two.ok && covers(one.glob, two.glob)
}

const widerEffects = (before: readonly string[], now: readonly string[]): string | undefined => {
  const wider = now.find((effect) => !before.some((wide) => effectCovers(wide, effect)))
  if (wider === undefined) return undefined
  const [cls, scope] = split(wider)
  const others = before.flatMap((each) => (split(each)[0] === cls ? [split(each)[1]] : []))
  return `${cls}:${pathOutside(scope, others)}`
}

const entriesOf = (of: readonly string[]): readonly EgressEntry[] =>
  of.flatMap((text) => {
    const parsed = parseEgressEntry(text)
    return parsed.ok ? [parsed.entry] : []
  })

const hostCovers = (wide: EgressEntry, narrow: EgressEntry, port: number): boolean => {
  const named = narrow.wildcard
    ? wide.wildcard && (wide.host === narrow.host || narrow.host.endsWith(`.${wide.host}`))
    : coversName(wide, narrow.host)
  return named && wide.ports.includes(port) && (wide.protocol === "tcp" || narrow.protocol === "web")
}

/** Egress lists; also asked against what the operator allows. */
export const hostOutside = (before: readonly string[], now: readonly string[]): string | undefined => {
  const wide = entriesOf(before)
  for (const entry of entriesOf(now))
    for (const port of entry.ports)
      if (!wide.some((each) => hostCovers(each, entry, port)))
        return `${entry.protocol === "tcp" ? "tcp://" : ""}${entry.wildcard ? "x." : ""}${entry.host}:${port}`
  // What no parser takes is compared as it is written.
  return now.find((text) => !before.includes(text) && !parseEgressEntry(text).ok)
}

const most = (of: number | undefined): string => (of === undefined ? "no limit" : String(of))

/** An example of what passes now and did not before, with both as texts; nothing where it is no wider. */
const widerPart = (before: Part, now: Part): Omit<Widening, "path"> | undefined => {
  const told = (was: string, is: string, example: string | undefined): Omit<Widening, "path"> | undefined =>
    example === undefined ? undefined : { before: was, now: is, example }
  if (before.as === "names" && now.as === "names")
    return told(
      listed(before.of),
      listed(now.of),
      now.of.find((name) => !before.of.includes(name)),
    )
  if (before.as === "bounds" && now.as === "bounds")
    return told(
      listed(before.of),
      listed(now.of),
      before.of.find((name) => !now.of.includes(name)),
    )
  if (before.as === "paths" && now.as === "paths")
    return told(listed(before.of), listed(now.of), widerPaths(before.of, now.of))
  if (before.as === "effects" && now.as === "effects")
    return told(listed(before.of), listed(now.of), widerEffects(before.of, now.of))
  if (before.as === "hosts" && now.as === "hosts") {
    if (before.of === "any") return undefined
    if (now.of === "any") return told(listed(before.of), "any", "x.test:443")
    return told(listed(before.of), listed(now.of), hostOutside(before.of, now.of))
  }
  if (before.as === "most" && now.as === "most") {
    const wider = before.of !== undefined && (now.of === undefined || now.of > before.of)
    return told(most(before.of), most(now.of), wider ? String((before.of ?? 0) + 1) : undefined)
  }
  if (before.as === "least" && now.as === "least")
    return told(before.text, now.text, now.of < before.of ? now.text : undefined)
  if (before.as === "same" && now.as === "same")
    return told(before.of, now.of, before.of === now.of ? undefined : now.of)
  // A policy in the place of a class, or the other way round: `always` alone asks no less than a policy did.
  if (before.as === "bounds" && now.as === "least")
    return told(listed(before.of), now.text, now.of >= 2 ? undefined : now.text)
  if (before.as === "least" && now.as === "bounds")
    return told(before.text, listed(now.of), before.of >= 2 ? listed(now.of) : undefined)
  return told(before.as, now.as, now.as)
}

export const widenings = (before: Reach, now: Reach): readonly Widening[] =>
  Object.entries(now.parts).flatMap(([path, part]) => {
    const was = Object.hasOwn(before.parts, path) ? before.parts[path] : undefined
    const wider = was === undefined ? undefined : widerPart(was, part)
    return wider === undefined ? [] : [{ path, ...wider }]
  })
