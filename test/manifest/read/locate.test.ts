import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import { locatorOf } from "../../../src/manifest/read/locate.ts"
import { joinPath } from "../../../src/manifest/values/diagnostics.ts"

const catalogue = fileURLToPath(new URL("../../../manifests/", import.meta.url))
const files = readdirSync(catalogue, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".md"))

const paths = (value: unknown, path = ""): readonly (readonly [path: string, key: string])[] => {
  if (typeof value !== "object" || value === null) return []
  const below = Array.isArray(value)
    ? value.map((each: unknown, at) => [joinPath(path, at), "", each] as const)
    : Object.entries(value).map(([key, each]) => [joinPath(path, key), key, each] as const)
  return below.flatMap(([inner, key, each]) => [[inner, key] as const, ...paths(each, inner)])
}

describe("where a field stands", () => {
  it("is where its key is written, for every field of the catalogue", () => {
    let seen = 0
    for (const file of files) {
      const text = readFileSync(join(catalogue, file), "utf8")
      const lines = text.split("\n")
      const place = locatorOf(text)
      for (const [path, key] of paths(parse(text.split(/^---$/m)[1] ?? ""))) {
        const { line, column } = place(path)
        const rest = lines[line - 1]?.slice(column - 1) ?? ""
        expect([file, path, rest.replace(/^["']/, "").startsWith(key)]).toEqual([file, path, true])
        if (key !== "") seen += 1
      }
    }
    expect(seen).toBeGreaterThan(1000)
  })

  const text = '---\r\nname: a\r\nlist:\r\n  - one\r\n  - { "b c": 1 }\r\n---\r\n'
  it.each([
    ["list[1]", 5, 5],
    ['list[1]["b c"]', 5, 7],
    ["list[1].missing.more", 5, 5],
    ["nothing", 1, 1],
    ["", 1, 1],
    ["list[9]", 3, 1],
  ])("of %s is line %i, column %i", (path, line, column) => {
    expect(locatorOf(text)(path)).toEqual({ line, column })
  })

  it.each(["", "---", "---\n*a\n---\n", "---\na: [\n---\n", "no front matter", "---\n? [a]\n: b\n&x *x\n---\n"])(
    "is the beginning, and no failure, of %j",
    (odd) => {
      expect(locatorOf(odd)("a.b[0]").line).toBeGreaterThan(0)
    },
  )
})
