/**
 * `code` (AIP-26) → the sources that a bundle is composed of, with what other CODE.md files add in their places.
 *
 * Guarantees: references are followed to CODE.md files that were found and no others, to a bounded depth, and never in a
 * circle; every path is checked before anything could be read by it. What this host does not fetch is refused by its name.
 * What those files say of runner, network and secrets is handed back, for the driver that names them. Pure.
 */
import { shown } from "../values/diagnostics.ts"
import type { Context } from "../values/context.ts"
import { isObject, optionalText } from "../values/fields.ts"
import type { CodeSource } from "../code-bundle.ts"
import { limits } from "../limits.ts"
import type { JsonObject, JsonValue } from "../base-types.ts"
import { bundlePath } from "./code-run.ts"

/** Why a bundle cannot be composed, and where that stands. */
export interface CodeFault {
  readonly path: string
  readonly message: string
  readonly fix: string
}
type CodeSources =
  | {
      readonly ok: true
      readonly sources: readonly CodeSource[]
      /** front matter of the CODE.md files that were named directly */
      readonly named: readonly JsonObject[]
    }
  | { readonly ok: false; readonly fault: CodeFault }

const refuse = (path: string, message: string, fix: string): Extract<CodeSources, { ok: false }> => ({
  ok: false,
  fault: { path, message, fix },
})

interface Walk {
  readonly context: Context
  /** of the manifest that is read now */
  readonly file: string
  /** CODE.md files that led here */
  readonly way: readonly string[]
}

/** What a CODE.md is composed of: `code` of the rich form, `source` of the lean one (unless that says who wrote it). */
export const codeOf = (front: JsonObject): JsonValue | undefined => {
  if (front["code"] !== undefined) return front["code"]
  const { source } = front
  if (Array.isArray(source)) return { sources: source as readonly JsonValue[] }
  return isObject(source) && source["origin"] === undefined ? { sources: [source] } : undefined
}

const GLOB = /^[^/\\\u0000]{1,256}$/

const readLocal = (given: JsonValue | undefined, at: string, { context, file }: Walk): CodeSources => {
  const block: JsonObject = typeof given === "string" ? { path: given } : isObject(given) ? given : {}
  const written = optionalText(block, "path") ?? ""
  const path = /^\.?\/?$/.test(written) && written !== "/" ? "." : bundlePath(written)
  const target = optionalText(block, "as")
  const as = target === undefined ? undefined : /^\.\/?$/.test(target) ? "." : bundlePath(target)
  const glob = optionalText(block, "glob")
  if (written === "" || path === undefined || (target !== undefined && as === undefined))
    return refuse(
      at,
      `\`${shown(target !== undefined && as === undefined ? target : written, 80)}\` leads out of its folder`,
      "write a path below the manifest's folder",
    )
  if (glob !== undefined && !GLOB.test(glob))
    return refuse(at, "`glob` is a pattern of names", "write, for example, `glob: '*.ts'`")
  const bases = context.links?.bases(file) ?? []
  return {
    ok: true,
    sources: [
      { from: "local", bases, path, ...(as === undefined ? {} : { as }), ...(glob === undefined ? {} : { glob }) },
    ],
    named: [],
  }
}

const readInline = (given: JsonValue | undefined, at: string): CodeSources => {
  const block = isObject(given) ? given : {}
  const path = bundlePath(optionalText(block, "path") ?? "")
  const { content } = block
  if (path === undefined)
    return refuse(at, "`path` of an inline source leads out of the bundle", "write, for example, `path: tool.ts`")
  if (typeof content !== "string" || content.includes("\u0000"))
    return refuse(at, "`content` of an inline source is text", "write `content: |` and the file's lines below")
  return { ok: true, sources: [{ from: "inline", path, content }], named: [] }
}

const readRef = (given: JsonValue | undefined, at: string, walk: Walk): CodeSources => {
  const ref = typeof given === "string" ? given : isObject(given) ? (optionalText(given, "path") ?? "") : ""
  const outside = ref.startsWith("/") || ref.split("/").includes("..")
  const found = outside || ref === "" ? undefined : walk.context.links?.code(walk.file, ref)
  if (found === undefined)
    return refuse(at, `there is no CODE.md at \`${shown(ref, 80)}\``, "put one there, below the folder of manifests")
  if (walk.way.includes(found.file))
    return refuse(at, `\`${shown(ref, 80)}\` leads back to itself`, "take one of the references out")
  if (walk.way.length >= limits.codeDepth)
    return refuse(at, `references lead further than ${limits.codeDepth} files`, "name the sources themselves")
  const inner = readSources(codeOf(found.front), at, { ...walk, file: found.file, way: [...walk.way, found.file] })
  return inner.ok ? { ...inner, named: [found.front] } : inner
}

const KINDS = ["inline", "local", "ref", "github"] as const

const readSource = (given: JsonValue, at: string, walk: Walk): CodeSources => {
  const block: JsonObject = isObject(given) ? given : {}
  const kinds = KINDS.filter((kind) => block[kind] !== undefined)
  const [kind] = kinds
  if (kind === undefined || kinds.length > 1 || Object.keys(block).length > 1)
    return refuse(at, "a source is one of inline, local, ref, github", "write, for example, `- local: lib/`")
  switch (kind) {
    case "inline":
      return readInline(block["inline"], `${at}.inline`)
    case "local":
      return readLocal(block["local"], `${at}.local`, walk)
    case "ref":
      return readRef(block["ref"], `${at}.ref`, walk)
    case "github":
      return refuse(
        `${at}.github`,
        "this host fetches no code from GitHub",
        "put the files below the folder of manifests, and name them by `local`",
      )
  }
}

/** `given`: `code` as it was written; a text is a reference. */
export const readSources = (given: JsonValue | undefined, at: string, walk: Walk): CodeSources => {
  if (typeof given === "string") return readRef(given, at, walk)
  const listed = isObject(given) ? given["sources"] : undefined
  if (!Array.isArray(listed) || listed.length === 0)
    return refuse(at, "it names no sources", "write `code: { sources: [{ local: . }] }`")
  if (listed.length > limits.codeSources)
    return refuse(at, `it names more than ${limits.codeSources} sources`, "put the files into a folder, and name that")
  const sources: CodeSource[] = []
  const named: JsonObject[] = []
  for (const [index, each] of (listed as readonly JsonValue[]).entries()) {
    const read = readSource(each, `${at}.sources[${index}]`, walk)
    if (!read.ok) return read
    sources.push(...read.sources)
    named.push(...read.named)
    if (sources.length > limits.codeSources)
      return refuse(
        at,
        `it names more than ${limits.codeSources} sources`,
        "put the files into a folder, and name that",
      )
  }
  return { ok: true, sources, named }
}
