/** docs/manifests.md is what the schemas say, and its example is one that works. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { manifestReference, withReference } from "../../scripts/manifest-reference.ts"

const file = join(import.meta.dirname, "../../docs/manifests.md")

test("the reference names every field of the schemas as they are", () => {
  const text = readFileSync(file, "utf8")
  expect(text === withReference(text, manifestReference())).toBe(true)
})
