/**
 * What the guest does, as whom: pure. A step is a line of `vm/plan` (see guest.sh) and passes with exit code 0.
 *
 * Each step has time for a machine twenty times slower than this one; a step that waits for something that never
 * comes ends at its own limit and leaves the others theirs.
 */

const vitest = (/** @type {string[]} */ ...files) =>
  `CAISSON_TEST_PATIENCE=20 node node_modules/vitest/vitest.mjs run --configLoader=native --project sealed --maxWorkers 1 --reporter=verbose ${files.join(" ")}`

/** Doctor must say of the control groups what is true of this user here. @param {string} evidence */
const doctor = (evidence) =>
  `node bin/caisson.cjs doctor --json > /tmp/doctor.$$; cat /tmp/doctor.$$; jq -e '.ok and (.controls[] | select(.control == "cgroups") | ${evidence})' /tmp/doctor.$$`

const GROUPS = {
  root: '.state == "enforced" and (.evidence | startswith("cgroup v2: memory, pids"))',
  plain: '.state == "absent" and (.fix | contains("systemd-run --user") and contains("system unit"))',
  delegated: '.state == "enforced" and (.evidence | startswith("cgroup v2: memory, pids"))',
  unit: '.state == "enforced" and (.evidence | startswith("cgroup v2: memory, pids"))',
}

const STEPS = [
  { name: "tour", minutes: 10, command: "node src/cli/tour.ts" },
  { name: "sandbox", minutes: 40, command: vitest("test/sandbox/namespace") },
  { name: "escapes", minutes: 60, command: vitest("test/escape/escape.test.ts") },
  { name: "crashes", minutes: 60, command: vitest("test/chaos/crash.test.ts", "test/e2e/host-crash.test.ts") },
  { name: "calls", minutes: 40, command: vitest("test/e2e/host-call.test.ts") },
]

export const users = /** @type {const} */ (["root", "plain", "delegated", "unit"])

/**
 * @param {readonly string[]} as
 * @param {readonly string[]} only names of steps; none means all
 * @returns {{ who: string, name: string, minutes: number, command: string }[]}
 */
export const planOf = (as, only) =>
  as
    .flatMap((who) => [
      { who, name: "doctor", minutes: 10, command: doctor(GROUPS[/** @type {keyof typeof GROUPS} */ (who)]) },
      ...STEPS.map((step) => ({ who, ...step })),
    ])
    .filter(({ name }) => only.length === 0 || only.includes(name))
