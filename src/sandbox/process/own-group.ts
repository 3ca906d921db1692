/**
 * Room for control groups in a unit of systemd's that was given its own group and nothing beside it (`User=` with
 * `Delegate=yes`).
 *
 * There, groups can only be made below the own one, and one that hands controllers down may hold no process itself. So
 * everything in it moves to a leaf below; to programs started from then on this is a group whose parent is theirs.
 * Guarantees: only a group that belongs to this user is touched, and only where its parent cannot serve.
 * Does not: fail. Where there is no room, the search for groups says why.
 */
import { accessSync, constants, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { controllersWanted, findMounts, readProcesses } from "./cgroup.ts"

/** Not swept with a host's groups: the unit's programs live here until it ends. */
const leafName = "caisson.unit"
/** Programs that start others while they are moved are met again in the next round. */
const rounds = 20

const isWritable = (path: string): boolean => {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** Is the group ours, and its parent not? */
const isIsland = (own: string, uid: number): boolean => {
  const parent = dirname(own)
  const hasParent = existsSync(join(parent, "cgroup.procs"))
  const parentServes = isWritable(parent) && isWritable(join(parent, "cgroup.procs"))
  return hasParent && !parentServes && statSync(own).uid === uid && isWritable(join(own, "cgroup.subtree_control"))
}

const moveAll = (own: string, leaf: string): void => {
  for (const pid of readProcesses(own)) {
    try {
      writeFileSync(join(leaf, "cgroup.procs"), String(pid))
    } catch (error) {
      // It ended meanwhile.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error
    }
  }
}

export const makeRoomForGroups = (uid: number): void => {
  try {
    const own = findMounts(
      readFileSync("/proc/self/mountinfo", "utf8"),
      readFileSync("/proc/self/cgroup", "utf8"),
    ).find(
      ({ version, controllers }) => version === 2 && controllers.includes("memory") && controllers.includes("pids"),
    )
    if (own === undefined || !isIsland(own.path, uid)) return
    const leaf = join(own.path, leafName)
    mkdirSync(leaf, { recursive: true })
    const handDown = controllersWanted
      .filter((name) => own.controllers.includes(name))
      .map((name) => `+${name}`)
      .join(" ")
    for (let round = 0; round < rounds; round += 1) {
      moveAll(own.path, leaf)
      try {
        writeFileSync(join(own.path, "cgroup.subtree_control"), handDown)
        return
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EBUSY") throw error
      }
    }
  } catch {
    // The launcher tries its own way, and tells what it met.
  }
}
