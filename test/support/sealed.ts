/** Run small programs in a real sandbox, as root or as an ordinary user, and look for what they left behind. */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import {
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  type Stats,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type {
  CollectedSandbox,
  Limits,
  PreparedSandbox,
  SandboxBackend,
  SandboxProfile,
  Unavailable,
} from "../../src/sandbox/backend.ts"
import { runOnce } from "../../src/sandbox/collect.ts"
import { jobOf, type RunOfProfile, shapeOf } from "../../src/sandbox/profile.ts"
import { patience } from "./patience.ts"

const mebibyte = 1024 * 1024
export const testLimits: Limits = {
  wallMs: 240_000 * patience,
  memoryBytes: 512 * mebibyte,
  pids: 64,
  diskBytes: 64 * mebibyte,
  outputBytes: mebibyte,
  openFiles: 256,
}

export interface ProfileOverrides extends Partial<Omit<SandboxProfile, "executables" | "limits">> {
  readonly program?: string
  readonly children?: boolean
  readonly spawn?: Readonly<Record<string, string>>
  readonly bundles?: Readonly<Record<string, string>>
  readonly limits?: Partial<Limits>
}
const everyday = [
  "sh",
  "cat",
  "ls",
  "mkdir",
  "rm",
  "mv",
  "cp",
  "ln",
  "chmod",
  "touch",
  "sleep",
  "echo",
  "python3",
  "perl",
  "head",
  "stat",
  "find",
  "dd",
  "true",
  "env",
  "id",
  "tail",
  "kill",
  "seq",
  "mkfifo",
  "truncate",
  "rmdir",
  "tee",
  "wc",
  "getent",
  "curl",
]

export const profileOf = (overrides: ProfileOverrides = {}): SandboxProfile => {
  const { program, children, spawn, bundles, limits, ...rest } = overrides
  const known: Record<string, string> = {}
  for (const name of everyday) {
    try {
      realpathSync(`/usr/bin/${name}`)
      known[name] = `/usr/bin/${name}`
    } catch {
      // Not on this machine; a test that needs it says so.
    }
  }
  return {
    executables: {
      program: program ?? "/usr/bin/sh",
      children: children ?? true,
      spawn: spawn ?? known,
      bundles: bundles ?? {},
    },
    view: { read: ["**"], deny: [] },
    write: ["**"],
    env: { PATH: "/usr/bin:/bin", HOME: "/home/tool", LANG: "C.UTF-8" },
    tty: false,
    network: "none",
    required: [],
    files: {},
    ...rest,
    limits: { ...testLimits, ...limits },
  }
}

export const temporaryFolder = (name: string): string => realpathSync(mkdtempSync(join(tmpdir(), `caisson-${name}-`)))

export interface Outcome {
  readonly exited: CollectedSandbox
  readonly stdout: string
  readonly stderr: string
}
export interface OneShot extends RunOfProfile {
  readonly stdin?: string | Uint8Array
}
/** A prepared sandbox together with the profile it was prepared for. */
export interface Readied extends PreparedSandbox {
  readonly profile: SandboxProfile
  /** Start, feed, collect. */
  run(job: OneShot, cancel?: AbortSignal): Promise<CollectedSandbox | Unavailable>
}
export const readied = (made: PreparedSandbox, profile: SandboxProfile): Readied => ({
  ok: true,
  channel: made.channel,
  profile,
  start: (job, cancel) => made.start(job, cancel),
  run: ({ stdin = "", ...job }, cancel = new AbortController().signal) =>
    runOnce(made, jobOf(profile, job), { stdin: Buffer.from(stdin), outputBytes: profile.limits.outputBytes }, cancel),
  [Symbol.asyncDispose]: () => made[Symbol.asyncDispose](),
})
/** Ready it for a profile, or say what cannot be enforced. */
export const prepareFor = async (backend: SandboxBackend, profile: SandboxProfile): Promise<Readied | Unavailable> => {
  const made = await backend.prepare(shapeOf(profile))
  return made.ok ? readied(made, profile) : made
}
export const prepared = async (backend: SandboxBackend, overrides?: ProfileOverrides): Promise<Readied> => {
  const made = await prepareFor(backend, profileOf(overrides))
  if (!made.ok) throw new Error(`${made.control}: ${made.message}`)
  return made
}
export const finish = async (sandbox: Readied, job: OneShot, cancel?: AbortSignal): Promise<Outcome> => {
  const exited = await sandbox.run(job, cancel)
  if (!exited.ok) throw new Error(`${exited.control}: ${exited.message}`)
  return {
    exited,
    stdout: Buffer.from(exited.stdout.bytes).toString("utf8"),
    stderr: Buffer.from(exited.stderr.bytes).toString("utf8"),
  }
}
export const runShell = async (
  backend: SandboxBackend,
  workspace: string,
  script: string,
  overrides?: ProfileOverrides,
): Promise<Outcome> => finish(await prepared(backend, overrides), { argv: ["/usr/bin/sh", "-c", script], workspace })
export const runPython = async (
  backend: SandboxBackend,
  workspace: string,
  source: string,
  overrides?: ProfileOverrides,
): Promise<Outcome> =>
  finish(await prepared(backend, { program: "/usr/bin/python3", ...overrides }), {
    argv: ["/usr/bin/python3", "-c", source],
    workspace,
  })

const kindOf = (facts: Stats): string =>
  facts.isDirectory() ? "d" : facts.isSymbolicLink() ? "l" : facts.isFile() ? "f" : `other ${facts.mode >> 12}`
/** Every path below a folder with type, mode, size and content, as one comparable text. Without a program started. */
export const fingerprint = (folder: string): string => {
  const lines: string[] = []
  const visit = (path: Buffer, name: string): void => {
    const facts = lstatSync(path)
    const kind = kindOf(facts)
    const content =
      kind === "l"
        ? readlinkSync(path, "buffer").toString("latin1")
        : kind === "f"
          ? createHash("sha256").update(readFileSync(path)).digest("hex")
          : ""
    lines.push(JSON.stringify([name, kind, (facts.mode & 0o7777).toString(8), facts.size, content]))
    if (kind !== "d") return
    for (const entry of readdirSync(path, "buffer").sort(Buffer.compare))
      visit(Buffer.concat([path, Buffer.from("/"), entry]), `${name}/${entry.toString("latin1")}`)
  }
  visit(Buffer.from(folder), ".")
  return lines.join("\n")
}

export interface LiveProcess {
  readonly pid: number
  /** start time in clock ticks, which tells a reused number from the same process */
  readonly started: string
}
const statusOf = (pid: number): { parent: number; started: string; zombie: boolean } | undefined => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8")
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ")
    return { zombie: fields[0] === "Z", parent: Number(fields[1]), started: fields[19] ?? "" }
  } catch {
    return undefined
  }
}
/** Every process below one, now. */
export const descendants = (root: number): LiveProcess[] => {
  const all = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
  const children = new Map<number, LiveProcess[]>()
  for (const pid of all) {
    const status = statusOf(pid)
    if (status !== undefined)
      children.set(status.parent, [...(children.get(status.parent) ?? []), { pid, started: status.started }])
  }
  const below = (pid: number): LiveProcess[] =>
    (children.get(pid) ?? []).flatMap((child) => [child, ...below(child.pid)])
  return below(root)
}
export const stillAlive = (processes: readonly LiveProcess[]): LiveProcess[] =>
  processes.filter(({ pid, started }) => {
    const status = statusOf(pid)
    return status !== undefined && status.started === started && !status.zombie
  })
export const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8")
  } catch {
    return ""
  }
}
/** Control groups named after a host process. */
export const groupsOf = (hostPid: number): string[] =>
  execFileSync("sh", ["-c", `find /sys/fs/cgroup -type d -name 'caisson-${hostPid}-*' 2>/dev/null || true`], {
    encoding: "utf8",
  })
    .split("\n")
    .filter((line) => line !== "")
/** Mounts of this machine that mention one of the given folders or a base of private mounts. */
export const strayMounts = (...folders: string[]): string[] =>
  readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => folders.some((folder) => line.includes(folder)) || / \/(run|var\/lib)\/caisson /.test(line))

export const until = async (
  condition: () => boolean,
  what: string,
  milliseconds = 30_000 * patience,
): Promise<void> => {
  const end = Date.now() + milliseconds
  while (!condition()) {
    if (Date.now() > end) throw new Error(`never came true: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
export const removeFolder = (folder: string): void => rmSync(folder, { recursive: true, force: true })
