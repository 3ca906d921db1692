/**
 * What a manifest that did not load says of itself: its id and the tools it means to serve.
 *
 * Guarantees: linear in the text, at most so many names. Does not: vouch for any of it. A claim only serves to tell a
 * caller which file is broken; nothing is ever registered, routed or granted by it. Pure.
 */
import { withoutVersion } from "../values/ends.ts"
import { commandLeaves } from "../contracts/cli-bundle.ts"
import { limits } from "../limits.ts"
import type { Claims, JsonObject, JsonValue } from "../types.ts"

const ID = /^id:[ \t]*["']?([A-Za-z0-9@][A-Za-z0-9._/@-]{0,127})/m
const TOOL = /\btool:[ \t]*["']?([^\s"',}\]]{1,256})/g

const claims = (id: JsonValue | undefined, refs: readonly string[]): Claims => ({
  ...(typeof id === "string" ? { id } : {}),
  tools: refs.slice(0, limits.commandCount),
})

const refOf = (entry: JsonValue): readonly string[] => {
  if (typeof entry === "string") return [entry]
  const ref = typeof entry === "object" && entry !== null && !Array.isArray(entry) ? (entry as JsonObject)["tool"] : ""
  return typeof ref === "string" ? [ref] : []
}

/** Of front matter that is YAML but no manifest; its tools as written. */
export const claimsOfFront = ({ id, implements: entries, commands }: JsonObject): Claims => {
  const listed = Array.isArray(entries) ? (entries as readonly JsonValue[]).flatMap(refOf) : []
  return claims(id, [...listed, ...commandLeaves(commands).map((leaf) => leaf.ref)])
}

/** Of bytes that are no front matter at all; its tools as written. */
export const claimsOfBytes = (bytes: Uint8Array): Claims => {
  const text = Buffer.from(bytes.subarray(0, limits.frontmatterBytes)).toString("latin1")
  return claims(
    ID.exec(text)?.[1],
    [...text.matchAll(TOOL)].flatMap((match) => match[1] ?? []),
  )
}

/** With ids in the place of references; `idAt` knows where a path leads. */
export const followed = ({ tools, ...rest }: Claims, idAt: (ref: string) => string | undefined): Claims => ({
  ...rest,
  tools: [...new Set(tools.map((ref) => idAt(ref) ?? withoutVersion(ref)))],
})
