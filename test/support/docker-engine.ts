/**
 * An engine for the tests that need a real one.
 *
 * Guarantees: an engine that is already there wins and is never stopped or restarted; else, as root on Debian or
 * Ubuntu, the packages are installed and a private engine runs on its own data root and socket, shared by every
 * test process and stopped by pid when the last one lets go. Where none can be had the reason is told, so that a
 * test can skip loudly.
 * Does not: pull images or touch containers that are not labelled as ours.
 */
import { spawn, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { discoverEngine } from "../../src/sandbox/docker/engine/discovery.ts"
import { openEngine } from "../../src/sandbox/docker/engine/engine.ts"

export interface TestEngine extends AsyncDisposable {
  readonly ok: true
  readonly socket: string
  /** started here: the test may stop, freeze or kill it */
  readonly owned: boolean
}
export type EngineOrReason = TestEngine | { readonly ok: false; readonly reason: string }

const PACKAGES = ["docker.io", "iptables", "ca-certificates"]
/** Debian's package and Docker's own put it in different folders. */
export const daemonPath = (): string | undefined =>
  ["/usr/sbin/dockerd", "/usr/bin/dockerd"].find((path) => existsSync(path))
const READY_WITHIN_MS = 60_000

const answers = async (socket: string): Promise<boolean> => {
  if (!existsSync(socket)) return false
  const engine = openEngine({ origin: "given", socketPath: socket })
  return (await engine.ping(2_000)).ok
}

/** Alive and no zombie. */
export const isRunning = (pid: number): boolean => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1")
    return stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3) !== "Z"
  } catch {
    return false
  }
}
const pidIn = (file: string): number | undefined => {
  try {
    const pid = Number.parseInt(readFileSync(file, "utf8"), 10)
    return Number.isInteger(pid) && pid > 1 ? pid : undefined
  } catch {
    return undefined
  }
}

export interface PrivateEngine {
  readonly dir: string
  readonly socket: string
  readonly pid: () => number | undefined
  readonly start: () => Promise<void>
  /** TERM by pid, wait, KILL; the data root stays */
  readonly stop: () => Promise<void>
  /** stop and remove every file and mount below `dir` */
  readonly destroy: () => Promise<void>
}

/** An engine of its own below `dir`; nothing is started yet. */
export const privateEngine = (dir: string): PrivateEngine => {
  const socket = join(dir, "docker.sock")
  const pidFile = join(dir, "dockerd.pid")
  const containerdPid = join(dir, "exec", "containerd", "containerd.pid")
  const log = join(dir, "dockerd.log")
  const pid = (): number | undefined => {
    const found = pidIn(pidFile)
    return found !== undefined && isRunning(found) ? found : undefined
  }
  const start = async (): Promise<void> => {
    const daemon = daemonPath()
    if (daemon === undefined) throw new Error("dockerd is not installed")
    mkdirSync(join(dir, "exec"), { recursive: true })
    for (const file of [pidFile, containerdPid]) {
      const stale = pidIn(file)
      if (stale === undefined || !isRunning(stale)) rmSync(file, { force: true })
    }
    rmSync(socket, { force: true })
    const out = openSync(log, "a")
    const child = spawn(
      daemon,
      [
        "-H",
        `unix://${socket}`,
        "--data-root",
        join(dir, "data"),
        "--exec-root",
        join(dir, "exec"),
        "--pidfile",
        pidFile,
        "--bridge",
        "none",
        "--iptables=false",
        "--ip6tables=false",
        "--log-driver",
        "local",
        "--log-level",
        "warn",
      ],
      { detached: true, stdio: ["ignore", out, out], env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", HOME: dir } },
    )
    let exited = false
    child.once("exit", () => {
      exited = true
    })
    child.unref()
    const until = Date.now() + READY_WITHIN_MS
    while (!(await answers(socket))) {
      if (exited || Date.now() > until) {
        const tail = readFileSync(log, "utf8").split("\n").slice(-15).join("\n")
        throw new Error(`dockerd did not become ready: ${tail}`)
      }
      await pause(50)
    }
  }
  const stop = async (): Promise<void> => {
    const running = pid()
    if (running === undefined) return
    process.kill(running, "SIGTERM")
    const until = Date.now() + 20_000
    while (isRunning(running) && Date.now() < until) await pause(50)
    if (isRunning(running)) process.kill(running, "SIGKILL")
    while (isRunning(running)) await pause(20)
  }
  const destroy = async (): Promise<void> => {
    await stop()
    const containerd = pidIn(containerdPid)
    if (containerd !== undefined && isRunning(containerd)) process.kill(containerd, "SIGKILL")
    const mounts = readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .map((line) => line.split(" ")[4] ?? "")
    for (const mount of mounts.filter((path) => path.startsWith(`${dir}/`)).reverse())
      spawnSync("umount", ["-l", mount])
    rmSync(dir, { recursive: true, force: true })
  }
  return { dir, socket, pid, start, stop, destroy }
}

const mayInstall = (): string | undefined => {
  if (process.getuid?.() !== 0) return `${NO_ENGINE} answers, and only root can start one`
  if (!existsSync("/usr/bin/apt-get")) return `${NO_ENGINE} answers, and there is no apt to install docker.io with`
  return undefined
}
const install = (): string | undefined => {
  if (daemonPath() !== undefined) return undefined
  const args = [
    "-o",
    "DPkg::Lock::Timeout=300",
    "-o",
    "Acquire::Retries=3",
    "install",
    "-y",
    "--no-install-recommends",
    ...PACKAGES,
  ]
  const done = spawnSync("apt-get", args, {
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    encoding: "utf8",
  })
  return done.status === 0
    ? undefined
    : `apt-get install ${PACKAGES.join(" ")} failed: ${done.stderr.trim().split("\n").at(-1)}`
}

const shared = join(tmpdir(), "caisson-test-engine")
const refs = join(shared, "refs")
const withLock = async <T>(work: () => Promise<T>): Promise<T> => {
  const lock = `${shared}.lock`
  for (;;) {
    try {
      mkdirSync(lock)
      break
    } catch {
      const holder = pidIn(join(lock, "pid"))
      const stale =
        holder === undefined
          ? Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()) > 5_000
          : !isRunning(holder)
      if (stale) rmSync(lock, { recursive: true, force: true })
      else await pause(50)
    }
  }
  try {
    writeFileSync(join(lock, "pid"), String(process.pid))
    return await work()
  } finally {
    rmSync(lock, { recursive: true, force: true })
  }
}
const livingRefs = (): string[] => {
  if (!existsSync(refs)) return []
  return readdirSync(refs).filter((name) => {
    if (isRunning(Number.parseInt(name, 10))) return true
    rmSync(join(refs, name), { force: true })
    return false
  })
}

/** What every reason for the want of an engine begins with; `scripts/test.mjs` knows engine skips by it. */
export const NO_ENGINE = "no container engine"

let taken = 0
/** Take a share of an engine. Dispose of it when the test file is done. */
export const acquireEngine = async (): Promise<EngineOrReason> => {
  if (process.env["CAISSON_NO_DOCKER"] === "1")
    return { ok: false, reason: `${NO_ENGINE} is wanted: CAISSON_NO_DOCKER is set` }
  const there = await discoverEngine()
  if (there.ok && there.endpoint.socketPath !== undefined) {
    return { ok: true, socket: there.endpoint.socketPath, owned: false, [Symbol.asyncDispose]: async () => {} }
  }
  const refusal = mayInstall()
  if (refusal !== undefined) return { ok: false, reason: refusal }
  return await withLock(async () => {
    const failed = install()
    if (failed !== undefined) return { ok: false, reason: `${NO_ENGINE} can be installed: ${failed}` }
    const engine = privateEngine(shared)
    livingRefs()
    mkdirSync(refs, { recursive: true })
    const ref = join(refs, `${process.pid}-${++taken}`)
    writeFileSync(ref, "")
    try {
      if (!(await answers(engine.socket))) await engine.start()
    } catch (error) {
      rmSync(ref, { force: true })
      if (livingRefs().length === 0) await engine.destroy()
      return { ok: false, reason: `${NO_ENGINE} can be started: ${(error as Error).message}` }
    }
    const release = (): Promise<void> =>
      withLock(async () => {
        rmSync(ref, { force: true })
        if (livingRefs().length === 0) await engine.destroy()
      })
    return { ok: true, socket: engine.socket, owned: true, [Symbol.asyncDispose]: release }
  })
}

/** For `describe.skipIf`: says on stderr, in capitals, that and why engine tests do not run. */
export const skippedLoudly = (engine: EngineOrReason): boolean => {
  if (engine.ok) return false
  process.stderr.write(`\nSKIPPED: tests against a container engine: ${engine.reason}\n`)
  return true
}
