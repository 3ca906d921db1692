/**
 * A parked process: one parked process, already in its own network namespace and control group, waiting for a call.
 *
 * Guarantees: a parked process is used once; it becomes bubblewrap by `exec` when a call takes it, so what was prepared
 * holds for the sandbox; it dies with the launcher. It holds nothing of any call.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { closeSync, fchownSync } from "node:fs"
import type { Readable, Writable } from "node:stream"
import { makePipe } from "../../../linux/syscalls.ts"
import type { Identity } from "../../layers/overlay.ts"
import type { Group, Groups } from "../../process/cgroup.ts"
import { createNetwork, type NetworkNamespace } from "../../network/netns.ts"
import type { StreamRole } from "./protocol.ts"

/** Descriptors of the parked shell; the same numbers stay with bubblewrap. A shell can name those up to 9. */
export const descriptor = {
  /** 3 and 4 are the program's own where it asked for them */
  toTool: 3,
  fromTool: 4,
  stdin: 5,
  arguments: 6,
  status: 7,
  block: 8,
  filter: 9,
} as const

export interface ParkedProcess {
  readonly process: ChildProcess
  readonly pid: number
  readonly script: Writable
  /** our descriptors of the host's ends of the program's streams, until the host has them */
  readonly streams: Readonly<Record<StreamRole, number>>
  /** The host has opened what it wants: what is kept here would keep its program's input from ending. */
  closeStreams(): void
  readonly arguments: Writable
  readonly status: Readable
  readonly block: Writable
  readonly filter: Writable
  readonly network: NetworkNamespace
  readonly group: Group | undefined
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  dispose(): void
}

interface ParkOptions {
  readonly name: string
  readonly groups: Groups
  readonly homeNetwork: number
  readonly identity: Identity | undefined
}

interface Stream {
  readonly inside: number
  readonly outside: number
}
const roles = ["stdin", "stdout", "stderr", "toTool", "fromTool"] as const satisfies readonly StreamRole[]

/**
 * One of the tool's streams as a real pipe: unlike the socket pairs that Node makes, it can be opened again as
 * /dev/stdin, /dev/stdout or /dev/stderr, which it is owned by the sandbox's user for.
 */
const openStream = (toolReads: boolean, identity: Identity | undefined): Stream => {
  const { read, write } = makePipe()
  if (identity !== undefined) fchownSync(read, identity.uid, identity.gid)
  return toolReads ? { inside: read, outside: write } : { inside: write, outside: read }
}

export const parkProcess = async (options: ParkOptions): Promise<ParkedProcess> => {
  const group = options.groups.version === "none" ? undefined : options.groups.create(options.name)
  const opened = new Map<StreamRole, Stream>()
  let held = true
  const closeStreams = (): void => {
    if (held) for (const { outside } of opened.values()) closeSync(outside)
    held = false
  }
  try {
    for (const role of roles) opened.set(role, openStream(role === "stdin" || role === "toTool", options.identity))
    const inside = (role: StreamRole): number => (opened.get(role) as Stream).inside
    const { child, network } = createNetwork(options.homeNetwork, (made) => ({
      network: made,
      child: spawn("/bin/sh", ["-s"], {
        cwd: "/",
        env: {},
        stdio: [
          "pipe",
          inside("stdout"),
          inside("stderr"),
          inside("toTool"),
          inside("fromTool"),
          inside("stdin"),
          "pipe",
          "pipe",
          "pipe",
          "pipe",
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
    const parkedProcess: ParkedProcess = {
      process: child,
      pid: child.pid,
      script: pipe(0) as Writable,
      streams: Object.fromEntries(
        Array.from(opened, ([role, { outside }]) => [role, outside]),
      ) as ParkedProcess["streams"],
      closeStreams,
      arguments: pipe(descriptor.arguments) as Writable,
      status: pipe(descriptor.status) as Readable,
      block: pipe(descriptor.block) as Writable,
      filter: pipe(descriptor.filter) as Writable,
      network,
      group,
      exited,
      dispose() {
        if (disposed) return
        disposed = true
        if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL")
        for (const stream of child.stdio) stream?.destroy()
        closeStreams()
        network.close()
        void exited.catch(() => undefined).then(() => group?.remove())
      },
    }
    try {
      await group?.join(child.pid)
    } catch (error) {
      parkedProcess.dispose()
      throw error
    }
    return parkedProcess
  } catch (error) {
    group?.remove()
    closeStreams()
    throw error
  } finally {
    for (const { inside } of opened.values()) closeSync(inside)
  }
}
