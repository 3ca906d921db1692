/** Looks for a value, and what encodings make of it, in everything that lies on a disk below some folders. */
import { lstatSync, readdirSync, readFileSync, statfsSync } from "node:fs"
import { join } from "node:path"

const TMPFS = 0x01021994
const MOST = 64 * 1024 * 1024

const spellings = (value: string): readonly Buffer[] =>
  [
    Buffer.from(value),
    Buffer.from(value).toString("hex"),
    // Whatever stood before it in what was encoded.
    ...[0, 1, 2].map((shift) => {
      const text = Buffer.from("x".repeat(shift) + value).toString("base64")
      return text.slice(shift === 0 ? 0 : 4, Math.floor(((shift + value.length) * 4) / 3 / 4) * 4)
    }),
  ].map((each) => Buffer.from(each))

/**
 * Paths below `folders` that hold it, by content, by name, or as a link's target. What is mounted below them is looked into
 * where it is on a disk; a mount that is in memory is what a running call may have. `since`: files older than that are
 * passed over, of folders that others write to as well.
 */
export const heldOnDisk = (value: string, folders: readonly string[], since = 0): string[] => {
  const wanted = spellings(value)
  const holds = (bytes: Buffer): boolean => wanted.some((each) => bytes.includes(each))
  const found: string[] = []
  const visit = (path: string, device: number, deviceIsFine: boolean): void => {
    let isFine = deviceIsFine
    try {
      const facts = lstatSync(path)
      if (facts.dev !== device) isFine = statfsSync(path).type !== TMPFS
      if (!isFine) return
      if (facts.isDirectory()) {
        for (const name of readdirSync(path)) {
          if (holds(Buffer.from(name))) found.push(join(path, name))
          visit(join(path, name), facts.dev, isFine)
        }
      } else if (facts.isFile() && facts.size <= MOST && facts.ctimeMs >= since && holds(readFileSync(path)))
        found.push(path)
    } catch {
      // Gone meanwhile.
    }
  }
  for (const folder of folders) {
    // The folders themselves count whatever they lie on: /run and /dev/shm are in memory on most machines.
    const facts = lstatSync(folder, { throwIfNoEntry: false })
    if (facts !== undefined) visit(folder, facts.dev, true)
  }
  return found
}
