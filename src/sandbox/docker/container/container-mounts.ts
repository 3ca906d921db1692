/**
 * What one container is given: the bridge to start with, and places that fill up later.
 *
 * Guarantees: once the bridge is parked its program and pipes are detached from the container, so that the tool
 * finds neither; the call's folders appear in the running container when they are mounted here.
 */
import { rmSync } from "node:fs"
import { join } from "node:path"
import { makeFile, makeFolder } from "../../exact-modes.ts"
import { MNT_DETACH, MS, mount, umount } from "../../../linux/mounts.ts"
import { unmountBelow } from "../work-folder.ts"

const LATE = ["workspace", "home", "tmp", "shm"] as const
type LatePlace = (typeof LATE)[number]

export interface ContainerMounts {
  readonly path: string
  readonly pipes: string
  readonly bridge: string
  readonly places: Readonly<Record<LatePlace, string>>
  /** where the call's own slot goes */
  readonly slot: string
  /** The bridge is parked: take its program and pipes out of the container's sight. */
  detachBridge(): void
  /** Show a folder of the host at one of the places. */
  show(place: LatePlace, folder: string): void
  /** Take the shown folders away again, on the host's side. */
  hide(): void
  /** Show a terminal's device to the bridge; before `cover`. */
  showTerminal(device: string): void
  /** Put the call's files, or nothing, where the bridge was. */
  cover(files: string | undefined): void
  dispose(): void
}

const bind = (source: string, target: string): void => mount(source, target, null, MS.BIND, null)

/** `code`: the folder with the bridge's interpreter and text. */
export const openContainerMounts = (path: string, code: string): ContainerMounts => {
  const at = (...names: string[]): string => join(path, ...names)
  for (const folder of ["pipes", "slot-parent", "empty", "bridge", "bridge/code", "bridge/pipes", ...LATE])
    makeFolder(at(folder))
  makeFile(at("bridge", "tty"), "")
  bind(code, at("bridge", "code"))
  bind(at("pipes"), at("bridge", "pipes"))
  const shown: string[] = []
  const show = (folder: string, place: string): void => {
    mount(folder, at(place), null, MS.BIND | MS.REC, null)
    shown.push(place)
  }
  return {
    path,
    pipes: at("pipes"),
    bridge: at("bridge"),
    places: Object.fromEntries(LATE.map((name) => [name, at(name)])) as Record<LatePlace, string>,
    slot: at("slot-parent", "slot"),
    detachBridge() {
      umount(at("bridge", "code"), MNT_DETACH)
      umount(at("bridge", "pipes"), MNT_DETACH)
    },
    show: (place, folder) => show(folder, place),
    hide() {
      for (const place of shown.splice(0)) umount(at(place), MNT_DETACH)
    },
    showTerminal: (device) => bind(device, at("bridge", "tty")),
    cover(files) {
      // Read-only before the container sees it: what propagates is the mount as it is then.
      const own = files ?? at("empty")
      bind(own, own)
      mount("none", own, null, MS.BIND | MS.REMOUNT | MS.RDONLY | MS.NOSUID | MS.NODEV | MS.NOEXEC, null)
      show(own, "bridge")
    },
    dispose() {
      unmountBelow(path)
      rmSync(path, { recursive: true, force: true })
    },
  }
}
