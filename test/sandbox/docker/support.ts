/** What the tests of this folder share: an engine, a backend on a data folder of its own, and one way to run a call. */
import { createHash } from "node:crypto"
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { CollectedSandbox, Limits, SandboxProfile } from "../../../src/sandbox/backend.ts"
import {
  createDockerBackend,
  type DockerBackend,
  type DockerBackendOptions,
} from "../../../src/sandbox/docker/backend.ts"
import { LABEL } from "../../../src/sandbox/docker/container/container-spec.ts"
import { openEngine } from "../../../src/sandbox/docker/engine/engine.ts"
import { prepareFor, type Readied } from "../../support/sealed.ts"

export const mebibyte = 2 ** 20
export const limits: Limits = {
  wallMs: 20_000,
  memoryBytes: 128 * mebibyte,
  pids: 32,
  diskBytes: 16 * mebibyte,
  outputBytes: 65_536,
  openFiles: 256,
}
const programs = [
  "sh",
  "cat",
  "ls",
  "rm",
  "mv",
  "ln",
  "mkdir",
  "sleep",
  "dd",
  "head",
  "env",
  "id",
  "perl",
  "mkfifo",
  "chmod",
  "sort",
  "true",
]

export type Change = Partial<Omit<SandboxProfile, "limits" | "executables">> & {
  readonly limits?: Partial<Limits>
  readonly executables?: Partial<SandboxProfile["executables"]>
}
export const profileOf = ({ limits: limit, executables, ...rest }: Change = {}): SandboxProfile => ({
  executables: {
    program: "/usr/bin/sh",
    children: true,
    spawn: Object.fromEntries(programs.map((name) => [name, `/usr/bin/${name}`])),
    bundles: {},
    ...executables,
  },
  view: { read: ["**"], deny: [] },
  write: ["**"],
  env: { PATH: "/usr/bin", HOME: "/home/tool" },
  tty: false,
  network: "none",
  limits: { ...limits, ...limit },
  required: [],
  files: {},
  ...rest,
})

export interface Ended {
  readonly exited: CollectedSandbox
  readonly out: string
  readonly err: string
}
export interface Place extends AsyncDisposable {
  readonly folder: string
  readonly workspace: string
  readonly backend: DockerBackend
  prepare(change?: Change): Promise<Readied>
  run(
    argv: readonly string[],
    change?: Change,
    more?: { readonly stdin?: string; readonly cancel?: AbortSignal; readonly workspace?: string },
  ): Promise<Ended>
  /** a shell text */
  sh(text: string, change?: Change, more?: { readonly stdin?: string; readonly cancel?: AbortSignal }): Promise<Ended>
}

export const openPlace = (socket: string, options: Partial<DockerBackendOptions> = {}): Place => {
  const folder = mkdtempSync(join(tmpdir(), "caisson-docker-test-"))
  const workspace = join(folder, "workspace")
  mkdirSync(workspace)
  const backend = createDockerBackend({
    data: join(folder, "data"),
    engine: `unix://${socket}`,
    rootfs: "host",
    ...options,
  })
  const prepare = async (change?: Change): Promise<Readied> => {
    const prepared = await prepareFor(backend, profileOf(change))
    if (!prepared.ok) throw new Error(`${prepared.control}: ${prepared.message} (${prepared.fix})`)
    return prepared
  }
  const run: Place["run"] = async (argv, change, more = {}) => {
    const prepared = await prepare(change)
    const job = { argv, stdin: more.stdin ?? "", workspace: more.workspace ?? workspace }
    const exited = await prepared.run(job, more.cancel)
    if (!exited.ok) throw new Error(`${exited.control}: ${exited.message}`)
    return {
      exited,
      out: Buffer.from(exited.stdout.bytes).toString(),
      err: Buffer.from(exited.stderr.bytes).toString(),
    }
  }
  return {
    folder,
    workspace,
    backend,
    prepare,
    run,
    sh: (text, change, more) => run(["/usr/bin/sh", "-c", text], change, more),
    async [Symbol.asyncDispose]() {
      await backend[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export interface Leftovers {
  readonly mounts: readonly string[]
  readonly containers: number
  readonly descriptors: number
}
const digestOf = (path: string): string => createHash("sha256").update(path).digest("hex").slice(0, 24)
/** Containers of hosts in this process, or of any whose data folder is this or lies in it: other test files have theirs. */
export const containersOf = async (socket: string, folder?: string): Promise<string[] | undefined> => {
  const found = await openEngine({ origin: "given", socketPath: socket }).list([LABEL.host])
  if (!found.ok) return undefined
  const data = folder === undefined ? [] : [folder, join(folder, "data")].map(digestOf)
  const isOurs = (labels: Readonly<Record<string, string>>): boolean =>
    labels[LABEL.host]?.startsWith(`${process.pid}-`) === true || data.includes(labels[LABEL.data] ?? "")
  return found.value.flatMap(({ id, labels }) => (isOurs(labels) ? [id] : []))
}

/** What a test must not leave: mounts below a folder, containers of ours, descriptors of this process. */
export const leftovers = async (socket: string, folder: string): Promise<Leftovers> => {
  const found = await containersOf(socket, folder)
  return {
    mounts: readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .map((line) => line.split(" ")[4] ?? "")
      .filter((path) => path.startsWith(folder)),
    containers: found?.length ?? -1,
    descriptors: readdirSync("/proc/self/fd").length,
  }
}
