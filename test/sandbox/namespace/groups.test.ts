import { spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { findGroups, removeGroups } from "../../../src/sandbox/process/cgroup.ts"

test("a group whose last process takes its time to end is removed all the same", async ({ skip }) => {
  const groups = findGroups({
    mountinfo: readFileSync("/proc/self/mountinfo", "utf8"),
    selfCgroup: readFileSync("/proc/self/cgroup", "utf8"),
    hostPid: process.pid,
    isDead: () => false,
  })
  if (groups.version === "none") skip(`no control groups (${groups.reason}): run as root or in a delegated group`)
  // It outlives the first dozen looks, like a tree on a machine with better things to do.
  const slow = spawn("/bin/sleep", ["2"])
  await groups.create("slow").join(slow.pid as number)
  await removeGroups(groups.folders)
  expect(groups.folders.filter((folder) => existsSync(folder))).toEqual([])
})
