/**
 * One control group per parked process, on cgroup v1 or v2, or none where this process may not make any.
 *
 * Guarantees: a parked process's process is in its group before anything untrusted starts; limits are written before the
 * tool runs; removing a parked process removes its group. Groups of hosts that died are swept by name at start.
 * Assumes: the caller writes limits only after `join` resolved. Joining can take ten milliseconds (a kernel
 * grace period), so it is asynchronous and belongs before the call.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { GROUP } from "./limits.ts"

interface GroupLimits {
  readonly memoryBytes: number
  readonly pids: number
  readonly cpus?: number
}
export interface GroupUsage {
  readonly outOfMemory: boolean
  readonly pidsRefused: number
  readonly cpuMs?: number
  readonly peakMemoryBytes?: number
}
export interface Group {
  join(pid: number): Promise<void>
  limit(limits: GroupLimits): void
  usage(): GroupUsage
  cpuMs(): number | undefined
  /** everything alive in the group, by number in this process's pid namespace */
  processes(): number[]
  remove(): void
}
export interface Groups {
  readonly version: "v1" | "v2" | "none"
  /** what is missing and what to do about it, when `none` */
  readonly reason: string
  readonly controllers: { readonly memory: boolean; readonly pids: boolean; readonly cpu: boolean }
  /** the folders that hold this host's groups */
  readonly folders: readonly string[]
  create(name: string): Group
}

/** Is the host that made a group at this time gone? A host that started since we looked is not. */
type IsDead = (pid: number, madeAt: number) => boolean

interface Mounted {
  readonly version: 1 | 2
  readonly path: string
  readonly controllers: readonly string[]
}

/** Every cgroup mount with this process's own place in it. */
export const findMounts = (mountinfo: string, selfCgroup: string): Mounted[] => {
  const own = new Map<string, string>()
  for (const line of selfCgroup.split("\n")) {
    const [, names, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? []
    if (names !== undefined && path !== undefined) for (const name of names.split(",")) own.set(name, path)
  }
  const mounts: Mounted[] = []
  for (const line of mountinfo.split("\n")) {
    const [left, right] = line.split(" - ")
    const fields = left?.split(" ")
    const [type, , options] = right?.split(" ") ?? []
    const [root, point] = [fields?.[3], fields?.[4]]
    if (root === undefined || point === undefined) continue
    const place = (name: string): string => {
      const path = own.get(name) ?? "/"
      const below = root !== "/" && path.startsWith(root) ? path.slice(root.length) : path
      const full = join(point, below)
      return existsSync(full) ? full : point
    }
    if (type === "cgroup") {
      const controllers = (options ?? "")
        .split(",")
        .filter((name) => ["memory", "pids", "cpu", "cpuacct"].includes(name))
      if (controllers[0] !== undefined) mounts.push({ version: 1, path: place(controllers[0]), controllers })
    } else if (type === "cgroup2") {
      const path = place("")
      const file = join(path, "cgroup.controllers")
      mounts.push({
        version: 2,
        path,
        controllers: existsSync(file) ? readFileSync(file, "utf8").trim().split(" ") : [],
      })
    }
  }
  return mounts
}

export const controllersWanted: readonly string[] = ["memory", "pids", "cpu"]
const prefix = "caisson-"
const removeTree = (dir: string): void => {
  try {
    for (const entry of readdirSync(dir, { withFileTypes: true }))
      if (entry.isDirectory()) removeTree(join(dir, entry.name))
    rmdirSync(dir)
  } catch {
    // Busy (a live host's) or gone already: the next start sweeps again.
  }
}
/** Remove a host's groups once their last process is gone, which the kernel may take a moment over. */
export const removeGroups = async (folders: readonly string[]): Promise<void> => {
  const end = Date.now() + GROUP.emptyMs
  for (let pause = 5; ; pause = Math.min(pause * 2, 100)) {
    const left = folders.filter((folder) => existsSync(folder))
    if (left.length === 0) return
    left.forEach(removeTree)
    if (Date.now() > end) return
    await new Promise((resolve) => setTimeout(resolve, pause))
  }
}
/** Groups are named after the host process; those whose process is gone are ours to remove. */
const sweep = (parent: string, isDead: IsDead): void => {
  for (const name of readdirSync(parent)) {
    const pid = name.startsWith(prefix) ? Number(name.slice(prefix.length).split("-")[0]) : Number.NaN
    const madeAt = Number.isInteger(pid) ? statSync(join(parent, name), { throwIfNoEntry: false })?.ctimeMs : undefined
    if (madeAt !== undefined && isDead(pid, madeAt)) removeTree(join(parent, name))
  }
}
const readNumber = (file: string): number | undefined => {
  try {
    return Number(readFileSync(file, "utf8").trim())
  } catch {
    return undefined
  }
}
const readCounter = (file: string, key: string): number => {
  try {
    const match = new RegExp(`^${key} (\\d+)$`, "m").exec(readFileSync(file, "utf8"))
    return match === null ? 0 : Number(match[1])
  } catch {
    return 0
  }
}
export const readProcesses = (dir: string): number[] =>
  readFileSync(join(dir, "cgroup.procs"), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map(Number)
const quotaPeriodUs = 100_000

/**
 * Version 1 counts what sockets buffer apart, and not at all until it is limited; what all programs of the machine may
 * have of it together would be one call's. Version 2 counts it as memory. `memory` is the group's folder.
 */
export const limitSockets = (memory: string, memoryBytes: number): void => {
  const file = join(memory, "memory.kmem.tcp.limit_in_bytes")
  if (existsSync(file)) writeFileSync(file, String(Math.min(memoryBytes, GROUP.socketBytes)))
}

const createV1 = (mounts: readonly Mounted[], hostName: string, isDead: IsDead): Groups | string => {
  const parents = new Map<string, string>()
  for (const controller of ["memory", "pids", "cpu", "cpuacct"]) {
    const mount = mounts.find((candidate) => candidate.version === 1 && candidate.controllers.includes(controller))
    if (mount === undefined) continue
    try {
      sweep(mount.path, isDead)
      const parent = join(mount.path, hostName)
      mkdirSync(parent, { recursive: true })
      parents.set(controller, parent)
    } catch (error) {
      return `${mount.path} cannot be written (${(error as NodeJS.ErrnoException).code ?? "error"})`
    }
  }
  if (!parents.has("memory") || !parents.has("pids")) return "the memory and pids controllers are not mounted"
  const dirs = new Set(parents.values())
  return {
    version: "v1",
    reason: "",
    controllers: { memory: true, pids: true, cpu: parents.has("cpu") },
    folders: [...dirs],
    create(name) {
      const own = (controller: string): string | undefined => {
        const parent = parents.get(controller)
        return parent === undefined ? undefined : join(parent, name)
      }
      const all = [...dirs].map((parent) => join(parent, name))
      for (const dir of all) mkdirSync(dir)
      const [memory, pids, cpu, account] = [own("memory"), own("pids"), own("cpu"), own("cpuacct")]
      const cpuMs = (): number | undefined => {
        const nanoseconds = account === undefined ? undefined : readNumber(join(account, "cpuacct.usage"))
        return nanoseconds === undefined ? undefined : nanoseconds / 1e6
      }
      return {
        async join(pid) {
          for (const dir of all) await writeFile(join(dir, "cgroup.procs"), String(pid))
        },
        limit(limits) {
          writeFileSync(join(memory as string, "memory.limit_in_bytes"), String(limits.memoryBytes))
          const withSwap = join(memory as string, "memory.memsw.limit_in_bytes")
          if (existsSync(withSwap)) writeFileSync(withSwap, String(limits.memoryBytes))
          limitSockets(memory as string, limits.memoryBytes)
          writeFileSync(join(pids as string, "pids.max"), String(limits.pids))
          if (limits.cpus !== undefined && cpu !== undefined) {
            writeFileSync(join(cpu, "cpu.cfs_period_us"), String(quotaPeriodUs))
            writeFileSync(join(cpu, "cpu.cfs_quota_us"), String(Math.round(limits.cpus * quotaPeriodUs)))
          }
        },
        usage: () => {
          const spent = cpuMs()
          const peak = readNumber(join(memory as string, "memory.max_usage_in_bytes"))
          return {
            outOfMemory: readCounter(join(memory as string, "memory.oom_control"), "oom_kill") > 0,
            pidsRefused: readCounter(join(pids as string, "pids.events"), "max"),
            ...(spent === undefined ? {} : { cpuMs: spent }),
            ...(peak === undefined ? {} : { peakMemoryBytes: peak }),
          }
        },
        cpuMs,
        processes: () => readProcesses(pids as string),
        remove: () => all.forEach(removeTree),
      }
    },
  }
}

const createV2 = (mount: Mounted, hostName: string, isDead: IsDead): Groups | string => {
  // A group that hands controllers down may hold no process itself, so ours goes beside our own, not below it.
  const isRoot = !existsSync(join(mount.path, "cgroup.type"))
  const parent = isRoot ? mount.path : dirname(mount.path)
  const wanted = controllersWanted
  try {
    sweep(parent, isDead)
    const handedDown = (dir: string): string[] =>
      readFileSync(join(dir, "cgroup.subtree_control"), "utf8").trim().split(" ")
    const missing = wanted.filter((name) => mount.controllers.includes(name) && !handedDown(parent).includes(name))
    if (missing.length > 0)
      writeFileSync(join(parent, "cgroup.subtree_control"), missing.map((name) => `+${name}`).join(" "))
    const host = join(parent, hostName)
    mkdirSync(host)
    const available = readFileSync(join(host, "cgroup.controllers"), "utf8").trim().split(" ")
    if (!available.includes("memory") || !available.includes("pids")) {
      rmdirSync(host)
      return "the memory and pids controllers are not delegated to this group"
    }
    const used = wanted.filter((name) => available.includes(name))
    writeFileSync(join(host, "cgroup.subtree_control"), used.map((name) => `+${name}`).join(" "))
    return {
      version: "v2",
      reason: "",
      controllers: { memory: true, pids: true, cpu: used.includes("cpu") },
      folders: [host],
      create(name) {
        const dir = join(host, name)
        mkdirSync(dir)
        const cpuMs = (): number => readCounter(join(dir, "cpu.stat"), "usage_usec") / 1000
        return {
          join: (pid) => writeFile(join(dir, "cgroup.procs"), String(pid)),
          limit(limits) {
            writeFileSync(join(dir, "memory.max"), String(limits.memoryBytes))
            const swap = join(dir, "memory.swap.max")
            if (existsSync(swap)) writeFileSync(swap, "0")
            writeFileSync(join(dir, "memory.oom.group"), "1")
            writeFileSync(join(dir, "pids.max"), String(limits.pids))
            if (limits.cpus !== undefined)
              writeFileSync(join(dir, "cpu.max"), `${Math.round(limits.cpus * quotaPeriodUs)} ${quotaPeriodUs}`)
          },
          usage: () => {
            const peak = readNumber(join(dir, "memory.peak"))
            return {
              outOfMemory: readCounter(join(dir, "memory.events"), "oom_kill") > 0,
              pidsRefused: readCounter(join(dir, "pids.events"), "max"),
              cpuMs: cpuMs(),
              ...(peak === undefined ? {} : { peakMemoryBytes: peak }),
            }
          },
          cpuMs,
          processes: () => readProcesses(dir),
          remove: () => removeTree(dir),
        }
      },
    }
  } catch (error) {
    return `${parent} cannot be written (${(error as NodeJS.ErrnoException).code ?? "error"})`
  }
}

const none = (reason: string): Groups => ({
  version: "none",
  reason,
  controllers: { memory: false, pids: false, cpu: false },
  folders: [],
  create: () => {
    throw new Error("there are no control groups here")
  },
})

interface FindGroupsOptions {
  readonly mountinfo: string
  readonly selfCgroup: string
  /** pid of the host process, which names the groups */
  readonly hostPid: number
  readonly isDead: IsDead
}
export const findGroups = (options: FindGroupsOptions): Groups => {
  const mounts = findMounts(options.mountinfo, options.selfCgroup)
  const hostName = `${prefix}${options.hostPid}-${process.hrtime.bigint().toString(36)}`
  const reasons: string[] = []
  const unified = mounts.find(
    (mount) => mount.version === 2 && mount.controllers.includes("memory") && mount.controllers.includes("pids"),
  )
  if (unified !== undefined) {
    const groups = createV2(unified, hostName, options.isDead)
    if (typeof groups !== "string") return groups
    reasons.push(groups)
  }
  if (mounts.some((mount) => mount.version === 1 && mount.controllers.length > 0)) {
    const groups = createV1(mounts, hostName, options.isDead)
    if (typeof groups !== "string") return groups
    reasons.push(groups)
  }
  return none(reasons.length === 0 ? "no cgroup hierarchy with memory and pids is mounted" : reasons.join("; "))
}
