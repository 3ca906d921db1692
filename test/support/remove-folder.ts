/** Removes a folder in which a killed host may have left a layer: overlay file systems shut folders of theirs to all. */
import { spawnSync } from "node:child_process"
import { rmSync } from "node:fs"

export const removeFolder = (folder: string): void => {
  if (process.getuid?.() !== 0) spawnSync("chmod", ["-R", "u+rwX", folder])
  rmSync(folder, { recursive: true, force: true })
}
