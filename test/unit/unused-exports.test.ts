import { join } from "node:path"
import { expect, it } from "vitest"

const root = join(import.meta.dirname, "../..")
const { readImports, unusedExports } = (await import(join(root, "scripts/unused-exports.mjs"))) as {
  readImports(root: string): { readonly exported: ReadonlyMap<string, readonly string[]> }
  unusedExports(root: string, entries: readonly string[]): readonly string[]
}
/** What users of the package and `bin/` import. */
const entries = ["host", "define", "sandbox", "egress-proxy", "manifest", "client"].map(
  (room) => `src/${room}/index.ts`,
)

it("what a file exports somebody imports", () => {
  expect(unusedExports(root, [...entries, "src/cli/main.ts"])).toEqual([])
  expect([...readImports(root).exported.values()].flat().length).toBeGreaterThan(500)
})

it("an export that nobody imports is found: those of the entry points, without them", () => {
  expect(unusedExports(root, [])).toContain("src/cli/main.ts: main")
})
