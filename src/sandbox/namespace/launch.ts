/**
 * Start a launcher and talk to it.
 *
 * Guarantees: the launcher dies with this process, by the kernel's hand; a launcher that cannot be started names
 * the real cause and the fix. Nothing of this process's environment reaches it; all it may be told is where compiled
 * code is kept, and only inside the data folder, which nobody else can write.
 */
import { type ChildProcess, spawn } from "node:child_process"
import type { Socket as UdpSocket } from "node:dgram"
import { accessSync, constants, existsSync, readdirSync, readFileSync } from "node:fs"
import module from "node:module"
import type { Server } from "node:net"
import { dirname, sep } from "node:path"
import { fileURLToPath } from "node:url"
import { openLayerStore } from "../layers/store.ts"
import { holdUsers } from "../identities.ts"
import { removeGroups } from "./cgroup.ts"
import { mountBase } from "./mount-base.ts"
import type {
  Answer,
  LauncherFacts,
  LauncherMessage,
  LauncherOptions,
  ListenerRole,
  Refusal,
  Request,
} from "./protocol.ts"
import { bwrapPath } from "./sealed-run.ts"

export type Handle = Server | UdpSocket

/** The launcher was gone before it could be asked: nothing of the request was done. */
export class LauncherGone extends Error {}

/** Node takes a second to start on a slow machine; one that needs longer than this hangs. */
const readyWithinMs = 60_000

const readSetting = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8").trim()
  } catch {
    return undefined
  }
}

/** Why namespaces cannot be made here, from what the machine says of itself. */
export const namespaceTrouble = (stderr: string): { message: string; fix: string } => {
  if (readSetting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") === "1") {
    return {
      message:
        "AppArmor on this machine forbids unprivileged user namespaces (kernel.apparmor_restrict_unprivileged_userns=1)",
      fix: "run caisson as root, or add an AppArmor profile for its node with `userns,`, or `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`",
    }
  }
  if (readSetting("/proc/sys/kernel/unprivileged_userns_clone") === "0") {
    return {
      message: "this kernel forbids unprivileged user namespaces (kernel.unprivileged_userns_clone=0)",
      fix: "run caisson as root, or `sudo sysctl kernel.unprivileged_userns_clone=1`",
    }
  }
  if (readSetting("/proc/sys/user/max_user_namespaces") === "0") {
    return {
      message: "this machine allows no user namespaces (user.max_user_namespaces=0)",
      fix: "`sudo sysctl user.max_user_namespaces=15000`",
    }
  }
  if (existsSync("/.dockerenv") || existsSync("/run/.containerenv")) {
    return {
      message: "this is a container whose engine forbids new namespaces or mounts",
      fix: "start it with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined --cap-add SYS_ADMIN`, or use `--backend docker` with the engine's socket",
    }
  }
  return {
    message: `namespaces could not be made here${stderr === "" ? "" : `: ${stderr}`}`,
    fix: "run as root, or on a kernel with user namespaces, overlayfs and seccomp",
  }
}

/** Somebody's signal says nothing about what this machine can do. */
const killedTooSoon = (signal: string): { message: string; fix: string } => ({
  message: `the sandbox launcher was killed (${signal}) before it was ready`,
  fix: "call again; if it happens again, look in the kernel's log for the out-of-memory killer (`dmesg`)",
})

const needed: readonly { readonly path: string; readonly from: string }[] = [
  { path: bwrapPath, from: "bubblewrap" },
  { path: "/usr/bin/unshare", from: "util-linux" },
  { path: "/usr/bin/setpriv", from: "util-linux" },
]

export interface Launched {
  readonly facts: LauncherFacts
  readonly pid: number
  ask(request: Request): Promise<Answer>
  /** the listeners handed over for a seat, taken once */
  listeners(seat: number): Map<ListenerRole, Handle>
  /** called at once when the launcher ends, before its groups are removed */
  whenEnded(callback: () => void): void
  close(): Promise<void>
}

/** Where this process keeps compiled code, if that is in the data folder. */
const compiledIn = (data: string): Readonly<Record<string, string>> => {
  const kept = module.getCompileCacheDir()
  return kept !== undefined && data !== "" && kept.startsWith(`${data}${sep}`)
    ? { NODE_COMPILE_CACHE: dirname(kept) }
    : {}
}

/** `data`: the host's data folder. */
export const launch = async (data: string): Promise<Launched | Refusal> => {
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
  const base = mountBase(data, uid)
  if (!base.ok) return { ok: false, control: "launcher", message: base.message, fix: base.fix }
  const store = openLayerStore(data)
  const users = uid === 0 ? holdUsers() : undefined
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js"
  const program = fileURLToPath(new URL(`./launcher.${extension}`, import.meta.url))
  const listedAt = Date.now()
  const livePids = readdirSync("/proc").map(Number).filter(Number.isInteger)
  const options: LauncherOptions = {
    hostPid: process.pid,
    hostUid: uid,
    base: base.path,
    ...(users === undefined ? {} : { users: { first: users.first, count: users.count } }),
    data,
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
  const child: ChildProcess = spawn(
    "/usr/bin/setpriv",
    [
      "--pdeathsig",
      "KILL",
      "/usr/bin/unshare",
      ...namespaces,
      process.execPath,
      "--no-warnings",
      program,
      JSON.stringify(options),
    ],
    { stdio: ["ignore", "ignore", "pipe", "ipc"], serialization: "advanced", env: compiledIn(data), cwd: "/" },
  )
  let stderr = ""
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(-4000)
  })
  const pending = new Map<number, { resolve: (answer: Answer) => void; reject: (error: Error) => void }>()
  const handles = new Map<number, Map<ListenerRole, Handle>>()
  let serial = 0
  let groupFolders: readonly string[] = []
  let ended = false
  let endedBy: NodeJS.Signals | null = null
  let onEnded: () => void = () => undefined
  const gone = new Promise<void>((resolve) => {
    child.once("exit", (_code, signal) => {
      ended = true
      endedBy = signal
      onEnded()
      for (const { reject } of pending.values())
        reject(new Error(`the sandbox launcher ended: ${stderr.trim() || "no reason given"}`))
      pending.clear()
      for (const own of handles.values()) for (const listener of own.values()) listener.close()
      handles.clear()
      users?.release()
      void removeGroups(groupFolders)
        .then(() => store.dispose())
        .then(resolve)
    })
  })
  const first = await new Promise<LauncherFacts | Refusal>((resolve) => {
    child.once("error", (error) => resolve({ ok: false, control: "namespaces", ...namespaceTrouble(error.message) }))
    void gone.then(() =>
      resolve(
        endedBy === null
          ? { ok: false, control: "namespaces", ...namespaceTrouble(stderr.trim()) }
          : { ok: false, control: "launcher", ...killedTooSoon(endedBy) },
      ),
    )
    const late = setTimeout(
      () =>
        resolve({
          ok: false,
          control: "launcher",
          message: `the sandbox launcher did not get ready within ${readyWithinMs} ms`,
          fix: "look for what holds the machine up (`dmesg`, load), then run it again",
        }),
      readyWithinMs,
    )
    void gone.then(() => clearTimeout(late))
    child.on("message", (raw, handle) => {
      const message = raw as LauncherMessage
      switch (message.kind) {
        case "ready":
          clearTimeout(late)
          groupFolders = message.facts.groupFolders
          resolve(message.facts)
          break
        case "failed":
          resolve(message.refusal)
          break
        case "listener": {
          const own = handles.get(message.seat) ?? new Map<ListenerRole, Handle>()
          const listener = handle as unknown as Handle
          // A parked listener is no reason to stay alive; a call in flight is.
          listener.unref()
          own.set(message.role, listener)
          handles.set(message.seat, own)
          break
        }
        case "answer":
          pending.get(message.id)?.resolve(message.answer)
          pending.delete(message.id)
          break
        case "broken":
          pending.get(message.id)?.reject(new Error(message.message))
          pending.delete(message.id)
          break
      }
    })
  })
  if ("ok" in first) {
    users?.release()
    if (child.exitCode === null) child.kill("SIGKILL")
    return first
  }
  // An idle host may end; a call in flight keeps it alive.
  const rest = (): void => {
    if (pending.size > 0) return
    child.unref()
    child.channel?.unref()
    ;(child.stderr as unknown as { unref?: () => void } | null)?.unref?.()
  }
  rest()
  return {
    facts: first,
    pid: child.pid as number,
    ask: (request) =>
      new Promise<Answer>((resolve, reject) => {
        if (ended || !child.connected)
          return reject(new LauncherGone(`the sandbox launcher is gone: ${stderr.trim() || "it was killed"}`))
        serial += 1
        const id = serial
        child.ref()
        child.channel?.ref()
        const settle =
          <T>(finish: (value: T) => void) =>
          (value: T): void => {
            queueMicrotask(rest)
            finish(value)
          }
        pending.set(id, { resolve: settle(resolve), reject: settle(reject) })
        child.send({ ...request, id })
      }),
    listeners(seat) {
      const own = handles.get(seat) ?? new Map<ListenerRole, Handle>()
      handles.delete(seat)
      return own
    },
    whenEnded(callback) {
      onEnded = callback
      if (ended) callback()
    },
    async close() {
      if (ended) return gone
      // Nothing in a launcher needs a farewell: with it go every sandbox, mount and namespace.
      child.ref()
      child.kill("SIGKILL")
      await gone
    },
  }
}
