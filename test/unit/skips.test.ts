import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { expect, test } from "vitest"

const tests = fileURLToPath(new URL("..", import.meta.url))

/** They skip without a word; `support/needing.ts` says what is missing and how to get it. */
const silent = /\.(?:skipIf|runIf)\(/

test("no test skips without saying why", () => {
  const files = readdirSync(tests, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"))
  const found = files.filter(
    (name) => name !== join("unit", "skips.test.ts") && silent.test(readFileSync(join(tests, name), "utf8")),
  )
  expect(found).toEqual([])
})
