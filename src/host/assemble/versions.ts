/**
 * Versions that checks found, kept between runs, so that a program is not probed again until it or its driver changes.
 *
 * Guarantees: one small file a key, written whole; what cannot be read is simply not known. Keys are hex digests.
 */
import { readFile, rename, writeFile } from "node:fs/promises"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { versionsFolder } from "../../data-folder/paths.ts"
import type { VersionStore } from "../drivers/program/version-check.ts"

const VERSION = /^[0-9A-Za-z.+_-]{1,128}$/

export const openVersionStore = (data: string): VersionStore => {
  const folder = versionsFolder(data)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return {
    async get(key) {
      const text = await readFile(join(folder, key), "utf8").catch(() => "")
      return VERSION.test(text) ? text : undefined
    },
    async set(key, version) {
      if (!VERSION.test(version)) return
      const temporary = join(folder, `${key}.${process.pid}.new`)
      try {
        await writeFile(temporary, version, { mode: 0o600 })
        await rename(temporary, join(folder, key))
      } catch {
        // Not remembering a version costs one probe, never a call.
      }
    },
  }
}
