import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { expect, test } from "vitest"
import { removeGroups } from "../../../src/sandbox/process/cgroup.ts"
import { openGroups } from "../../support/groups.ts"

test("a group whose last process takes its time to end is removed all the same", async ({ skip }) => {
  const groups = openGroups()
  if (groups.version === "none") skip(`no control groups (${groups.reason}): run as root or in a delegated group`)
  // It outlives the first dozen looks, like a tree on a machine with better things to do.
  const slow = spawn("/bin/sleep", ["2"])
  await groups.create("slow").join(slow.pid as number)
  await removeGroups(groups.folders)
  expect(groups.folders.filter((folder) => existsSync(folder))).toEqual([])
})
