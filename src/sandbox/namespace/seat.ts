/**
 * A seat: one parked process, already in its own network namespace and control group, waiting for a call.
 *
 * Guarantees: a seat is used once; it becomes bubblewrap by `exec` when a call takes it, so what was prepared
 * holds for the sandbox; it dies with the launcher. It holds nothing of any call.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { closeSync, fchownSync, openSync } from "node:fs"
import { Socket } from "node:net"
import type { Readable, Writable } from "node:stream"
import { makePipe } from "../../linux/syscalls.ts"
import type { Identity } from "../layers/overlay.ts"
import type { Group, Groups } from "../process/cgroup.ts"
import { createNetwork, type NetworkNamespace } from "../network/netns.ts"

/** Descriptors of the parked shell; the same numbers stay with bubblewrap. */
export const descriptor = {
  stdin: 3,
  arguments: 4,
  status: 5,
  block: 6,
  filterWithChildren: 7,
  filterWithoutChildren: 8,
} as const

export interface Seat {
  readonly process: ChildProcess
  readonly pid: number
  readonly script: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  readonly stdin: Writable
  readonly arguments: Writable
  readonly status: Readable
  readonly block: Writable
  readonly network: NetworkNamespace
  readonly group: Group | undefined
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  dispose(): void
}

export interface SeatOptions {
  readonly name: string
  readonly groups: Groups
  readonly homeNetwork: number
  readonly identity: Identity | undefined
  /** files with the two compiled filters; each seat reads its own descriptor of them */
  readonly filters: { readonly withChildren: string; readonly withoutChildren: string }
}

/**
 * The tool's three streams as real pipes: unlike the socket pairs that Node makes, they can be opened again as
 * /dev/stdin, /dev/stdout and /dev/stderr, which they are owned by the sandbox's user for.
 */
const openStreams = (identity: Identity | undefined) => {
  const [input, output, errors] = [makePipe(), makePipe(), makePipe()]
  if (identity !== undefined)
    for (const { read } of [input, output, errors]) fchownSync(read, identity.uid, identity.gid)
  const stdin = new Socket({ fd: input.write, readable: false, writable: true })
  const stdout = new Socket({ fd: output.read, readable: true, writable: false })
  const stderr = new Socket({ fd: errors.read, readable: true, writable: false })
  const all = [stdin, stdout, stderr]
  for (const stream of all) stream.on("error", () => undefined)
  return {
    stdin,
    stdout,
    stderr,
    inside: { stdin: input.read, stdout: output.write, stderr: errors.write },
    destroy: () => all.forEach((stream) => stream.destroy()),
  }
}

export const takeSeat = async (options: SeatOptions): Promise<Seat> => {
  const group = options.groups.version === "none" ? undefined : options.groups.create(options.name)
  const streams = openStreams(options.identity)
  const filters = [openSync(options.filters.withChildren, "r"), openSync(options.filters.withoutChildren, "r")]
  try {
    const { child, network } = createNetwork(options.homeNetwork, (made) => ({
      network: made,
      child: spawn("/bin/sh", ["-s"], {
        cwd: "/",
        env: {},
        stdio: [
          "pipe",
          streams.inside.stdout,
          streams.inside.stderr,
          streams.inside.stdin,
          "pipe",
          "pipe",
          "pipe",
          ...filters,
        ],
        ...(options.identity ?? {}),
      }),
    }))
    const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve, reject) => {
      child.once("error", reject)
      child.once("exit", (code, signal) => resolve({ code, signal }))
    })
    exited.catch(() => undefined)
    // A sandbox that ends early closes its pipes; writing to them is then of no consequence.
    for (const stream of child.stdio) stream?.on("error", () => undefined)
    if (child.pid === undefined) {
      network.close()
      await exited
      throw new Error("the sandbox process could not be started")
    }
    const pipe = (index: number): unknown => (child.stdio as readonly unknown[])[index]
    let disposed = false
    const seat: Seat = {
      process: child,
      pid: child.pid,
      script: pipe(0) as Writable,
      stdout: streams.stdout,
      stderr: streams.stderr,
      stdin: streams.stdin,
      arguments: pipe(descriptor.arguments) as Writable,
      status: pipe(descriptor.status) as Readable,
      block: pipe(descriptor.block) as Writable,
      network,
      group,
      exited,
      dispose() {
        if (disposed) return
        disposed = true
        if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL")
        for (const stream of child.stdio) stream?.destroy()
        streams.destroy()
        network.close()
        void exited.catch(() => undefined).then(() => group?.remove())
      },
    }
    await group?.join(child.pid)
    return seat
  } catch (error) {
    group?.remove()
    streams.destroy()
    throw error
  } finally {
    Object.values(streams.inside).forEach(closeSync)
    filters.forEach(closeSync)
  }
}
