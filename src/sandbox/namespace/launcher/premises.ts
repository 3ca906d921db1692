/**
 * What all sandboxes of one launcher share: its base of private mounts, control groups, users, system-call filters.
 *
 * Assumes: the calling process is the launcher, in its own mount namespace.
 */
import { existsSync, openSync, readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { MS, mount } from "../../../linux/mounts.ts"
import { inotifyShare, Users } from "../../identities.ts"
import { OwnerMaps } from "../../layers/overlay.ts"
import { provePlace } from "../../layers/prove-place.ts"
import type { LayerPlace } from "../../layers/store.ts"
import { findGroups, type Groups } from "../../process/cgroup.ts"
import { RootViews } from "../../roots/root-views.ts"
import { type Architecture, compileFilter } from "../../seccomp/bpf.ts"
import { rulesFor } from "../../seccomp/rules.ts"
import { type Cover, openCover } from "./proc-cover.ts"
import type { LauncherFacts, LauncherOptions } from "./protocol.ts"

export interface Premises {
  readonly base: string
  readonly users: Users | undefined
  readonly layers: LayerPlace
  readonly roots: RootViews
  readonly cover: Cover
  readonly groups: Groups
  readonly owners: OwnerMaps
  /** compiled system-call filters */
  readonly filters: { readonly withChildren: Uint8Array; readonly withoutChildren: Uint8Array }
  /** what waits inside a sandbox for its job */
  readonly waiter: Waiter
  readonly facts: LauncherFacts
}

export const interpreterPath = "/usr/bin/perl"
interface Waiter {
  /** descriptor of its interpreter */
  readonly interpreter: number
  readonly text: string
  /** numbers of setsid, prlimit64 and seccomp on this machine */
  readonly calls: readonly number[]
}
const openWaiter = (): Waiter => {
  const names = ["../../../runner/wait.pl", "../../../../src/runner/wait.pl"]
  const file = names.map((name) => fileURLToPath(new URL(name, import.meta.url))).find((path) => existsSync(path))
  if (file === undefined) throw new Error("runner/wait.pl is not in this installation")
  const lines = readFileSync(file, "utf8").split("\n")
  return {
    interpreter: openSync(interpreterPath, "r"),
    text: lines.filter((line) => !line.startsWith("#")).join("\n"),
    calls: process.arch === "arm64" ? [157, 261, 277] : [112, 302, 317],
  }
}

/** The limits of this launcher's own user namespace, which hold for every sandbox together. */
const limitInotify = (): void => {
  const file = "/proc/sys/user/max_inotify_instances"
  try {
    writeFileSync(file, inotifyShare(readFileSync("/proc/sys/fs/inotify/max_user_instances", "latin1")))
  } catch {
    // A kernel without that setting, or one that is mounted read-only.
  }
}

const filter = (children: boolean): Uint8Array => {
  const architecture = process.arch as Architecture
  return compileFilter(rulesFor({ children }), architecture)
}

export const openPremises = (options: LauncherOptions): Premises => {
  const privileged = options.hostUid === 0
  const { base } = options
  if (!privileged) limitInotify()
  const layers = provePlace(options.layers, privileged)
  mount("tmpfs", base, "tmpfs", MS.NOSUID | MS.NODEV | MS.NOEXEC, "size=64m,mode=0755")
  const live = new Set(options.livePids)
  const groups = findGroups({
    mountinfo: readFileSync("/proc/self/mountinfo", "utf8"),
    selfCgroup: readFileSync("/proc/self/cgroup", "utf8"),
    hostPid: options.hostPid,
    isDead: (pid, madeAt) => madeAt < options.listedAt && !live.has(pid),
  })
  return {
    base,
    users: options.users === undefined ? undefined : new Users(options.users),
    layers,
    roots: new RootViews(base),
    cover: openCover(base),
    groups,
    owners: new OwnerMaps(),
    waiter: openWaiter(),
    filters: { withChildren: filter(true), withoutChildren: filter(false) },
    facts: {
      privileged,
      ownUsers: options.users !== undefined && options.users.count > 1,
      groups: groups.version,
      groupsReason: groups.reason,
      controllers: groups.controllers,
      groupFolders: groups.folders,
      layers,
    },
  }
}
