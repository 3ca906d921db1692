/**
 * `npm test [-- ARGS]`: set-up, then the whole suite; `npm run test:unit` runs the quick half. ARGS go to vitest.
 *
 * Guarantees: vitest's exit code; every skipped test is listed with its reason; tests against a container engine that
 * were skipped where one could have been installed and started (root, apt, no `CAISSON_NO_DOCKER=1`) fail the run; one
 * engine serves the whole run and is let go of at its end; the last line alone reads `N passed, N failed, N skipped`.
 */
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
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

/** Every engine test's reason to be skipped begins so: test/support/docker-engine.ts. */
const NO_ENGINE = "no container engine"
const mayHaveEngine = () =>
  process.getuid?.() === 0 && existsSync("/usr/bin/apt-get") && process.env["CAISSON_NO_DOCKER"] !== "1"
const avoidableSkips = (skips) => (mayHaveEngine() ? skips.filter(({ why }) => why?.startsWith(NO_ENGINE)) : [])

/** A process that holds a share of the tests' engine until its input ends, so that no test file starts it anew. */
const holdEngine = (node, args) => {
  const named = args.filter((word) => !word.startsWith("-"))
  const wanted = named.length === 0 || named.some((word) => word.includes("docker"))
  if (!wanted || !mayHaveEngine()) return undefined
  return spawn(node, [join(root, "test", "support", "hold-engine.ts")], {
    cwd: root,
    stdio: ["pipe", "ignore", "inherit"],
  })
}

const node = setup({ forTests: true })
const [first, ...rest] = process.argv.slice(2)
const args = first === "unit" ? ["--project", "unit", ...rest] : process.argv.slice(2)
const scratch = mkdtempSync(join(tmpdir(), "caisson-tally-"))
const file = join(scratch, "tally.json")
const reporters = ["--reporter=default", `--reporter=${join(root, "scripts", "test-tally.mjs")}`]
const holder = holdEngine(node, args)
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
if (holder !== undefined) {
  const gone = once(holder, "exit")
  holder.stdin.end()
  if (holder.exitCode === null && holder.signalCode === null) await gone
}
const tally = readTally(file)
rmSync(scratch, { recursive: true, force: true })
tellSkips(tally.skips)
const avoidable = avoidableSkips(tally.skips)
if (avoidable.length > 0) {
  say(
    `\nFAILED: ${avoidable.length} tests against a container engine were skipped, and this machine could have had one:`,
  )
  say(`  ${avoidable[0].why}`)
  say("  Repair that, or set CAISSON_NO_DOCKER=1 to do without them.")
}
const code = run.status === 0 && avoidable.length > 0 ? 1 : (run.status ?? 1)
if (code !== 0 && tally.failed === 0) tally.failed = 1
console.log(`${tally.passed} passed, ${tally.failed} failed, ${tally.skipped} skipped`)
process.exitCode = code
