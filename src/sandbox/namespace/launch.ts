/**
 * Start a launcher and talk to it.
 *
 * Guarantees: the launcher dies with this process, by the kernel's hand; one that hangs is ended, and so is what it was
 * asked; a launcher that cannot be started names the real cause and the fix, and leaves nothing held. Nothing of this
 * process's environment reaches it; all it may be told is where compiled code is kept, and only inside the data folder,
 * which nobody else can write.
 */
import { type ChildProcess, spawn } from "node:child_process"
import type { Socket as UdpSocket } from "node:dgram"
import { accessSync, constants, readdirSync } from "node:fs"
import module from "node:module"
import type { Server, Socket } from "node:net"
import { dirname, sep } from "node:path"
import { fileURLToPath } from "node:url"
import { openLayerStore } from "../layers/store.ts"
import { holdUsers } from "../identities.ts"
import { removeGroups } from "../process/cgroup.ts"
import { Conversation, LauncherEnded, LauncherGone } from "./conversation.ts"
import { LAUNCHER } from "./launcher/limits.ts"
import type { ListenerRole } from "../network/listeners.ts"
import { turnAwayUnserved } from "../network/unserved.ts"
import { mountBase } from "./mount-base.ts"
import { onlyChildOf, processorTime, watchProgress } from "./progress.ts"
import { makeRoomForGroups } from "../process/own-group.ts"
import type { Answer, LauncherFacts, LauncherMessage, LauncherOptions, Refusal, Request } from "./launcher/protocol.ts"
import { interpreterPath } from "./launcher/premises.ts"
import { bwrapPath } from "./launcher/waiting-sandbox.ts"
import { killedTooSoon, launcherEnded, namespaceTrouble } from "./trouble.ts"

export type Handle = Server | UdpSocket
export type Handles = Map<ListenerRole, Handle>

const needed: readonly { readonly path: string; readonly from: string }[] = [
  { path: bwrapPath, from: "bubblewrap" },
  { path: "/usr/bin/unshare", from: "util-linux" },
  { path: "/usr/bin/setpriv", from: "util-linux" },
  { path: interpreterPath, from: "perl-base" },
]

export interface Launched {
  readonly facts: LauncherFacts
  /** of the process that was started, which waits for the launcher and ends with it */
  readonly pid: number
  /** of the launcher itself, as this process sees it */
  readonly ownPid: number
  /** `started` is called when a run has begun, before its answer */
  ask(request: Request, started?: () => void): Promise<Answer>
  /** what was handed over for a parked process, taken once */
  handles(parkedProcess: number): Handles
  /** called at once when the launcher ends, before its groups are removed */
  whenEnded(callback: () => void): void
  /** for one who waits for an answer: `stuck` is called once the launcher no longer gets on */
  watch(stuck: () => void): { stop(): void }
  close(): Promise<void>
}

/** Where this process keeps compiled code, if that is in the data folder. */
const compiledIn = (data: string): Readonly<Record<string, string>> => {
  const kept = module.getCompileCacheDir()
  return kept !== undefined && data !== "" && kept.startsWith(`${data}${sep}`)
    ? { NODE_COMPILE_CACHE: dirname(kept) }
    : {}
}

/** `data`: the host's data folder. `signsEveryMs`: how often a launcher with work is asked whether it lives. */
export const launch = async (data: string, signsEveryMs?: number): Promise<Launched | Refusal> => {
  for (const { path, from } of needed) {
    try {
      accessSync(path, constants.X_OK)
    } catch {
      return {
        ok: false,
        control: "programs",
        message: `${path} is not installed`,
        fix: `sudo apt-get install ${from}`,
      }
    }
  }
  const uid = process.getuid?.() ?? 0
  makeRoomForGroups(uid)
  const base = mountBase(data, uid)
  if (!base.ok) return { ok: false, control: "launcher", message: base.message, fix: base.fix }
  const store = openLayerStore(data)
  const users = uid === 0 ? holdUsers() : undefined
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js"
  const program = fileURLToPath(new URL(`./launcher/launcher.${extension}`, import.meta.url))
  const listedAt = Date.now()
  const livePids = readdirSync("/proc").map(Number).filter(Number.isInteger)
  const options: LauncherOptions = {
    hostPid: process.pid,
    hostUid: uid,
    base: base.path,
    ...(users === undefined ? {} : { users: { first: users.first, count: users.count } }),
    layers: store.place,
    livePids,
    listedAt,
  }
  const namespaces = [
    "--mount",
    "--pid",
    "--net",
    "--fork",
    "--kill-child=KILL",
    "--mount-proc",
    "--propagation",
    "slave",
    ...(uid === 0 ? [] : ["--user", "--map-root-user"]),
  ]
  const start = (): ChildProcess =>
    spawn(
      "/usr/bin/setpriv",
      ["--pdeathsig", "KILL", "/usr/bin/unshare", ...namespaces, process.execPath, "--no-warnings", program, data],
      {
        stdio: ["ignore", "ignore", "pipe", "ipc"],
        serialization: "advanced",
        env: compiledIn(data),
        cwd: "/",
        // In a session of its own: keys at the host's terminal are for the host, which ends its calls in order.
        detached: true,
      },
    )
  let child: ChildProcess
  try {
    child = start()
  } catch (error) {
    users?.release()
    await store.dispose()
    throw error
  }
  // Not as an argument: it grows with the machine's processes, and an argument must not.
  child.send(options, () => undefined)
  let stderr = ""
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(-4000)
  })
  const handles = new Map<number, Handles>()
  const drop = (parkedProcess: number): void => {
    for (const handle of handles.get(parkedProcess)?.values() ?? []) handle.close()
    handles.delete(parkedProcess)
  }
  let groupFolders: readonly string[] = []
  let ended = false
  let hung = false
  let endedBy: NodeJS.Signals | null = null
  let onEnded: () => void = () => undefined
  // An idle host may end; a call in flight keeps it alive.
  let closing = false
  const keepAwake = (busy: boolean): void => {
    if (busy || closing) {
      child.ref()
      child.channel?.ref()
      return
    }
    child.unref()
    child.channel?.unref()
    ;(child.stderr as unknown as { unref?: () => void } | null)?.unref?.()
  }
  const watch = (stuck: () => void): { stop(): void } => {
    let watching: { stop(): void } | undefined
    const period = { everyMs: LAUNCHER.stopMs, most: LAUNCHER.stopPeriods }
    const timer = setTimeout(() => {
      watching = watchProgress(() => processorTime(child.pid ?? 0), period, stuck)
    }, LAUNCHER.watchAfterMs)
    return {
      stop() {
        clearTimeout(timer)
        watching?.stop()
      },
    }
  }
  const seen = Promise.withResolvers<void>()
  /** For one who cannot ask it any more. One that does not end by itself is ended: it would be of no use to anybody. */
  const howItEnded = async (): Promise<string> => {
    if (hung) return "the sandbox launcher hung and is gone"
    child.ref()
    const watching = watch(() => child.kill("SIGKILL"))
    await seen.promise
    watching.stop()
    return launcherEnded(endedBy, stderr)
  }
  const conversation = new Conversation({
    send: (message, sent) => void child.send(message, sent),
    howItEnded,
    whenBusy: keepAwake,
    whenSilent() {
      hung = true
      onEnded()
      child.kill("SIGKILL")
    },
    ...(signsEveryMs === undefined ? {} : { everyMs: signsEveryMs }),
  })
  const gone = new Promise<void>((resolve) => {
    const end = (signal: NodeJS.Signals | null): void => {
      if (ended) return
      ended = true
      endedBy = signal
      seen.resolve()
      onEnded()
      conversation.end(new LauncherEnded(launcherEnded(signal, stderr)))
      for (const parkedProcess of [...handles.keys()]) drop(parkedProcess)
      users?.release()
      void removeGroups(groupFolders)
        .then(() => store.dispose())
        .then(resolve)
    }
    child.once("exit", (_code, signal) => end(signal))
    child.on("error", (error) => {
      // One that was never started does not exit either; any other error shows in its end.
      if (child.pid !== undefined) return
      stderr = error.message
      end(null)
    })
  })
  const first = await new Promise<LauncherFacts | Refusal>((resolve) => {
    void gone.then(() =>
      resolve(
        endedBy === null
          ? { ok: false, control: "namespaces", ...namespaceTrouble(stderr.trim()) }
          : { ok: false, control: "launcher", ...killedTooSoon(endedBy, stderr.trim()) },
      ),
    )
    const late = watchProgress(
      () => processorTime(child.pid ?? 0),
      { everyMs: LAUNCHER.readyMs, most: LAUNCHER.readyPeriods },
      () =>
        resolve({
          ok: false,
          control: "launcher",
          message: `the sandbox launcher did not get ready, and hangs (${LAUNCHER.readyMs} ms without progress, or ${LAUNCHER.readyPeriods} times that)`,
          fix: "look for what holds the machine up (`dmesg`, load), then run it again",
        }),
    )
    void gone.then(() => late.stop())
    child.on("message", (raw, handle) => {
      const message = raw as LauncherMessage
      conversation.heard()
      switch (message.kind) {
        case "ready":
          late.stop()
          groupFolders = message.facts.groupFolders
          resolve(message.facts)
          break
        case "failed":
          resolve(message.refusal)
          break
        case "handle": {
          const own: Handles = handles.get(message.parkedProcess) ?? new Map()
          const parked = handle as unknown as Handle
          // A parked listener is no reason to stay alive; a call in flight is.
          parked.unref()
          // What runs in there by now may know the way already.
          turnAwayUnserved(parked)
          own.set(message.role, parked)
          handles.set(message.parkedProcess, own)
          break
        }
        case "gone":
          drop(message.parkedProcess)
          break
        case "started":
          conversation.started(message.id)
          break
        case "answer":
          conversation.answer(
            message.id,
            handle === undefined ? message.answer : { ok: true, connection: handle as Socket },
          )
          break
        case "broken":
          conversation.fail(message.id, new Error(message.message))
          break
      }
    })
  })
  if ("ok" in first) {
    users?.release()
    if (child.exitCode === null) child.kill("SIGKILL")
    return first
  }
  keepAwake(false)
  const pid = child.pid as number
  return {
    facts: first,
    pid,
    ownPid: onlyChildOf(pid),
    ask: async (request, started) => {
      if (ended || hung || !child.connected) throw new LauncherGone(await howItEnded())
      return conversation.ask(request, started)
    },
    handles(parkedProcess) {
      const own: Handles = handles.get(parkedProcess) ?? new Map()
      handles.delete(parkedProcess)
      return own
    },
    whenEnded(callback) {
      onEnded = callback
      if (ended) callback()
    },
    watch,
    async close() {
      if (ended) return gone
      // Nothing in a launcher needs a farewell: with it go every sandbox, mount and namespace. What is answered meanwhile
      // must not let this process end before it is gone.
      closing = true
      child.ref()
      child.kill("SIGKILL")
      await gone
    },
  }
}
