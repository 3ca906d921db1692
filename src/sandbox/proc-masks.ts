/**
 * What of /proc no sandbox is shown, on any backend: the one list. Pure but for `presentMasks`.
 *
 * What is left is what programs need of a machine: cpuinfo, meminfo, stat, uptime, loadavg, filesystems, version, the
 * settings below /proc/sys (read-only), and the sandbox's own processes. Sandboxes never run as root, so files that the
 * kernel closes to others need no mask where it does.
 */
import { lstatSync } from "node:fs"

/** Empty inside. */
const maskedFiles: readonly string[] = [
  "bootconfig",
  "cmdline",
  "config.gz",
  "consoles",
  "devices",
  "diskstats",
  "dma",
  "interrupts",
  "iomem",
  "ioports",
  "kallsyms",
  "kcore",
  "key-users",
  "keys",
  "kmsg",
  "kpagecgroup",
  "kpagecount",
  "kpageflags",
  "latency_stats",
  "locks",
  "mdstat",
  "misc",
  "modules",
  "mtrr",
  "pagetypeinfo",
  "partitions",
  "sched_debug",
  "slabinfo",
  "softirqs",
  "swaps",
  "timer_list",
  "timer_stats",
  "vmallocinfo",
].map((name) => `/proc/${name}`)
/** Empty folders inside. */
const maskedFolders: readonly string[] = [
  "acpi",
  "asound",
  "bus",
  "driver",
  "dynamic_debug",
  "fs",
  "irq",
  "pressure",
  "scsi",
  "tty",
].map((name) => `/proc/${name}`)
export const readOnlyInside: readonly string[] = ["/proc/sys", "/proc/sysrq-trigger"]

export interface Masks {
  readonly files: readonly string[]
  readonly folders: readonly string[]
}

/** Those that this machine has and that somebody other than root could read: each costs a mount in every call. */
export const presentMasks = (): Masks => {
  const readable = (path: string): boolean => ((lstatSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o004) !== 0
  return { files: maskedFiles.filter(readable), folders: maskedFolders.filter(readable) }
}
