/**
 * dockerode behind a small typed border: every answer is an outcome, every call has a deadline, every id is checked
 * before it becomes part of a URL.
 *
 * Guarantees: a failed build or load is a failure even though the engine answers 200 and reports it in the stream;
 * an engine that hangs ends as `timeout`, one that is gone as `unreachable`; "already gone" is success for removal.
 * Does not: attach to containers (their streams are pipes of the host's own) nor wait on them through the engine.
 */
import type { Readable } from "node:stream"
import Docker from "dockerode"
import type { Endpoint } from "./discovery.ts"

export interface EngineFailure {
  readonly kind: "unreachable" | "timeout" | "not-found" | "conflict" | "no-space" | "refused" | "egress" | "image"
  readonly message: string
  readonly status?: number
}
export type Outcome<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly failure: EngineFailure }

declare const containerId: unique symbol
/** An id or name that is safe inside an API path. */
export type ContainerId = string & { readonly [containerId]: true }
const ID = /^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}$/
export const parseContainerId = (text: string): ContainerId | undefined =>
  ID.test(text) ? (text as ContainerId) : undefined
const IMAGE =
  /^(sha256:[0-9a-f]{64}|[a-z0-9][a-z0-9._/-]{0,199}(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[0-9a-f]{64})?)$/

export interface EngineInfo {
  readonly product: "docker" | "podman"
  readonly version: string
  readonly api: string
  readonly cgroup: string
  readonly cgroupDriver: string
  readonly storage: string
  readonly rootless: boolean
  readonly usernsRemap: boolean
  readonly security: readonly string[]
  readonly kernel: string
  readonly architecture: string
  /** limits that the engine's kernel enforces; one that it does not is ignored by the engine without an error */
  readonly limits: { readonly memory: boolean; readonly pids: boolean; readonly cpu: boolean }
}
/** What an image says of its own start. */
export interface ImageFacts {
  readonly id: string
  readonly entrypoint: readonly string[]
  readonly cmd: readonly string[]
  readonly env: readonly (readonly [name: string, value: string])[]
  readonly folder: string
}
export interface ContainerState {
  readonly id: string
  readonly running: boolean
  readonly pid: number
  readonly exitCode: number
  readonly oomKilled: boolean
  readonly error: string
}
export type Progress = (line: string) => void

const SHORT_MS = 10_000
const START_MS = 60_000
const BUILD_MS = 20 * 60_000

const failureOf = (error: unknown, deadline: AbortSignal): EngineFailure => {
  const message = (error instanceof Error ? error.message : String(error)).trim()
  const status =
    typeof error === "object" && error !== null && "statusCode" in error && typeof error.statusCode === "number"
      ? error.statusCode
      : undefined
  const more = status === undefined ? {} : { status }
  if (deadline.aborted) return { kind: "timeout", message: `the engine did not answer in time (${message})` }
  if (/no space left on device|disk quota exceeded/i.test(message)) return { kind: "no-space", message, ...more }
  if (status === undefined) return { kind: "unreachable", message }
  if (status === 404) return { kind: "not-found", message, status }
  return { kind: status === 409 ? "conflict" : "refused", message, status }
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null
const text = (value: unknown): string => (typeof value === "string" ? value : "")
const texts = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === "string") : typeof value === "string" ? [value] : []

const factsOf = (id: string, config: Record<string, unknown>): ImageFacts => ({
  id,
  entrypoint: texts(config["Entrypoint"]),
  cmd: texts(config["Cmd"]),
  env: texts(config["Env"]).flatMap((each) => {
    const at = each.indexOf("=")
    return at < 1 ? [] : [[each.slice(0, at), each.slice(at + 1)] as const]
  }),
  folder: text(config["WorkingDir"]).startsWith("/") ? text(config["WorkingDir"]) : "/",
})

const infoOf = (version: unknown, info: unknown): EngineInfo => {
  const v = isRecord(version) ? version : {}
  const i = isRecord(info) ? info : {}
  const security = Array.isArray(i["SecurityOptions"]) ? i["SecurityOptions"].map(text) : []
  const components = Array.isArray(v["Components"]) ? v["Components"].filter(isRecord) : []
  return {
    product: components.some((part) => /podman/i.test(text(part["Name"]))) ? "podman" : "docker",
    version: text(v["Version"]),
    api: text(v["ApiVersion"]),
    cgroup: text(i["CgroupVersion"]) || "1",
    cgroupDriver: text(i["CgroupDriver"]),
    storage: text(i["Driver"]),
    rootless: security.some((option) => option.startsWith("name=rootless")),
    usernsRemap: security.some((option) => option.startsWith("name=userns")),
    security,
    kernel: text(i["KernelVersion"]),
    architecture: text(i["Architecture"]),
    limits: {
      memory: i["MemoryLimit"] === true,
      pids: i["PidsLimit"] === true,
      cpu: i["CpuCfsQuota"] === true || i["CPUCfsQuota"] === true,
    },
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: builders colour their output
const ANSI = /\u001b\[[0-9;]*m/g
/** What a builder says of itself; the cause of a failure is in the last other line. */
const CHATTER = /^(Step \d|--->|Removing intermediate)/
/** Drain a build or load stream: its lines go to `progress`; a line with an error is what the stream ends in. */
const follow = async (stream: NodeJS.ReadableStream, progress: Progress): Promise<void> => {
  let rest = ""
  let failed: string | undefined
  let last = ""
  const take = (line: string): void => {
    if (line.trim() === "") return
    let item: unknown
    try {
      item = JSON.parse(line)
    } catch {
      return
    }
    if (!isRecord(item)) return
    if (typeof item["error"] === "string") failed = last === "" ? item["error"] : `${item["error"]} (${last})`
    const said = text(item["stream"]) || text(item["status"])
    if (said.trim() === "") return
    const words = said.replace(ANSI, "").trim()
    if (!CHATTER.test(words)) last = words
    progress(words)
  }
  for await (const chunk of stream) {
    const lines = (rest + String(chunk)).split("\n")
    rest = lines.pop() ?? ""
    for (const line of lines) take(line)
  }
  take(rest)
  if (failed !== undefined) throw Object.assign(new Error(failed), { statusCode: 500 })
}

/** dockerode takes an abort signal here too; its types only know a callback in this place. */
interface Abortable {
  ping(options: { abortSignal: AbortSignal }): Promise<unknown>
  version(options: { abortSignal: AbortSignal }): Promise<unknown>
  info(options: { abortSignal: AbortSignal }): Promise<unknown>
}

export const openEngine = (endpoint: Endpoint) => {
  const { tcp } = endpoint
  const docker = new Docker(
    tcp === undefined
      ? { socketPath: endpoint.socketPath ?? "/var/run/docker.sock" }
      : { host: tcp.host, port: tcp.port, protocol: tcp.tls === undefined ? "http" : "https", ...tcp.tls },
  )
  const abortable = docker as unknown as Abortable
  const ask = async <T>(work: (signal: AbortSignal) => Promise<T>, withinMs = SHORT_MS): Promise<Outcome<T>> => {
    const deadline = AbortSignal.timeout(withinMs)
    const late = Promise.withResolvers<never>()
    const onAbort = (): void => late.reject(new Error("deadline"))
    deadline.addEventListener("abort", onAbort, { once: true })
    try {
      return { ok: true, value: await Promise.race([work(deadline), late.promise]) }
    } catch (error) {
      return { ok: false, failure: failureOf(error, deadline) }
    } finally {
      deadline.removeEventListener("abort", onAbort)
    }
  }
  const image = (name: string): Docker.Image => {
    if (!IMAGE.test(name)) throw new Error(`not an image name: ${name}`)
    return docker.getImage(name)
  }
  return {
    endpoint,
    ping: (withinMs = SHORT_MS): Promise<Outcome<unknown>> =>
      ask((abortSignal) => abortable.ping({ abortSignal }), withinMs),
    info: (): Promise<Outcome<EngineInfo>> =>
      ask(async (abortSignal) =>
        infoOf(await abortable.version({ abortSignal }), await abortable.info({ abortSignal })),
      ),
    create: (options: Docker.ContainerCreateOptions): Promise<Outcome<ContainerId>> =>
      ask(async (abortSignal) => {
        const created = await docker.createContainer({ ...options, abortSignal })
        const id = parseContainerId(created.id)
        if (id === undefined) throw new Error("the engine answered with a malformed container id")
        return id
      }, START_MS),
    start: (id: ContainerId): Promise<Outcome<unknown>> =>
      ask((abortSignal) => docker.getContainer(id).start({ abortSignal }), START_MS),
    inspect: (id: ContainerId): Promise<Outcome<ContainerState>> =>
      ask(async (abortSignal) => {
        const { Id, State } = await docker.getContainer(id).inspect({ abortSignal })
        return {
          id: Id,
          running: State.Running,
          pid: State.Pid,
          exitCode: State.ExitCode,
          oomKilled: State.OOMKilled,
          error: State.Error,
        }
      }),
    /** Kill and remove; a container that is gone counts as removed. */
    remove: async (id: ContainerId): Promise<Outcome<unknown>> => {
      const done = await ask(
        (abortSignal) => docker.getContainer(id).remove({ force: true, v: true, abortSignal }),
        START_MS,
      )
      return done.ok || done.failure.kind === "not-found" ? { ok: true, value: undefined } : done
    },
    list: (
      labels: readonly string[],
    ): Promise<Outcome<readonly { readonly id: ContainerId; readonly labels: Readonly<Record<string, string>> }[]>> =>
      ask(async (abortSignal) => {
        const found = await docker.listContainers({ all: true, filters: { label: [...labels] }, abortSignal })
        return found.flatMap((entry) => {
          const id = parseContainerId(entry.Id)
          return id === undefined ? [] : [{ id, labels: entry.Labels ?? {} }]
        })
      }),
    /** The id of an image, or undefined where the engine has none of that name. */
    findImage: async (name: string): Promise<Outcome<string | undefined>> => {
      const found = await ask(() => image(name).inspect())
      if (found.ok) return { ok: true, value: found.value.Id }
      return found.failure.kind === "not-found" ? { ok: true, value: undefined } : found
    },
    /** What it says of its own start; undefined where the engine has none of that name. */
    imageFacts: async (name: string): Promise<Outcome<ImageFacts | undefined>> => {
      const found = await ask(() => image(name).inspect())
      if (!found.ok) return found.failure.kind === "not-found" ? { ok: true, value: undefined } : found
      const { Id, Config } = found.value as { Id: string; Config?: Record<string, unknown> }
      return { ok: true, value: factsOf(Id, Config ?? {}) }
    },
    tagImage: (id: string, repo: string, tag: string): Promise<Outcome<unknown>> =>
      ask(() => image(id).tag({ repo, tag })),
    removeImage: (name: string): Promise<Outcome<unknown>> => ask(() => image(name).remove({ force: true })),
    load: (archive: Readable, progress: Progress = () => {}): Promise<Outcome<void>> =>
      ask(async () => follow(await docker.loadImage(archive), progress), BUILD_MS),
    build: (
      context: NodeJS.ReadableStream,
      options: Docker.ImageBuildOptions,
      progress: Progress = () => {},
    ): Promise<Outcome<void>> =>
      ask(
        async (abortSignal) => follow(await docker.buildImage(context, { ...options, abortSignal }), progress),
        BUILD_MS,
      ),
    /** One file or folder of a container as a tar stream. */
    read: (id: ContainerId, path: string): Promise<Outcome<NodeJS.ReadableStream>> =>
      ask((abortSignal) => docker.getContainer(id).getArchive({ path, abortSignal })),
    /** The engine's event stream: it ends when the engine does. */
    events: (signal: AbortSignal): Promise<Outcome<NodeJS.ReadableStream>> =>
      ask(() => docker.getEvents({ abortSignal: signal })),
  }
}
export type Engine = ReturnType<typeof openEngine>
