/**
 * A parked process, already in its own network namespace and control group, waiting to become a sandbox.
 *
 * Guarantees: a parked process is used once; it becomes bubblewrap by `exec`, so what was prepared holds for the sandbox;
 * it dies with the launcher. It holds nothing of any call. That it ended is heard of by the end of the stream that it
 * keeps for bubblewrap's own account, and it is reaped then.
 */
import { closeSync, fchownSync } from "node:fs"
import { Socket } from "node:net"
import type { Duplex, Writable } from "node:stream"
import { finished } from "node:stream/promises"
import { childEnded } from "../../../linux/child-ended.ts"
import { socketPair } from "../../../linux/sockets.ts"
import { spawnProgram } from "../../../linux/spawn.ts"
import { makePipe, reap, type Reaped } from "../../../linux/processes.ts"
import type { Identity } from "../../layers/overlay.ts"
import type { Group, Groups } from "../../process/cgroup.ts"
import { TREE } from "../../process/limits.ts"
import { createNetwork, type NetworkNamespace } from "../../network/netns.ts"
import type { StreamRole } from "./protocol.ts"

/** Descriptors of the parked shell; the same numbers stay with bubblewrap. A shell can name those up to 9. */
export const descriptor = {
  script: 0,
  stdout: 1,
  stderr: 2,
  /** 3 and 4 are the program's own where it asked for them */
  toTool: 3,
  fromTool: 4,
  stdin: 5,
  arguments: 6,
  status: 7,
  block: 8,
  filter: 9,
  /** above what a shell can name: they pass through it */
  interpreter: 10,
  door: 11,
} as const
const channels = ["script", "arguments", "status", "block", "filter", "door"] as const
type Channel = (typeof channels)[number]

/** What bubblewrap writes of itself: two short lines. */
const STATUS_CHARS = 4096

export interface ProcessEnd {
  readonly code: number | null
  readonly signal: number | null
}

export interface ParkedProcess {
  readonly pid: number
  readonly script: Writable
  /** our descriptors of the host's ends of the program's streams, until the host has them */
  readonly streams: Readonly<Record<StreamRole, number>>
  /** The host has opened what it wants: what is kept here would keep its program's input from ending. */
  closeStreams(): void
  readonly arguments: Writable
  /** `changed` is called with all that bubblewrap wrote of itself so far, whenever there is more */
  watchStatus(changed: (text: string) => void): void
  readonly block: Writable
  readonly filter: Writable
  /** to and from the process that waits inside, once there is one */
  readonly door: Duplex
  readonly network: NetworkNamespace
  readonly group: Group | undefined
  alive(): boolean
  kill(): void
  /** it ended, and all that it wrote of itself was read */
  readonly exited: Promise<ProcessEnd>
  dispose(): void
}

interface ParkOptions {
  readonly name: string
  readonly groups: Groups
  readonly homeNetwork: number
  readonly identity: Identity | undefined
  /** descriptor of the interpreter that waits inside */
  readonly interpreter: number
}

interface Stream {
  readonly inside: number
  readonly outside: number
}
const roles = ["stdin", "stdout", "stderr", "toTool", "fromTool"] as const satisfies readonly StreamRole[]

/**
 * One of the tool's streams as a real pipe: unlike a pair of sockets it can be opened again as /dev/stdin, /dev/stdout or
 * /dev/stderr, which it is owned by the sandbox's user for.
 */
const openStream = (toolReads: boolean, identity: Identity | undefined): Stream => {
  const { read, write } = makePipe()
  if (identity !== undefined) fchownSync(read, identity.uid, identity.gid)
  return toolReads ? { inside: read, outside: write } : { inside: write, outside: read }
}
const openChannel = (): Stream => {
  const [outside, inside] = socketPair()
  return { inside, outside }
}

const commandFor = (identity: Identity | undefined): [string, ...string[]] => {
  const shell = ["/bin/sh", "-s"] as const
  if (identity === undefined) return [...shell]
  const { uid, gid } = identity
  return ["/usr/bin/setpriv", `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups", "--", ...shell]
}

/** Its descriptors close a moment before it can be reaped. */
const reaped = async (pid: number): Promise<Reaped> => {
  for (;;) {
    const next = childEnded(TREE.lookMs)
    const end = reap(pid)
    if (end !== undefined) return end
    await next
  }
}
const endOf = ({ status }: Reaped): ProcessEnd => {
  const signal = (status ?? 0) & 0x7f
  if (status === undefined) return { code: null, signal: null }
  return signal === 0 ? { code: (status >> 8) & 0xff, signal: null } : { code: null, signal }
}

export const parkProcess = async (options: ParkOptions): Promise<ParkedProcess> => {
  const group = options.groups.version === "none" ? undefined : options.groups.create(options.name)
  const opened = new Map<StreamRole | Channel, Stream>()
  const outside = (role: StreamRole | Channel): number => (opened.get(role) as Stream).outside
  const sockets = new Map<Channel, Socket>()
  let held = true
  const closeStreams = (): void => {
    if (held) for (const role of roles) if (opened.has(role)) closeSync(outside(role))
    held = false
  }
  const closeChannels = (): void => {
    for (const channel of channels) {
      if (sockets.has(channel)) sockets.get(channel)?.destroy()
      else if (opened.has(channel)) closeSync(outside(channel))
    }
  }
  try {
    for (const role of roles) opened.set(role, openStream(role === "stdin" || role === "toTool", options.identity))
    for (const channel of channels) opened.set(channel, openChannel())
    const inside = Object.keys(descriptor).map((name) =>
      name === "interpreter" ? options.interpreter : (opened.get(name as StreamRole | Channel) as Stream).inside,
    )
    const { pid, network } = createNetwork(options.homeNetwork, (made) => {
      try {
        return { network: made, pid: spawnProgram(commandFor(options.identity), inside) }
      } catch (error) {
        made.close()
        throw error
      }
    })
    for (const channel of channels) {
      const socket = new Socket({ fd: outside(channel), readable: true, writable: true })
      // A sandbox that ends early closes its pipes; writing to them is then of no consequence.
      socket.on("error", () => undefined)
      sockets.set(channel, socket)
    }
    const channel = (name: Channel): Socket => sockets.get(name) as Socket
    let text = ""
    let changed: (text: string) => void = () => undefined
    const status = channel("status").setEncoding("utf8")
    status.on("data", (chunk: string) => {
      text = (text + chunk).slice(0, STATUS_CHARS)
      changed(text)
    })
    let ended = false
    const exited = finished(status, { writable: false })
      .catch(() => undefined)
      .then(async () => {
        const end = endOf(await reaped(pid))
        ended = true
        return end
      })
    const kill = (): void => {
      if (!ended) process.kill(pid, "SIGKILL")
    }
    let disposed = false
    const parkedProcess: ParkedProcess = {
      pid,
      script: channel("script"),
      streams: Object.fromEntries(roles.map((role) => [role, outside(role)])) as ParkedProcess["streams"],
      closeStreams,
      arguments: channel("arguments"),
      watchStatus(listener) {
        changed = listener
        if (text !== "") listener(text)
      },
      block: channel("block"),
      filter: channel("filter"),
      door: channel("door"),
      network,
      group,
      alive: () => !ended,
      kill,
      exited,
      dispose() {
        if (disposed) return
        disposed = true
        kill()
        closeStreams()
        network.close()
        void exited.then(() => {
          closeChannels()
          group?.remove()
        })
      },
    }
    try {
      await group?.join(pid)
    } catch (error) {
      parkedProcess.dispose()
      throw error
    }
    return parkedProcess
  } catch (error) {
    group?.remove()
    closeStreams()
    if (sockets.size === 0) closeChannels()
    throw error
  } finally {
    for (const { inside } of opened.values()) closeSync(inside)
  }
}
