/**
 * `npm test [-- ARGS]`: set-up, then the whole suite; `npm run test:unit` runs the quick half. ARGS go to vitest.
 *
 * Guarantees: vitest's exit code; every skipped test is listed with its reason; the last line alone reads
 * `N passed, N failed, N skipped`.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { root, say } from "./house.mjs"
import { setup } from "./setup.mjs"

const readTally = (file) => {
  try {
    return JSON.parse(readFileSync(file, "utf8"))
  } catch {
    say("caisson: the test run ended before it could be counted")
    return { passed: 0, failed: 1, skipped: 0, skips: [] }
  }
}

const tellSkips = (skips) => {
  if (skips.length === 0) return
  say(`\nSKIPPED: ${skips.length} tests did not run here:`)
  const groups = new Map()
  for (const skip of skips) {
    const key = `${skip.file}: ${skip.why || "no reason given"}`
    groups.set(key, [...(groups.get(key) ?? []), skip.test])
  }
  for (const [key, tests] of groups) {
    say(`  ${key}`)
    for (const test of tests) say(`    - ${test}`)
  }
}

const node = setup({ forTests: true })
const [first, ...rest] = process.argv.slice(2)
const args = first === "unit" ? ["--project", "unit", ...rest] : process.argv.slice(2)
const scratch = mkdtempSync(join(tmpdir(), "caisson-tally-"))
const file = join(scratch, "tally.json")
const reporters = ["--reporter=default", `--reporter=${join(root, "scripts", "test-tally.mjs")}`]
const run = spawnSync(
  node,
  [join(root, "node_modules", "vitest", "vitest.mjs"), "run", "--configLoader=native", ...reporters, ...args],
  {
    cwd: root,
    stdio: "inherit",
    env: {
      ...process.env,
      CAISSON_TEST_TALLY: file,
      PATH: `${join(root, "node_modules", ".bin")}:${process.env["PATH"]}`,
    },
  },
)
const tally = readTally(file)
rmSync(scratch, { recursive: true, force: true })
tellSkips(tally.skips)
const code = run.status ?? 1
if (code !== 0 && tally.failed === 0) tally.failed = 1
console.log(`${tally.passed} passed, ${tally.failed} failed, ${tally.skipped} skipped`)
process.exitCode = code
