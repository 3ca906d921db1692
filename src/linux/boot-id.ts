/** Which boot of the machine this is; empty where the kernel does not say, and then equal to no other. */
import { readFileSync } from "node:fs"

export const bootId = (): string => {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim()
  } catch {
    return ""
  }
}
