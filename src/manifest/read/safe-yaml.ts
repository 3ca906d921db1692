/**
 * YAML 1.2 core text → plain JSON value, for hostile text.
 *
 * Guarantees: the value is plain JSON (no dates, buffers, NaN, custom types); no anchors, aliases, tags, merge
 * keys, directives, duplicate keys, non-string keys or prototype keys; at most `limits.yamlNodes` nodes and
 * `limits.yamlDepth` levels; integers are exact. Anything else is a diagnostic with the path where it stands.
 * Assumes: the caller capped the size (the parser is not linear). Does not: execute or fetch anything.
 */
import type * as Yaml from "yaml"
import type { Document, Node, Pair, ParsedNode } from "yaml"
import { joinPath, shown } from "../values/diagnostics.ts"
import type { Report } from "../values/diagnostics.ts"
import { limits } from "../limits.ts"
import { onDemand } from "../schema/on-demand.ts"
import type { JsonValue } from "../base-types.ts"

const yaml = onDemand<typeof Yaml>("yaml")

const FORBIDDEN_KEYS = new Set(["__proto__", "constructor", "prototype"])

const OPTIONS = {
  schema: "core",
  version: "1.2",
  uniqueKeys: false,
  stringKeys: true,
  merge: false,
  resolveKnownTags: false,
  strict: true,
  prettyErrors: false,
} as const

/** Thrown inside this file to leave the walk at the first fault; never leaves it. */
class Refused extends Error {}

interface Walk {
  readonly report: Report
  nodes: number
}

function refuse(walk: Walk, rule: string, path: string, message: string, fix: string): never {
  walk.report.error(rule, path, message, fix)
  throw new Refused()
}

function checkNode(walk: Walk, node: Node, path: string, depth: number): void {
  walk.nodes++
  if (walk.nodes > limits.yamlNodes) {
    refuse(
      walk,
      "yaml-too-many-nodes",
      path,
      `the front matter has more than ${limits.yamlNodes} values`,
      "split the manifest or move text into the body",
    )
  }
  if (depth > limits.yamlDepth) {
    refuse(
      walk,
      "yaml-too-deep",
      path,
      `the front matter is nested deeper than ${limits.yamlDepth} levels`,
      "flatten the structure",
    )
  }
  if (yaml().isAlias(node))
    refuse(
      walk,
      "yaml-alias",
      path,
      "YAML aliases (`*name`) are not allowed in manifests",
      "write the value out where it is used",
    )
  if ((node as { anchor?: string }).anchor !== undefined) {
    refuse(
      walk,
      "yaml-anchor",
      path,
      "YAML anchors (`&name`) are not allowed in manifests",
      "remove the anchor and write the value out",
    )
  }
  if (node.tag !== undefined) {
    refuse(
      walk,
      "yaml-tag",
      path,
      `the YAML tag \`${shown(node.tag)}\` is not allowed in manifests`,
      "remove the tag; quote the value if it must be a string",
    )
  }
}

function scalar(walk: Walk, value: unknown, path: string): JsonValue {
  if (value === null || typeof value === "string" || typeof value === "boolean") {
    if (typeof value === "string" && !value.isWellFormed()) {
      refuse(walk, "yaml-bad-text", path, "the text holds half of a surrogate pair", "write the character itself")
    }
    return value
  }
  if (typeof value === "number") {
    if (!Number.isFinite(value))
      refuse(walk, "yaml-bad-number", path, `${value} is not a JSON number`, "write a finite number")
    if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
      refuse(
        walk,
        "yaml-bad-number",
        path,
        "the number is too large to be exact",
        "quote it to keep it as text, or use a smaller number",
      )
    }
    return value
  }
  return refuse(
    walk,
    "yaml-bad-value",
    path,
    `a value of type ${typeof value} is not JSON`,
    "write a string, number, boolean, list or mapping",
  )
}

function convert(walk: Walk, node: Node | null, path: string, depth: number): JsonValue {
  if (node === null) return null
  checkNode(walk, node, path, depth)
  if (yaml().isScalar(node)) return scalar(walk, node.value, path)
  if (yaml().isSeq(node))
    return node.items.map((item, i) => convert(walk, item as Node | null, joinPath(path, i), depth + 1))
  if (!yaml().isMap(node))
    return refuse(
      walk,
      "yaml-bad-value",
      path,
      "unknown YAML structure",
      "write a string, number, boolean, list or mapping",
    )
  const result: Record<string, JsonValue> = {}
  for (const pair of node.items as Pair<Node | null, Node | null>[]) {
    const key = mapKey(walk, pair.key, path, depth)
    if (Object.hasOwn(result, key)) {
      refuse(
        walk,
        "yaml-duplicate-key",
        joinPath(path, key),
        `the key \`${shown(key)}\` appears twice`,
        "keep one of the two",
      )
    }
    result[key] = convert(walk, pair.value, joinPath(path, key), depth + 1)
  }
  return result
}

function mapKey(walk: Walk, node: Node | null, path: string, depth: number): string {
  if (node === null) return refuse(walk, "yaml-bad-key", path, "a key is empty", "give the key a name")
  checkNode(walk, node, path, depth)
  const key: unknown = yaml().isScalar(node) ? node.value : undefined
  if (typeof key !== "string") return refuse(walk, "yaml-bad-key", path, "keys must be plain strings", "quote the key")
  if (FORBIDDEN_KEYS.has(key)) {
    refuse(
      walk,
      "yaml-forbidden-key",
      joinPath(path, key),
      `the key \`${key}\` is not allowed in manifests`,
      "rename or remove the key",
    )
  }
  return key
}

/** The text must already be within `limits.frontmatterBytes`. */
export function parseYaml(
  text: string,
  report: Report,
): { readonly ok: true; readonly value: JsonValue } | { readonly ok: false } {
  const lines = new (yaml().LineCounter)()
  const at = (offset: number): string => {
    const { line, col } = lines.linePos(offset)
    return `line ${line + 1}, column ${col}`
  }
  try {
    const composer = new (yaml().Composer)(OPTIONS)
    const docs: Document.Parsed<ParsedNode>[] = []
    for (const token of new (yaml().Parser)(lines.addNewLine).parse(text)) {
      if (token.type === "error") {
        report.error(
          "yaml-syntax",
          "",
          `the YAML is malformed at ${at(token.offset)}: ${shown(token.message)}`,
          "correct the YAML there",
        )
        return { ok: false }
      }
      docs.push(...(composer.next(token) as Iterable<Document.Parsed<ParsedNode>>))
    }
    docs.push(...(composer.end() as Iterable<Document.Parsed<ParsedNode>>))
    const [doc, extra] = docs
    if (doc === undefined) return { ok: true, value: null }
    if (extra !== undefined) {
      report.error(
        "yaml-many-documents",
        "",
        "the front matter holds more than one YAML document",
        "keep one document between the two `---` lines",
      )
      return { ok: false }
    }
    const fault = doc.errors[0]
    if (fault !== undefined) {
      report.error(
        "yaml-syntax",
        "",
        `the YAML is malformed at ${at(fault.pos[0])}: ${shown(fault.message, 160)}`,
        "correct the YAML there",
      )
      return { ok: false }
    }
    const value = convert({ report, nodes: 0 }, doc.contents, "", 0)
    const warning = doc.warnings[0]
    if (warning !== undefined) {
      report.error(
        "yaml-syntax",
        "",
        `the YAML is doubtful at ${at(warning.pos[0])}: ${shown(warning.message, 160)}`,
        "write it plainly",
      )
      return { ok: false }
    }
    return { ok: true, value }
  } catch (error) {
    if (error instanceof Refused) return { ok: false }
    const message = error instanceof Error ? error.message : String(error)
    report.error("yaml-syntax", "", `the YAML cannot be read: ${shown(message, 160)}`, "correct the YAML")
    return { ok: false }
  }
}
