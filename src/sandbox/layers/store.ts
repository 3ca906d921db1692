/**
 * Where the layers of one host's calls lie on disk, and the end of those that dead hosts left.
 *
 * Guarantees: `<data>/layers/<host>` is this user's alone and marked with a lock of the kernel's for as long as the host
 * lives; a folder there whose lock is free belongs to a host that died and is removed, in the background, crossing no
 * mount and tolerating whatever it finds.
 * A file system that cannot hold layers is told by name; calls then write to memory, within their own limit of it.
 */
import { randomUUID } from "node:crypto"
import { closeSync, fstatSync, mkdirSync, readdirSync, statfsSync, statSync } from "node:fs"
import { join } from "node:path"
import { layersFolder } from "../../data-folder/paths.ts"
import { openRoot } from "../effects/beneath.ts"
import { flock, LOCK } from "../../linux/files.ts"
import { removeEntry } from "./remove.ts"

/** Where layers go: a folder on disk, or memory and why. */
export type LayerPlace =
  | { readonly kind: "disk"; readonly folder: string }
  | { readonly kind: "memory"; readonly reason: string }

interface LayerStore {
  readonly place: LayerPlace
  /** After every mount of the layers is gone. */
  dispose(): Promise<void>
}

/** File systems that overlayfs takes for no upper layer, or that lie about what they keep. */
const UNFIT: Readonly<Record<number, string>> = {
  0x794c7630: "overlayfs",
  0x6969: "nfs",
  0x65735546: "fuse",
  0xff534d42: "cifs",
  0xfe534d42: "smb2",
  0x01021997: "9p",
  0x4d44: "vfat",
  0x2011bab0: "exfat",
  0x00c36400: "ceph",
  0x5346414f: "afs",
  0x6a656a63: "virtual machine shares",
}

const unfitFor = (type: number): string | undefined => UNFIT[type >>> 0]

const locked = (path: string): number | undefined => {
  let fd: number
  try {
    fd = openRoot(path)
  } catch {
    return undefined
  }
  try {
    flock(fd, LOCK.EXCLUSIVE | LOCK.NONBLOCK)
    const [held, named] = [fstatSync(fd), statSync(path)]
    if (held.dev === named.dev && held.ino === named.ino) return fd
  } catch {
    // Held by a live host, or removed meanwhile.
  }
  closeSync(fd)
  return undefined
}

/** Remove what dead hosts left. */
export const sweepLayers = async (parent: string): Promise<void> => {
  for (const name of readdirSync(parent)) {
    const lock = locked(join(parent, name))
    if (lock === undefined) continue
    try {
      await removeEntry(parent, name)
    } finally {
      closeSync(lock)
    }
  }
}

const inMemory = (reason: string): LayerStore => ({ place: { kind: "memory", reason }, dispose: async () => undefined })

/** `mounted`: an overlay is laid on them, which not every file system bears. */
export const openLayerStore = (data: string, mounted = true): LayerStore => {
  if (data === "") return inMemory("there is no data folder")
  const parent = layersFolder(data)
  for (;;) {
    const name = `${process.pid}-${randomUUID()}`
    let lock: number | undefined
    try {
      mkdirSync(parent, { recursive: true, mode: 0o700 })
      const unfit = mounted ? unfitFor(statfsSync(parent).type) : undefined
      if (unfit !== undefined) return inMemory(`the data folder ${data} is on ${unfit}, which cannot hold layers`)
      mkdirSync(join(parent, name), { mode: 0o700 })
      lock = locked(join(parent, name))
    } catch (error) {
      return inMemory(`the data folder ${data} takes no layers: ${(error as Error).message}`)
    }
    // A sweep of another host may have come between the making and the locking.
    if (lock === undefined) continue
    const own = lock
    const sweeping = sweepLayers(parent).catch(() => undefined)
    return {
      place: { kind: "disk", folder: join(parent, name) },
      async dispose() {
        await sweeping
        await removeEntry(parent, name)
        closeSync(own)
      },
    }
  }
}
