/** Hostile files of other formats: whatever stands in any field, the file is refused or read, and nothing is thrown. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { aml } from "../../../src/manifest/formats/aml/aml.ts"
import { formatOf } from "../../../src/manifest/formats/formats.ts"
import { followed } from "../../../src/manifest/read/claims.ts"
import { readForeign } from "../../../src/manifest/read/foreign.ts"
import { readFrontmatter } from "../../../src/manifest/read/frontmatter.ts"
import { loadFront } from "../../../src/manifest/read/load.ts"
import { parseEgressEntry } from "../../../src/manifest/values/egress-entry.ts"
import { withoutVersion } from "../../../src/manifest/values/ends.ts"
import { createReport } from "../../../src/manifest/values/diagnostics.ts"
import type { JsonObject, JsonValue } from "../../../src/manifest/types.ts"

const root = join(import.meta.dirname, "../../../fixtures/formats")
const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) => formatOf(name) !== undefined)

type Path = readonly string[]
const paths = (value: JsonValue, at: Path = []): Path[] =>
  value === null || typeof value !== "object"
    ? [at]
    : [at, ...Object.entries(value).flatMap(([key, item]) => paths(item as JsonValue, [...at, key]))]
const replaced = (value: JsonValue, [key, ...rest]: Path, by: JsonValue): JsonValue => {
  if (key === undefined) return by
  const copy = (Array.isArray(value) ? [...(value as JsonValue[])] : { ...(value as JsonObject) }) as Record<
    string,
    JsonValue
  >
  copy[key] = replaced(copy[key] ?? null, rest, by)
  return copy as JsonValue
}
const junk: readonly JsonValue[] = [null, true, -1, 1e300, "", "..", "${input.x}", [], {}, [null], { a: null }, [["x"]]]

const frontOf = (file: string): JsonObject => {
  const bytes = readFileSync(join(root, file))
  return file.endsWith(".json")
    ? (JSON.parse(bytes.toString()) as JsonObject)
    : (readFrontmatter(bytes, createReport(file)) ?? {})
}

it.each(files)("%s with anything in any field throws nothing", (file) => {
  const format = formatOf(file)
  if (format === undefined) throw new Error(file)
  const front = frontOf(file)
  const wrong: string[] = []
  for (const path of paths(front))
    for (const by of junk) {
      const text = JSON.stringify(replaced(front, path, by))
      const bytes = Buffer.from(file.endsWith(".json") ? text : `---\n${text}\n---\n`)
      try {
        const read = readForeign(format, join(root, file), bytes, { mode: "compat" })
        if (read.ok) for (const part of read.parts) loadFront(part.file, part.kind, part.front, "compat")
      } catch (error) {
        wrong.push(`${path.join(".")} = ${JSON.stringify(by)}: ${String(error)}`)
      }
    }
  expect(wrong).toEqual([])
})

it("texts as long as a file may be are read in one pass", () => {
  const long = 60_000
  for (let times = 0; times < 8; times += 1) {
    const front = frontOf("aml/order-lookup.tool.md")
    const transport = { ...(front["transport"] as JsonObject), base_url: `https:${"/".repeat(long)}x/` }
    const bytes = Buffer.from(`---\n${JSON.stringify({ ...front, transport })}\n---\n`)
    expect(readForeign(aml, "/x.tool.md", bytes, { mode: "compat" }).ok).toBe(false)
    expect(parseEgressEntry(`${".".repeat(long)}x.`).ok).toBe(false)
    const claims = { tools: [`a${"@".repeat(long)}/b@1`] }
    expect(followed(claims, () => undefined).tools).toEqual([`a${"@".repeat(long)}/b`])
  }
}, 15_000)
it.each([
  ["a", "a"],
  ["a@1", "a"],
  ["a@1@2", "a"],
  ["@scope/a@1", "@scope/a"],
  ["@a", "@a"],
  ["x@1/y", "x@1/y"],
])("%s without its version", (text, name) => expect(withoutVersion(text)).toBe(name))
