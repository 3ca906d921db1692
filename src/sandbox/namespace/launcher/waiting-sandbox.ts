/**
 * A sandbox that waits for its job: bubblewrap has made all of it, and a process inside reads what to become.
 *
 * Guarantees: namespaces, root, masks, scratch, limits of the shape and the system-call filter are in force before it is
 * answered; it holds nothing of any call and is given one job; what it holds is let go of once, with it. Its first
 * process is held by a handle from before anything ran in it.
 * Where the shape names a program that waits by itself, that is started at once: nobody serves its network yet, it has no
 * variable but those that every call has, and no folder that it could write to. Whatever it says at the door decides
 * about nothing but whether the next ones are made with it.
 * Assumes: the parked process is in its control group already.
 */
import { closeSync, constants, openSync, readSync } from "node:fs"
import { finished } from "node:stream/promises"
import { MNT_DETACH, MS, mount, umount } from "../../../linux/mounts.ts"
import type { SandboxShape, Waits } from "../../backend.ts"
import { writeFiles } from "../../layers/call-mounts.ts"
import type { EmptyMounts } from "../../layers/empty-mounts.ts"
import { openEmptyMounts } from "../../layers/empty-mounts.ts"
import { pidfdKill, pidfdOpen, prlimit, RLIMIT } from "../../../linux/processes.ts"
import { encodeJob, type WireJob } from "../../process/job-wire.ts"
import { type TreeEnd, treeGone } from "../../process/tree.ts"
import { bwrapArguments, shellWord } from "./bwrap-arguments.ts"
import { READY } from "./limits.ts"
import { descriptor, type ParkedProcess } from "./parked-process.ts"
import type { OfferedProcess } from "./parked-processes.ts"
import type { Premises } from "./premises.ts"
import { coverProc } from "./proc-cover.ts"
import { limitsOf } from "./wire-limits.ts"

export const bwrapPath = "/usr/bin/bwrap"
/** What is read of the last words of one that could not be made. */
const LAST_WORDS = 2000

export class SandboxNotMade extends Error {}

/** bubblewrap's own account of its sandbox. */
interface Status {
  /** number of the namespace's first process */
  childPid: number | undefined
  /** of the program; bubblewrap tells it only of one that it got to start */
  exitCode: number | undefined
}

/** A program that was started before there was a call. */
interface Begun {
  /** Before the call's layers are laid: the folders that are the call's own are its own from now on. */
  uncover(): void
  /** What the call brings, once. */
  tell(call: Uint8Array): void
  /** why it is of no more use than one that is started with its call, as far as that is known */
  spoiled(): string | undefined
}

export interface WaitingSandbox {
  readonly offered: OfferedProcess
  readonly mounts: EmptyMounts
  readonly status: Readonly<Status>
  readonly first: number
  /** what the process inside says: it became the program, or why it could not */
  readonly became: Promise<{ readonly failed: string } | "program">
  give(job: WireJob): void
  /** its program waits already, and gets no job; absent: it is given one */
  readonly begun?: Begun
  /** of a job with a filter: the number that its listener has there; undefined: it did not come to that */
  readonly listener: Promise<number | undefined>
  /** It is listened to: the job goes on. */
  goOn(): void
  /** still there */
  alive(): boolean
  /** Its first process, and with it every other. */
  killFirst(): void
  /** Once its outermost process has ended: is every other gone, too? Asked again, the same answer. */
  treeEnd(): Promise<TreeEnd>
  /** Its processes end, and what they had goes; one that was not seen to end keeps its user, and nobody else is it. */
  end(): void
  /** That, and its mounts. */
  dispose(): void
}

interface MakeOptions {
  readonly offered: OfferedProcess
  readonly shape: SandboxShape
  /** the view of the root that it is shown */
  readonly root: string
  /** a path that is free */
  readonly at: string
  readonly premises: Pick<Premises, "layers" | "cover" | "filters" | "waiter">
  /** start the program that the shape names, and let it wait */
  readonly begun?: boolean
}

/** JSON documents, one a line. */
const readStatus = (parkedProcess: ParkedProcess, onChild: (pid: number) => void, onExit: () => void): Status => {
  const status: Status = { childPid: undefined, exitCode: undefined }
  parkedProcess.watchStatus((text) => {
    const child = /"child-pid": (\d+)\b[^}]*\}/.exec(text)?.[1]
    if (child !== undefined && status.childPid === undefined) {
      status.childPid = Number(child)
      onChild(status.childPid)
    }
    const exit = /"exit-code": (\d+)/.exec(text)?.[1]
    if (exit !== undefined && status.exitCode === undefined) {
      status.exitCode = Number(exit)
      onExit()
    }
  })
  return status
}

const LISTENER = /^R\nO (\d{1,6})\n/

/** What a program that waits says: that it does, and perhaps why that is of no use to its call. */
const WAITS = /^R\nW\n(?:U ([^\n]*)\n)?/

/** The process inside says that it is ready, and later at most why it did not become the program. */
const readDoor = ({ door }: ParkedProcess) => {
  const ready = Promise.withResolvers<void>()
  const waits = Promise.withResolvers<void>()
  const became = Promise.withResolvers<{ readonly failed: string } | "program">()
  const listener = Promise.withResolvers<number | undefined>()
  let said = ""
  door.setEncoding("utf8")
  door.on("data", (text: string) => {
    said = (said + text).slice(0, LAST_WORDS)
    // A program that waits may keep the door: nobody else waits while it is heard out.
    if (said.length === LAST_WORDS) door.pause()
    if (said.startsWith("R\n")) ready.resolve()
    if (WAITS.test(said)) waits.resolve()
    const told = LISTENER.exec(said)?.[1]
    if (told !== undefined) listener.resolve(Number(told))
  })
  void finished(door, { writable: false })
    .catch(() => undefined)
    .then(() => {
      listener.resolve(undefined)
      const words = said.replace(LISTENER, "R\n").slice(2).trim()
      became.resolve(words === "" ? "program" : { failed: words })
    })
  return {
    ready: ready.promise,
    waits: waits.promise,
    became: became.promise,
    listener: listener.promise,
    spoiled: () => WAITS.exec(said)?.[1],
  }
}

/** Until a call comes there is nowhere to write to: the folders that are the call's own are covered. */
const coverScratch = ({ tmp, home, shm }: EmptyMounts, { folder }: Premises["cover"]): (() => void) => {
  const covered = [tmp, home, shm]
  for (const path of covered) mount(folder, path, null, MS.BIND, null)
  return () => {
    for (const path of covered) umount(path, MNT_DETACH)
  }
}

/** The job of a program that waits for its call by itself. */
const waitingJob = ({ shape }: MakeOptions, { argv, env, limits }: Waits, grouped: boolean): WireJob => ({
  program: argv[0] ?? shape.executables.program,
  folder: "/workspace",
  filter: new Uint8Array(),
  argv: [...argv, String(descriptor.door)],
  env: { ...env, PWD: "/workspace" },
  limits: limitsOf(shape, limits, grouped),
  tty: false,
  privatePipes: shape.privatePipes,
  waits: true,
})

const startScript = (shape: SandboxShape, grouped: boolean, { text, calls }: Premises["waiter"]): string => {
  const options = [
    "--args",
    descriptor.arguments,
    "--json-status-fd",
    descriptor.status,
    "--seccomp",
    descriptor.filter,
    ...(grouped ? [] : ["--block-fd", descriptor.block]),
  ]
  // The shell reads this script from descriptor 0, so that one changes in this very last command only.
  const redirections = [
    `0<&${descriptor.stdin} ${descriptor.stdin}<&-`,
    ...(shape.privatePipes ? [] : [`${descriptor.toTool}<&- ${descriptor.fromTool}<&-`]),
    ...(grouped ? [`${descriptor.block}<&-`] : []),
  ]
  // By its descriptor, which nobody inside has later: the view of the root shows no interpreter that is not listed.
  const inside = [
    `/proc/self/fd/${descriptor.interpreter}`,
    "-e",
    text,
    descriptor.door,
    descriptor.interpreter,
    ...calls,
  ]
  return `exec ${bwrapPath} ${options.join(" ")} -- ${inside.map((word) => shellWord(String(word))).join(" ")} ${redirections.join(" ")}\n`
}

/** bubblewrap writes to the program's stderr. */
const lastWords = ({ streams }: ParkedProcess): string => {
  try {
    const fd = openSync(`/proc/self/fd/${streams.stderr}`, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const bytes = Buffer.alloc(LAST_WORDS)
      return bytes.subarray(0, readSync(fd, bytes)).toString("utf8").trim()
    } finally {
      closeSync(fd)
    }
  } catch {
    return ""
  }
}

export const makeWaitingSandbox = async (options: MakeOptions): Promise<WaitingSandbox> => {
  const { offered, shape, root, premises } = options
  const { parkedProcess, lease } = offered
  const { limits } = shape
  const grouped = parkedProcess.group !== undefined
  const { layers: place, cover, filters, waiter } = premises
  const empty = { at: options.at, place, identity: lease?.identity, shared: true }
  const mounts = await openEmptyMounts(empty).catch((error: unknown) => {
    offered[Symbol.dispose]()
    throw error
  })
  let first: number | undefined
  let status: Status | undefined
  let treeEnded: Promise<TreeEnd> | undefined
  const treeEnd = (): Promise<TreeEnd> => (treeEnded ??= treeGone(parkedProcess, status?.childPid))
  let closed = false
  const killFirst = (): void => {
    if (first !== undefined && !closed) pidfdKill(first)
  }
  let ending = false
  const end = async (): Promise<void> => {
    if (ending) return
    ending = true
    parkedProcess.kill()
    killFirst()
    await parkedProcess.exited.catch(() => undefined)
    const { gone } = await treeEnd()
    closed = true
    if (first !== undefined) closeSync(first)
    parkedProcess.dispose()
    if (gone) lease?.release()
  }
  const endQuietly = (): void => void end().catch(() => undefined)
  let disposed = false
  const dispose = (): void => {
    if (disposed) return
    disposed = true
    endQuietly()
    mounts.dispose()
  }
  try {
    parkedProcess.group?.limit({
      memoryBytes: limits.memoryBytes,
      pids: limits.pids + 2,
      ...(limits.cpus === undefined ? {} : { cpus: limits.cpus }),
    })
    const inHand = Promise.withResolvers<void>()
    inHand.promise.catch(() => undefined)
    const onChild = (pid: number): void => {
      try {
        first = pidfdOpen(pid)
        if (!grouped) {
          const processes = BigInt(limits.pids + 1)
          prlimit(pid, RLIMIT.NPROC, processes, processes)
          parkedProcess.block.end("x")
        }
        inHand.resolve()
      } catch (error) {
        inHand.reject(new SandboxNotMade(`it could not be taken in hand: ${(error as Error).message}`))
        parkedProcess.kill()
      }
    }
    // The program is over, and nothing else in there is to outlive it: bubblewrap's own end takes as long again.
    const told = readStatus(parkedProcess, onChild, killFirst)
    status = told
    const door = readDoor(parkedProcess)
    const paths = { ...mounts, root }
    parkedProcess.script.end(startScript(shape, grouped, waiter))
    parkedProcess.filter.end(shape.executables.children ? filters.withChildren : filters.withoutChildren)
    parkedProcess.arguments.end(`${bwrapArguments(paths).join("\0")}\0`)
    const ended = await Promise.race([
      Promise.all([inHand.promise, door.ready]).then(() => undefined),
      parkedProcess.exited,
    ])
    if (ended !== undefined) {
      const how = ended.signal === null ? `exit ${ended.code}` : `signal ${ended.signal}`
      throw new SandboxNotMade(`it did not start (${how}): ${lastWords(parkedProcess)}`)
    }
    try {
      if (first === undefined) throw new Error("it has no first process")
      coverProc(first, cover)
    } catch (error) {
      throw new SandboxNotMade(`its /proc could not be covered: ${(error as Error).message}`)
    }
    const { waits } = shape
    let begun: Begun | undefined
    if (options.begun === true && waits !== undefined) {
      const uncover = coverScratch(mounts, cover)
      writeFiles(mounts.files, waits.files)
      parkedProcess.door.write(encodeJob(waitingJob(options, waits, grouped)))
      const late = setTimeout(() => parkedProcess.kill(), READY.waitsMs)
      const end = await Promise.race([door.waits.then(() => undefined), parkedProcess.exited])
      clearTimeout(late)
      if (end !== undefined) throw new SandboxNotMade("its program did not wait for a call")
      const spoiled = (): string | undefined => {
        const used = parkedProcess.group?.cpuMs() ?? 0
        return used > READY.waitsCpuMs ? `it used ${Math.round(used)} ms of processor time` : door.spoiled()
      }
      begun = { uncover, tell: (call) => void parkedProcess.door.end(call), spoiled }
    }
    return {
      offered,
      mounts,
      status: told,
      first: told.childPid as number,
      // One that waited was the program before; what it says afterwards is no word of ours.
      became: begun === undefined ? door.became : Promise.resolve("program"),
      ...(begun === undefined ? {} : { begun }),
      give: (job) =>
        void (job.filter.length === 0
          ? parkedProcess.door.end(encodeJob(job))
          : parkedProcess.door.write(encodeJob(job))),
      listener: door.listener,
      goOn: () => void parkedProcess.door.end("G"),
      alive: () => parkedProcess.alive(),
      killFirst,
      treeEnd,
      end: endQuietly,
      dispose,
    }
  } catch (error) {
    dispose()
    throw error
  }
}
