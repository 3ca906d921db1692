/**
 * What a sealed program sees at `/`: the host's libraries and the listed programs, read-only, and nothing else.
 *
 * Guarantees: no path of /home, /root, /var, /run or another user is there; program folders hold only what the
 * profile lists; /etc is built from nothing plus a short list of files that programs need.
 * Assumes: runs in the launcher's private mount namespace, below a tmpfs of its own.
 * A view is made once per set of executables and reused; it holds no data of a call.
 */
import { existsSync, lstatSync, readlinkSync, realpathSync, symlinkSync } from "node:fs"
import { basename, dirname, isAbsolute, join, resolve } from "node:path"
import { makeFile, makeFolders } from "../exact-modes.ts"
import type { Executables } from "../backend.ts"
import { mountOverlay } from "../layers/mount-overlay.ts"
import { placeConfiguration } from "./configuration.ts"
import { SyscallError } from "../../linux/libc.ts"
import { MNT_DETACH, MS, mount, umount } from "../../linux/mounts.ts"

/** Folders whose whole content is shown. */
const libraries = [
  "/usr/lib",
  "/usr/lib32",
  "/usr/lib64",
  "/usr/libx32",
  "/usr/share",
  "/usr/local/lib",
  "/usr/local/share",
]
/** Folders of which only the listed programs are shown. */
const programFolders = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/usr/games"]
const topLevel = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"]
const written: Readonly<Record<string, string>> = {
  passwd:
    "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\ntool:x:1000:1000:tool:/home/tool:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
  group: "root:x:0:\ntool:x:1000:\nnogroup:x:65534:\n",
  hosts: "127.0.0.1 localhost caisson\n::1 localhost caisson\n",
  hostname: "caisson\n",
  "nsswitch.conf":
    "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\nnetworks: files\n",
  "resolv.conf": "nameserver 127.0.0.1\noptions timeout:5 attempts:1\n",
}
/** Mount points that the call's own mounts go on. */
const mountPoints = ["proc", "dev", "tmp", "workspace", "home/tool", "run/caisson"]

const makeDir = makeFolders
const bindReadOnly = (source: string, target: string): void => {
  mount(source, target, null, MS.BIND | MS.REC, null)
  mount("none", target, null, MS.BIND | MS.REMOUNT | MS.RDONLY | MS.NOSUID | MS.NODEV, null)
}
/**
 * Show a folder of the host without its path: a bind names it in every mountinfo inside, an overlay does not.
 * `within` holds two empty folders, `workspace` and `tmp`; nothing stays mounted on them.
 */
export const showVeiled = (source: string, target: string, within: string): void => {
  const at = join(within, "workspace")
  bindReadOnly(source, at)
  try {
    mountOverlay([within] as const, target, MS.RDONLY | MS.NOSUID | MS.NODEV, (own) => [
      `lowerdir=${own}/workspace:${own}/tmp`,
      "userxattr",
    ])
  } catch (error) {
    // Folders with mounts of their own, and file systems that cannot be stacked, are shown as they are.
    if (!(error instanceof SyscallError)) throw error
    bindReadOnly(source, target)
  } finally {
    umount(at, MNT_DETACH)
  }
}
const isWithin = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`)

const showLibraries = (root: string): void => {
  for (const folder of libraries) {
    if (!existsSync(folder) || lstatSync(folder).isSymbolicLink()) continue
    makeDir(join(root, folder))
    bindReadOnly(folder, join(root, folder))
  }
  for (const folder of programFolders) makeDir(join(root, folder))
  for (const name of topLevel) {
    const path = `/${name}`
    if (!existsSync(path)) continue
    const stat = lstatSync(path)
    if (stat.isSymbolicLink()) symlinkSync(readlinkSync(path), join(root, name))
    else {
      makeDir(join(root, name))
      if (name.startsWith("lib")) bindReadOnly(path, join(root, name))
    }
  }
}

const showConfiguration = (root: string): void => {
  const etc = join(root, "etc")
  makeDir(etc)
  for (const [name, text] of Object.entries(written)) makeFile(join(etc, name), text)
  placeConfiguration(etc, bindReadOnly)
}

/** Show one program under every name that leads to it, and the file itself where it lies. */
const showProgram = (root: string, path: string, shown: Set<string>): void => {
  let at = path
  for (let hops = 0; hops < 16; hops += 1) {
    at = join(realpathSync(dirname(at)), basename(at))
    if (shown.has(at)) return
    shown.add(at)
    const visible = libraries.some((folder) => isWithin(at, folder)) || isWithin(at, "/etc/alternatives")
    const stat = lstatSync(at)
    if (!stat.isSymbolicLink()) {
      if (visible) return
      const target = join(root, at)
      makeDir(dirname(target))
      makeFile(target, "", 0o755)
      bindReadOnly(at, target)
      return
    }
    const link = readlinkSync(at)
    if (!visible) {
      makeDir(dirname(join(root, at)))
      symlinkSync(link, join(root, at))
    }
    at = isAbsolute(link) ? link : resolve(dirname(at), link)
  }
  throw new Error(`${path} is a loop of links`)
}

export const buildRootView = (root: string, executables: Executables): void => {
  makeDir(root)
  showLibraries(root)
  showConfiguration(root)
  for (const point of mountPoints) makeDir(join(root, point))
  makeDir(join(root, "var"))
  symlinkSync("../tmp", join(root, "var/tmp"))
  for (const [source, inside] of Object.entries(executables.bundles)) {
    makeDir(join(root, inside))
    showVeiled(source, join(root, inside), root)
  }
  const inBundle = (path: string): boolean => Object.keys(executables.bundles).some((folder) => isWithin(path, folder))
  const shown = new Set<string>()
  for (const path of [executables.program, ...Object.values(executables.spawn)])
    if (!inBundle(path)) showProgram(root, path, shown)
  // A program asked for by a name that differs from its file's gets that name too.
  for (const [name, path] of Object.entries(executables.spawn)) {
    const alias = join(root, "usr/bin", name)
    if (!name.includes("/") && !inBundle(path) && lstatSync(alias, { throwIfNoEntry: false }) === undefined)
      symlinkSync(path, alias)
  }
}
