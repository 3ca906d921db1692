import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { createReport } from "../../src/manifest/values/diagnostics.ts"
import { discoverManifests } from "../../src/manifest/read/discover.ts"
import { readFrontmatter } from "../../src/manifest/read/frontmatter.ts"
import { manifestKind } from "../../src/manifest/read/kind.ts"
import { loadFront } from "../../src/manifest/read/load.ts"
import type { JsonObject, JsonValue } from "../../src/manifest/types.ts"

const root = fileURLToPath(new URL("../../fixtures/manifests/", import.meta.url))
const fronts = discoverManifests([`${root}good`, `${root}compat`], { mode: "compat" }).flatMap((result) => {
  const file = result.ok ? result.manifest.source.file : result.file
  const kind = manifestKind(file)
  const front = readFrontmatter(readFileSync(file), createReport(file))
  return kind === undefined || front === undefined ? [] : [{ file, kind, front }]
})

type Path = readonly (string | number)[]
function paths(value: JsonValue, at: Path = []): Path[] {
  if (value === null || typeof value !== "object") return [at]
  return [at, ...Object.entries(value).flatMap(([key, item]) => paths(item, [...at, key]))]
}
function replace(value: JsonValue, path: Path, by: JsonValue | undefined): JsonValue {
  const [key, ...rest] = path
  if (key === undefined) return by ?? null
  const copy: Record<string, JsonValue> | JsonValue[] = Array.isArray(value)
    ? [...(value as JsonValue[])]
    : { ...(value as Record<string, JsonValue>) }
  const slot = copy as Record<string, JsonValue>
  // An array with a hole in it is nothing that a manifest can hold.
  if (rest.length === 0 && by === undefined && Array.isArray(copy)) copy.splice(Number(key), 1)
  else if (rest.length === 0 && by === undefined) delete slot[key]
  else slot[key] = replace(slot[key] ?? null, rest, by)
  return copy
}

const junk = fc.oneof(
  fc.constantFrom<JsonValue>(
    null,
    true,
    0,
    -1,
    1e21,
    "",
    "*",
    "..",
    "${input.x}",
    "x".repeat(5000),
    "\u001b[31m",
    [],
    {},
    [null],
    [[]],
    { a: null },
    "1||",
    "(?=a)",
  ),
  fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<JsonValue>,
)

describe("manifests with parts torn out or replaced", () => {
  it.each(["strict", "compat"] as const)("are refused or read in %s mode, and never break the reader", (mode) => {
    fc.assert(
      fc.property(
        fc.constantFrom(...fronts),
        fc.nat(),
        fc.option(junk, { nil: undefined }),
        ({ file, kind, front }, pick, by) => {
          const all = paths(front).slice(1)
          const path = all[pick % all.length] ?? []
          const { result } = loadFront(file, kind, replace(front, path, by) as JsonObject, mode)
          expect(result.diagnostics.filter((d) => d.rule === "internal")).toEqual([])
          for (const d of result.diagnostics) {
            expect(`${d.path}${d.message}${d.fix}`).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/)
            expect(d.message.length + d.fix.length).toBeLessThan(1300)
          }
          if (!result.ok) expect(result.diagnostics.some((d) => d.severity === "error")).toBe(true)
        },
      ),
      { numRuns: 600 },
    )
  })
})
