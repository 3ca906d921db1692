/** This machine, in the words that manifests use for `requires`. */
import { statfs } from "node:fs/promises"
import os from "node:os"
import type { DriverContract } from "../../../manifest/types.ts"

export interface Machine {
  readonly os: string
  readonly arch: string
  readonly memoryMb: number
  /** absent: not known, and then no `min_disk_mb` is met */
  readonly freeDiskMb?: number
}

const MiB = 1024 * 1024
const osNames: Readonly<Record<string, string>> = { win32: "windows" }
const archNames: Readonly<Record<string, string>> = { ia32: "x86" }

/** `dir`: a folder on the disk that counts, the data folder. */
export const thisMachine = async (dir: string): Promise<Machine> => {
  const disk = await statfs(dir).catch(() => undefined)
  return {
    os: osNames[process.platform] ?? process.platform,
    arch: archNames[process.arch] ?? process.arch,
    memoryMb: Math.floor(os.totalmem() / MiB),
    ...(disk === undefined ? {} : { freeDiskMb: Math.floor((disk.bavail * disk.bsize) / MiB) }),
  }
}

/** What the driver requires and this machine does not have. */
export const unmetRequirement = ({ requires }: DriverContract, machine: Machine): string | undefined => {
  if (requires.os.length > 0 && !requires.os.includes(machine.os))
    return `it runs on ${requires.os.join(", ")}, and this is ${machine.os}`
  if (requires.arch.length > 0 && !requires.arch.includes(machine.arch))
    return `it runs on ${requires.arch.join(", ")}, and this is ${machine.arch}`
  if (requires.minMemoryMb !== undefined && machine.memoryMb < requires.minMemoryMb) {
    return `it needs ${requires.minMemoryMb} MB of memory, and this machine has ${machine.memoryMb}`
  }
  if (requires.minDiskMb !== undefined && (machine.freeDiskMb ?? -1) < requires.minDiskMb) {
    return `it needs ${requires.minDiskMb} MB of free disk, and ${machine.freeDiskMb === undefined ? "the free space is not known" : `there are ${machine.freeDiskMb}`}`
  }
  return undefined
}
