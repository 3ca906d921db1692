/** Removes a folder in which folders may be shut to all, as overlay file systems leave theirs when a host is killed. */
import { spawnSync } from "node:child_process"
import { rmSync } from "node:fs"

export const removeFolder = (folder: string): void => {
  if (process.getuid?.() !== 0) spawnSync("chmod", ["-R", "u+rwX", folder])
  rmSync(folder, { recursive: true, force: true })
}
