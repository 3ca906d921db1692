/**
 * What a machine does, as whom: pure. A step is a line of `vm/plan` (see guest.sh) and passes with exit code 0. Files are
 * named as strip.mjs leaves them.
 *
 * In User-Mode Linux root and an ordinary user run every test of every step. One with delegated groups and one in a system
 * unit differ from the ordinary user in their groups alone: they run doctor, tour, all of `sandbox`, and of the rest what
 * groups bear on. On Debian's own kernel, which is emulated and many times slower, everybody runs doctor, tour and what
 * asks most of how that kernel was built and set up: the limits that control groups keep, and the escapes that User-Mode
 * Linux has no way for.
 *
 * Each step has time for a machine many times slower than usual (guest.sh measures how many); one that waits for something
 * that never comes ends at its own limit and leaves the others theirs.
 */

/** Node itself loads the files: Vite's transformation of them takes an emulated machine a minute each time. */
const vitest = (/** @type {string[]} */ ...files) =>
  `node node_modules/vitest/vitest.mjs run --configLoader=native --project sealed --project strict --project alone --maxWorkers 1 --experimental.viteModuleRunner=false --reporter=verbose ${files.join(" ")}`

/** Doctor must say of the control groups what is true of this user here. @param {string} evidence */
const doctor = (evidence) =>
  `node bin/caisson.cjs doctor --json > /tmp/doctor.$$; cat /tmp/doctor.$$; jq -e '.ok and (.controls[] | select(.control == "cgroups") | ${evidence})' /tmp/doctor.$$`

const GROUPS = {
  root: '.state == "enforced" and (.evidence | startswith("cgroup v2: memory, pids"))',
  plain: '.state == "absent" and (.fix | contains("systemd-run --user") and contains("system unit"))',
  delegated: '.state == "enforced" and (.evidence | startswith("cgroup v2: memory, pids"))',
  unit: '.state == "enforced" and (.evidence | startswith("cgroup v2: memory, pids"))',
}

/** @typedef {{ who: string, name: string, minutes: number, command: string }} Step */

/** @type {Record<string, { minutes: number, files: string[] }>} */
const TESTS = {
  sandbox: { minutes: 90, files: ["test/sandbox/namespace"] },
  escapes: { minutes: 180, files: ["test/escape/escape.test.js"] },
  crashes: { minutes: 120, files: ["test/chaos/crash.test.js", "test/e2e/host-crash.test.js"] },
  calls: { minutes: 90, files: ["test/e2e/host-call.test.js"] },
}
/** Of these, what depends on control groups: names of tests. */
const OF_GROUPS = {
  escapes: "^(limits|deadline|processes) ",
  crashes: "^a host killed in the middle of a call",
  calls: "^the operator's limits",
}
/** In User-Mode Linux: who runs which part of a step alone. The others run all of it. */
const PARTLY = { root: {}, plain: {}, delegated: OF_GROUPS, unit: OF_GROUPS }
/** On Debian's own kernel: what everybody runs. */
const ON_DEBIAN = [
  {
    name: "sandbox",
    files: ["test/sandbox/namespace/groups.test.js", "test/sandbox/namespace/limits.test.js"],
    pattern: "^(a group|a CPU limit|a memory limit) ",
  },
  // What User-Mode Linux has no entry or no file for.
  {
    name: "escapes",
    files: ["test/escape/escape.test.js"],
    pattern: "a first process rewritten|32-bit entry",
  },
]

export const users = /** @type {const} */ (["root", "plain", "delegated", "unit"])
export const steps = ["doctor", "tour", ...Object.keys(TESTS)]

/** The steps that run tests: names of the tests, if not all run. @param {string} machine @param {string} who @param {boolean} all */
const partsOf = (machine, who, all) => {
  if (machine === "qemu" && !all) return ON_DEBIAN
  /** @type {Record<string, string>} */
  const parts = all ? {} : PARTLY[/** @type {keyof typeof PARTLY} */ (who)]
  return Object.entries(TESTS).map(([name, { files }]) => ({ name, files, pattern: parts[name] }))
}

/** @param {string} who @param {{ name: string, files: string[], pattern: string | undefined }} part @returns {Step} */
const testsOf = (who, { name, files, pattern }) => ({
  ...{ who, name, minutes: TESTS[name]?.minutes ?? 90 },
  command: vitest(...files, ...(pattern === undefined ? [] : ["-t", `"${pattern}"`])),
})

/**
 * @param {string} machine
 * @param {readonly string[]} as
 * @param {readonly string[]} only names of steps; none means all
 * @param {boolean} all every test of every step as everybody in every machine
 * @returns {Step[]}
 */
export const planOf = (machine, as, only, all) =>
  as
    .flatMap((who) => [
      { who, name: "doctor", minutes: 20, command: doctor(GROUPS[/** @type {keyof typeof GROUPS} */ (who)]) },
      { who, name: "tour", minutes: 20, command: "node src/cli/tour.js" },
      ...partsOf(machine, who, all).map((part) => testsOf(who, part)),
    ])
    .filter(({ name }) => only.length === 0 || only.includes(name))
