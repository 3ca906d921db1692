/**
 * What the kernel counted for one container, read from its control groups directly.
 *
 * Guarantees: reading needs no answer from the engine and costs a few file reads. A counter that is not there is
 * absent, never zero. What engines do not limit is limited here, before anything of a call runs.
 * Assumes: the engine runs on this machine, and the container's first process is alive when the group is opened.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { type GroupUsage, limitSockets } from "../../process/cgroup.ts"

export interface ContainerGroup {
  /** does the group's path name the container: proof that this engine is on this machine */
  readonly belongsTo: (container: string) => boolean
  readonly usage: () => GroupUsage
  readonly cpuMs: () => number | undefined
  /** everything alive in the container */
  readonly processes: () => readonly number[]
}

const read = (file: string): string | undefined => {
  try {
    return readFileSync(file, "utf8")
  } catch {
    return undefined
  }
}
const counter = (file: string, key: string): number | undefined => {
  const found = new RegExp(`^${key} (\\d+)$`, "m").exec(read(file) ?? "")?.[1]
  return found === undefined ? undefined : Number(found)
}
const value = (file: string): number | undefined => {
  const text = read(file)?.trim()
  return text === undefined || !/^\d+$/.test(text) ? undefined : Number(text)
}

/** Controller name → the group's folder, from the texts of the process's `cgroup` and our `mountinfo`. */
export const groupFolders = (cgroup: string, mountinfo: string): ReadonlyMap<string, string> => {
  const places = new Map<string, string>()
  for (const line of mountinfo.split("\n")) {
    const [left, right] = line.split(" - ")
    const [type, , options] = right?.split(" ") ?? []
    const [root, point] = (left ?? "").split(" ").slice(3, 5)
    if (root !== "/" || point === undefined) continue
    if (type === "cgroup2") places.set("", point)
    if (type === "cgroup") for (const name of (options ?? "").split(",")) places.set(name, point)
  }
  const folders = new Map<string, string>()
  for (const line of cgroup.split("\n")) {
    const [, names, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? []
    if (names === undefined || path === undefined) continue
    for (const name of names.split(",")) {
      const place = places.get(name)
      if (place !== undefined) folders.set(name, join(place, path))
    }
  }
  return folders
}

export const openContainerGroup = (pid: number, memoryBytes: number): ContainerGroup | undefined => {
  const cgroup = read(`/proc/${pid}/cgroup`)
  const mountinfo = read("/proc/self/mountinfo")
  if (cgroup === undefined || mountinfo === undefined) return undefined
  const folders = groupFolders(cgroup, mountinfo)
  const unified = folders.get("")
  const [memory, pids, account] = ["memory", "pids", "cpuacct"].map((name) => folders.get(name))
  const v2 = unified !== undefined && existsSync(join(unified, "memory.max"))
  if (!v2 && memory !== undefined) limitSockets(memory, memoryBytes)
  const cpuMs = (): number | undefined => {
    if (v2) {
      const used = counter(join(unified, "cpu.stat"), "usage_usec")
      return used === undefined ? undefined : used / 1000
    }
    const used = account === undefined ? undefined : value(join(account, "cpuacct.usage"))
    return used === undefined ? undefined : used / 1e6
  }
  return {
    belongsTo: (container) => cgroup.includes(container),
    cpuMs,
    processes: () => {
      const folder = v2 ? unified : (pids ?? memory)
      const text = folder === undefined ? undefined : read(join(folder, "cgroup.procs"))
      return (text ?? "").split("\n").filter(Boolean).map(Number)
    },
    usage: () => {
      const spent = cpuMs()
      const peak = v2
        ? value(join(unified, "memory.peak"))
        : memory === undefined
          ? undefined
          : value(join(memory, "memory.max_usage_in_bytes"))
      const killed = v2
        ? counter(join(unified, "memory.events"), "oom_kill")
        : memory === undefined
          ? undefined
          : counter(join(memory, "memory.oom_control"), "oom_kill")
      const refused = v2
        ? counter(join(unified, "pids.events"), "max")
        : pids === undefined
          ? undefined
          : counter(join(pids, "pids.events"), "max")
      return {
        outOfMemory: (killed ?? 0) > 0,
        pidsRefused: refused ?? 0,
        ...(spent === undefined ? {} : { cpuMs: spent }),
        ...(peak === undefined ? {} : { peakMemoryBytes: peak }),
      }
    },
  }
}
