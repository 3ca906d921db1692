/**
 * `npm test [-- ARGS]`: set-up, then the whole suite; `npm run test:unit` runs the quick half. ARGS go to vitest.
 *
 * Guarantees: vitest's exit code; every skipped test is listed with its reason, and one without fails the run; tests
 * against a container engine that were skipped where one could have been installed and started (root, apt, no
 * `CAISSON_NO_DOCKER=1`) fail it too; one engine serves the whole run and is let go of at its end; the last line alone reads `N passed, N failed, N skipped`.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { environmentWith, root, runToEnd, say } from "./house.mjs"
import { setup } from "./setup.mjs"
import { faultsOf, linesOf } from "./skips.mjs"

const readTally = (file) => {
  try {
    return JSON.parse(readFileSync(file, "utf8"))
  } catch {
    say("caisson: the test run ended before it could be counted")
    return { passed: 0, failed: 1, skipped: 0, skips: [], again: [] }
  }
}

const mayHaveEngine = () =>
  process.getuid?.() === 0 && existsSync("/usr/bin/apt-get") && process.env["CAISSON_NO_DOCKER"] !== "1"

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

const [first, ...rest] = process.argv.slice(2)
const node = setup({ forTests: true, forSealedTests: first !== "unit" })
const args = first === "unit" ? ["--project", "unit", ...rest] : process.argv.slice(2)
const scratch = mkdtempSync(join(tmpdir(), "caisson-tally-"))
const file = join(scratch, "tally.json")
const reporters = ["--reporter=default", `--reporter=${join(root, "scripts", "test-tally.mjs")}`]
const holder = holdEngine(node, args)
const status = await runToEnd(
  node,
  [join(root, "node_modules", "vitest", "vitest.mjs"), "run", "--configLoader=native", ...reporters, ...args],
  // Tests start hundreds of hosts from the sources: what the first one compiled, the others read. It goes with the run.
  {
    env: { NODE_COMPILE_CACHE: join(scratch, "compiled"), ...environmentWith(node), CAISSON_TEST_TALLY: file },
  },
)
if (holder !== undefined) {
  const gone = once(holder, "exit")
  holder.stdin.end()
  if (holder.exitCode === null && holder.signalCode === null) await gone
}
const tally = readTally(file)
rmSync(scratch, { recursive: true, force: true })
// Tests that the caller's own pattern leaves out need no reason.
const isPicked = args.some((word) => /^(-t|--testNamePattern)\b/.test(word))
const skips = isPicked ? tally.skips.filter(({ why }) => why) : tally.skips
const faults = faultsOf(skips, mayHaveEngine())
for (const line of [...linesOf(skips), ...faults]) say(line)
if (tally.again.length > 0) {
  say("")
  say(`PASSED AT THE SECOND ATTEMPT ONLY: ${tally.again.length}; each wants a look:`)
  for (const { file, test } of tally.again) say(`  ${file}: ${test}`)
}
const code = status === 0 && faults.length > 0 ? 1 : status
if (code !== 0 && tally.failed === 0) tally.failed = 1
console.log(`${tally.passed} passed, ${tally.failed} failed, ${tally.skipped} skipped`)
process.exitCode = code
