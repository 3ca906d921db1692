/**
 * The end of a process tree, for certain.
 *
 * Guarantees: says `gone` only when no process of the call is left. Killing the first process of a pid namespace ends
 * the rest by the kernel's hand; where bubblewrap was killed before it said which process that is, everything in the
 * call's control group, or in its network namespace, is killed by number until nothing is left. A process that the
 * kernel does not let go of (a disk or a network mount that hangs) is waited for so long and no longer.
 * Assumes: runs in the launcher, which is pid 1 of its own namespace and so inherits orphans.
 */
import { readdirSync, readlinkSync } from "node:fs"
import { childEnded } from "../../linux/child-ended.ts"
import { reap } from "../../linux/processes.ts"
import type { NetworkNamespace } from "../network/netns.ts"
import type { Group } from "./cgroup.ts"
import { TREE } from "./limits.ts"

/** What only the processes of one call are in. */
interface Territory {
  readonly group: Group | undefined
  readonly network: Pick<NetworkNamespace, "fd">
}

const isIn = (network: string, thread: string): boolean => {
  try {
    return readlinkSync(`/proc/${thread}/ns/net`) === network
  } catch {
    return false
  }
}
const threadsOf = (pid: string): string[] => {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}

/** Processes in the call's network namespace, which nothing else shares; the first thread of one may have ended. */
const inNetwork = (network: string): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => isIn(network, pid) || threadsOf(pid).some((thread) => thread !== pid && isIn(network, thread)))
    .map(Number)

const kill = (pid: number): void => {
  try {
    process.kill(pid, "SIGKILL")
  } catch {
    // It is gone.
  }
}
/** So long at most between two looks, where the kernel's word that a child ended does not come first. */
const pause = (tries: number): Promise<void> => childEnded(Math.min(TREE.lookMs, 1 + tries))

export interface TreeEnd {
  readonly gone: boolean
  /** CPU time that the tree used, where the kernel told it */
  readonly cpuMs?: number | undefined
}
const left: TreeEnd = { gone: false }

/** Wait until the sandbox's first process is reaped: its namespace is then empty. */
const namespaceGone = async (first: number, until: number): Promise<TreeEnd> => {
  for (let tries = 0; ; tries += 1) {
    const next = pause(tries)
    const reaped = reap(first)
    if (reaped !== undefined) return { gone: true, cpuMs: reaped.cpuMs }
    if (tries === 2) kill(first)
    if (Date.now() > until) return left
    await next
  }
}

/** Everything alive in the call's sandbox. */
export const processesOf = (call: Territory): number[] =>
  (call.group?.processes() ?? inNetwork(readlinkSync(`/proc/self/fd/${call.network.fd}`))).filter((pid) => pid > 1)

/** Nothing of the call should live any more: see to it. */
export const treeGone = async (
  call: Territory,
  first: number | undefined,
  withinMs: number = TREE.goneMs,
): Promise<TreeEnd> => {
  const until = Date.now() + withinMs
  if (first !== undefined) return namespaceGone(first, until)
  const seen = new Set<number>()
  for (let tries = 0; ; tries += 1) {
    const alive = processesOf(call)
    for (const pid of alive) {
      seen.add(pid)
      kill(pid)
    }
    for (const pid of seen) if (reap(pid) !== undefined) seen.delete(pid)
    if (alive.length === 0) return { gone: true }
    if (Date.now() > until) return left
    await pause(tries)
  }
}
