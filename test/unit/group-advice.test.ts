import { expect, test } from "vitest"
import { groupsReport, unmetLimit } from "../../src/sandbox/group-advice.ts"

const without = {
  version: "none",
  reason: "/sys/fs/cgroup cannot be written (EACCES)",
  controllers: { memory: false, pids: false, cpu: false },
} as const
const withoutCpu = { version: "v2", reason: "", controllers: { memory: true, pids: true, cpu: false } } as const

test.each([
  ["doctor, without groups", groupsReport(without).fix],
  ["a call that must have its memory limit", unmetLimit(["memoryBytes"], without)?.fix],
  ["a call that must have its CPU share", unmetLimit(["cpus"], without)?.fix],
  ["a call that must have its CPU share, where only that controller is missing", unmetLimit(["cpus"], withoutCpu)?.fix],
])("%s is told of root, of a user's own scope, and of Delegate=yes in a system unit", (_who, fix) => {
  expect(fix).toMatch(/run as root/)
  expect(fix).toMatch(/systemd-run --user --scope -p Delegate=yes/)
  expect(fix).toMatch(/`Delegate=yes` in the `\[Service\]` of the system unit/)
})

test("a refused limit names what is missing, and one that holds is not refused", () => {
  expect(unmetLimit(["memoryBytes"], without)).toMatchObject({
    control: "memory-limit",
    message: expect.stringContaining(without.reason),
  })
  expect(unmetLimit(["cpus"], withoutCpu)).toMatchObject({ control: "cpu-share" })
  expect(unmetLimit(["memoryBytes"], withoutCpu)).toBeUndefined()
  expect(unmetLimit([], without)).toBeUndefined()
  expect(groupsReport(withoutCpu)).toEqual({
    control: "cgroups",
    state: "enforced",
    evidence: "cgroup v2: memory, pids",
  })
})
