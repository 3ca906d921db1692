/**
 * A vitest reporter that counts what ran and keeps why tests were skipped, as JSON in `$CAISSON_TEST_TALLY`.
 *
 * Guarantees: a file that failed to load, a failing hook and an unhandled error count as failures too, so that the
 * tally is never greener than the run.
 */
import { writeFileSync } from "node:fs"

export default class Tally {
  /**
   * @param {readonly import("vitest/node").TestModule[]} modules
   * @param {readonly unknown[]} unhandled
   */
  onTestRunEnd(modules, unhandled) {
    const tally = { passed: 0, failed: unhandled.length, skipped: 0, skips: [], again: [] }
    for (const module of modules) {
      tally.failed += module.errors().length
      for (const suite of module.children.allSuites()) tally.failed += suite.errors().length
      for (const test of module.children.allTests()) {
        const result = test.result()
        if (result.state === "passed") {
          tally.passed += 1
          if ((test.diagnostic()?.retryCount ?? 0) > 0)
            tally.again.push({ file: module.relativeModuleId, test: test.fullName })
        } else if (result.state === "failed") tally.failed += 1
        else {
          tally.skipped += 1
          tally.skips.push({ file: module.relativeModuleId, test: test.fullName, why: result.note ?? "" })
        }
      }
    }
    writeFileSync(process.env.CAISSON_TEST_TALLY, JSON.stringify(tally))
  }
}
