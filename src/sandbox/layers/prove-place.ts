/**
 * Can this disk hold layers? Shown by mounting one, not told by its name.
 *
 * Guarantees: a place on disk is answered only where a layer was mounted there, written through and taken away; else
 * calls write to memory, within their own limit of it, and the reason is told.
 */
import { randomUUID } from "node:crypto"
import { mkdirSync, rmdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { ControlReport } from "../terms.ts"
import { openScratch } from "./overlay.ts"
import { removeEntry } from "./remove.ts"
import type { LayerPlace } from "./store.ts"

export const provePlace = (place: LayerPlace, privileged: boolean): LayerPlace => {
  if (place.kind === "memory") return place
  const name = `probe-${randomUUID()}`
  const folder = join(place.folder, name)
  try {
    mkdirSync(folder, { mode: 0o755 })
    const scratch = openScratch({ at: folder, store: folder }, privileged ? { uid: 0, gid: 0 } : undefined, {
      there: 0o755,
    })
    try {
      writeFileSync(join(scratch.merged, "there", "file"), "x")
      mkdirSync(join(scratch.merged, "folder"))
      rmdirSync(join(scratch.merged, "folder"))
    } finally {
      scratch.unmount()
    }
    return place
  } catch (error) {
    return { kind: "memory", reason: `the disk below ${place.folder} takes no layers: ${(error as Error).message}` }
  } finally {
    void removeEntry(place.folder, name)
  }
}

/** What `doctor` says of it. */
export const placeReport = (place: LayerPlace): ControlReport =>
  place.kind === "disk"
    ? { control: "layers-on-disk", state: "enforced", evidence: "a layer was mounted on the data folder's disk" }
    : {
        control: "layers-on-disk",
        state: "degraded",
        evidence: `what a call writes is kept in memory, within its limit of memory: ${place.reason}`,
        fix: "set CAISSON_DATA to a folder on ext4, xfs or btrfs",
      }
