/**
 * What to say of tests that did not run, and whether they fail the run: pure.
 *
 * A skip that does not say what is missing and how to get it fails the run, and so do tests against a container engine
 * where this machine could have had one.
 */

/** @typedef {{ file: string, test: string, why?: string }} Skip */

/** Every engine test's reason to be skipped begins so: test/support/docker-engine.ts. */
const NO_ENGINE = "no container engine"

/** @param {readonly Skip[]} skips @returns {string[]} */
export const linesOf = (skips) => {
  if (skips.length === 0) return []
  const groups = new Map()
  for (const skip of skips) {
    const key = `${skip.file}: ${skip.why || "no reason given"}`
    groups.set(key, [...(groups.get(key) ?? []), skip.test])
  }
  const told = [...groups].flatMap(([key, tests]) => [
    `  ${key}`,
    ...tests.map((/** @type {string} */ test) => `    - ${test}`),
  ])
  return ["", `SKIPPED: ${skips.length} tests did not run here:`, ...told]
}

/** @param {readonly Skip[]} skips @param {boolean} mayHaveEngine @returns {string[]} none where the run may pass */
export const faultsOf = (skips, mayHaveEngine) => {
  const silent = skips.filter(({ why }) => !why)
  const avoidable = mayHaveEngine ? skips.filter(({ why }) => why?.startsWith(NO_ENGINE)) : []
  return [
    ...(silent.length === 0
      ? []
      : ["", `FAILED: ${silent.length} skipped tests do not say what is missing and how to get it: skip("…")`]),
    ...(avoidable.length === 0
      ? []
      : [
          "",
          `FAILED: ${avoidable.length} tests against a container engine were skipped, and this machine could have had one:`,
          `  ${avoidable[0]?.why}`,
          "  Repair that, or set CAISSON_NO_DOCKER=1 to do without them.",
        ]),
  ]
}
