/** Control groups for tests: those that a host would make here, as this user. */
import { readFileSync, rmdirSync } from "node:fs"
import { findGroups, type Groups } from "../../src/sandbox/process/cgroup.ts"
import { makeRoomForGroups } from "../../src/sandbox/process/own-group.ts"

export const openGroups = (): Groups => {
  makeRoomForGroups(process.getuid?.() ?? 0)
  return findGroups({
    mountinfo: readFileSync("/proc/self/mountinfo", "utf8"),
    selfCgroup: readFileSync("/proc/self/cgroup", "utf8"),
    hostPid: process.pid,
    isDead: () => false,
  })
}

/** Can any be made? Leaves none. */
export const canMakeGroups = (): boolean => {
  const groups = openGroups()
  for (const folder of groups.folders) rmdirSync(folder)
  return groups.version !== "none"
}
