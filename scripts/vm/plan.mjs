/**
 * What the guest does, as whom: pure. A step is a line of `vm/plan` (see guest.sh) and passes with exit code 0. Files are
 * named as strip.mjs leaves them.
 *
 * An ordinary user runs every test of every step, and root all but the escapes that no control group bears on, which the
 * suite itself runs as root, and the commits that it would make as an ordinary user. One with delegated groups and one in a system unit differ from the ordinary user in their
 * groups alone: unless all is asked for, they run doctor, tour, all of `sandbox`, and of the rest what groups bear on.
 *
 * Each step has time for a machine many times slower than usual (guest.sh measures how many); one that waits for something
 * that never comes ends at its own limit and leaves the others theirs.
 */

/** Node itself loads the files: Vite's transformation of them takes an emulated machine a minute each time. */
const vitest = (/** @type {string[]} */ ...files) =>
  `node node_modules/vitest/vitest.mjs run --configLoader=native --project sealed --maxWorkers 1 --experimental.viteModuleRunner=false --reporter=verbose ${files.join(" ")}`

/** Doctor must say of the control groups what is true of this user here. @param {string} evidence */
const doctor = (evidence) =>
  `node bin/caisson.cjs doctor --json > /tmp/doctor.$$; cat /tmp/doctor.$$; jq -e '.ok and (.controls[] | select(.control == "cgroups") | ${evidence})' /tmp/doctor.$$`

const GROUPS = {
  root: '.state == "enforced" and (.evidence | startswith("cgroup v2: memory, pids"))',
  plain: '.state == "absent" and (.fix | contains("systemd-run --user") and contains("system unit"))',
  delegated: '.state == "enforced" and (.evidence | startswith("cgroup v2: memory, pids"))',
  unit: '.state == "enforced" and (.evidence | startswith("cgroup v2: memory, pids"))',
}

/** @type {Record<string, { minutes: number, files: string[] }>} */
const TESTS = {
  sandbox: { minutes: 90, files: ["test/sandbox/namespace"] },
  escapes: { minutes: 180, files: ["test/escape/escape.test.js"] },
  crashes: { minutes: 120, files: ["test/chaos/crash.test.js", "test/e2e/host-crash.test.js"] },
  calls: { minutes: 90, files: ["test/e2e/host-call.test.js"] },
}
/** Of these steps, what depends on control groups: names of tests. */
const OF_GROUPS = {
  escapes: "^(limits|deadline|processes) ",
  crashes: "^a host killed in the middle of a call",
  calls: "^the operator's limits",
}
/** Who runs which part of a step alone. What root's crashes leave out is a commit as an ordinary user. */
const PARTLY = {
  root: { escapes: OF_GROUPS.escapes, crashes: "^(?!a commit killed at any step, in user mode)" },
  plain: {},
  delegated: OF_GROUPS,
  unit: OF_GROUPS,
}

export const users = /** @type {const} */ (["root", "plain", "delegated", "unit"])
export const steps = ["doctor", "tour", ...Object.keys(TESTS)]

/** @param {string} who @param {string} name @param {boolean} all */
const testsOf = (who, name, all) => {
  const { minutes, files } = /** @type {{ minutes: number, files: string[] }} */ (TESTS[name])
  /** @type {Record<string, string>} */
  const parts = all ? {} : PARTLY[/** @type {keyof typeof PARTLY} */ (who)]
  const pattern = parts[name]
  return { who, name, minutes, command: vitest(...files, ...(pattern === undefined ? [] : ["-t", `"${pattern}"`])) }
}

/**
 * @param {readonly string[]} as
 * @param {readonly string[]} only names of steps; none means all
 * @param {boolean} all every test as everybody
 * @returns {{ who: string, name: string, minutes: number, command: string }[]}
 */
export const planOf = (as, only, all) =>
  as
    .flatMap((who) => [
      { who, name: "doctor", minutes: 20, command: doctor(GROUPS[/** @type {keyof typeof GROUPS} */ (who)]) },
      { who, name: "tour", minutes: 20, command: "node src/cli/tour.js" },
      ...Object.keys(TESTS).map((name) => testsOf(who, name, all)),
    ])
    .filter(({ name }) => only.length === 0 || only.includes(name))
