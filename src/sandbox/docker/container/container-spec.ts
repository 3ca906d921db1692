/**
 * A shape → the container that enforces it. Pure.
 *
 * Guarantees: no network, read-only root, no capability, no new privileges, our system-call filter, an ordinary
 * user, bounded processes, memory without swap, cpu, files and descriptors, a log driver that stores nothing.
 * Nothing of a call is in it: arguments, environment and input go in band, so `docker inspect` shows no secret.
 */
import type { ContainerCreateOptions } from "dockerode"
import type { Executables, SandboxShape } from "../../backend.ts"
import type { Outcome } from "../engine/engine.ts"
import { presentMasks, readOnlyInside } from "../../proc-masks.ts"
import { bridgeCalls } from "./bridge-words.ts"

const insideHome = "/home/tool"
/** Where the bridge and its pipes are while the container is parked; the call's own files cover it afterwards. */
export const insideBridge = "/run/caisson"

export const LABEL = { host: "dev.caisson.host", slot: "dev.caisson.slot", data: "dev.caisson.data" } as const

/** What a container's root is made of. */
export interface ContainerRoot {
  readonly image: string
  /** read-only folders: path inside → path on the host */
  readonly folders: Readonly<Record<string, string>>
  /** folder with the bridge's interpreter and text */
  readonly code: string
  /** the interpreter brings what it loads */
  readonly portable?: true
}
/** Makes roots, and remembers what it made at the engine. */
export interface RootMaker {
  make(executables: Executables): Promise<Outcome<ContainerRoot>>
  /** The engine does not have what it had: look again next time. */
  forget(): void
}
interface ContainerPlaces {
  /** folder holding the bridge's mounts, detached once it is parked */
  readonly bridge: string
  readonly workspace: string
  readonly home: string
  readonly tmp: string
  readonly shm: string
  /** read-only folders: path inside → path on the host */
  readonly root: Readonly<Record<string, string>>
}
export interface ContainerPlan {
  readonly product: "docker" | "podman"
  readonly image: string
  /** the words that start the bridge's interpreter */
  readonly perl: readonly string[]
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly user: number
  readonly architecture: string
  /** the system-call filter: its JSON for Docker, a file with it for Podman */
  readonly seccomp: string
  readonly usernsRemap: boolean
  readonly places: ContainerPlaces
}

const PROCESSES_OF_ALL = 16_384
/** Process 1 is the bridge: it is one process more than the tool's own. */
const BRIDGE_PROCESSES = 1
/** A mask over a file that the kernel closes to everybody but root would open it, as an empty one. */
const { files, folders } = presentMasks()
const MASKED = [...files, ...folders, "/sys", "/dev/mqueue"]

/** The kernel's own defaults for a new network namespace, which engines widen: no low ports, no ping sockets. */
const SYSCTLS = { "net.ipv4.ip_unprivileged_port_start": "1024", "net.ipv4.ping_group_range": "1 0" }

interface Bind {
  readonly source: string
  readonly target: string
  /** what is mounted there later appears inside */
  readonly late: boolean
}
type HostConfig = NonNullable<ContainerCreateOptions["HostConfig"]>
/** Every folder is given read-only, with the mounts below it. */
const mountsOf = (binds: readonly Bind[], product: ContainerPlan["product"]): Pick<HostConfig, "Mounts" | "Binds"> => {
  const propagation = (late: boolean): "rslave" | "rprivate" => (late ? "rslave" : "rprivate")
  // Podman takes `Mounts` for non-recursive whatever they say, and has no other way to name a path with a colon.
  if (product === "podman")
    return { Binds: binds.map(({ source, target, late }) => `${source}:${target}:ro,rbind,${propagation(late)}`) }
  return {
    Mounts: binds.map(({ source, target, late }) => ({
      Type: "bind",
      Source: source,
      Target: target,
      ReadOnly: true,
      BindOptions: { Propagation: propagation(late) },
    })),
  }
}

/** Where the bridge's own folder is while it is parked. */
export const insideCode = `${insideBridge}/code`

export const containerOptions = (shape: SandboxShape, plan: ContainerPlan): ContainerCreateOptions => {
  const { limits } = shape
  const { places } = plan
  const binds: Bind[] = [
    ...Object.entries(places.root).map(([target, source]) => ({ source, target, late: false })),
    { source: places.bridge, target: insideBridge, late: true },
    { source: places.workspace, target: "/workspace", late: true },
    { source: places.home, target: insideHome, late: true },
    { source: places.tmp, target: "/tmp", late: true },
    { source: places.shm, target: "/dev/shm", late: true },
    // Podman puts a tmpfs of its own there on a read-only root, unless the place is taken.
    ...(plan.product === "podman" ? [{ source: places.tmp, target: "/var/tmp", late: true }] : []),
  ]
  return {
    name: plan.name,
    Image: plan.image,
    User: `${plan.user}:${plan.user}`,
    Hostname: "caisson",
    WorkingDir: "/",
    Env: [],
    Labels: { ...plan.labels },
    Entrypoint: [...plan.perl],
    Cmd: [`${insideCode}/bridge.pl`, `${insideBridge}/pipes`, ...bridgeCalls(plan.architecture).map(String)],
    AttachStdin: false,
    AttachStdout: false,
    AttachStderr: false,
    OpenStdin: false,
    Tty: false,
    NetworkDisabled: false,
    HostConfig: {
      NetworkMode: "none",
      Dns: ["127.0.0.1"],
      ReadonlyRootfs: true,
      CapDrop: ["ALL"],
      // Podman hears of masked paths here only; Docker would refuse the word.
      SecurityOpt: [
        "no-new-privileges",
        `seccomp=${plan.seccomp}`,
        ...(plan.product === "podman" ? [`mask=${MASKED.join(":")}`] : []),
      ],
      PidsLimit: limits.pids + BRIDGE_PROCESSES,
      Memory: limits.memoryBytes,
      MemorySwap: limits.memoryBytes,
      ...(limits.cpus === undefined ? {} : { NanoCpus: Math.round(limits.cpus * 1e9) }),
      Ulimits: [
        // Zero would let a core handler of the host (a pipe) have the tool's memory; one byte stops files and pipes alike.
        { Name: "core", Soft: 1, Hard: 1 },
        { Name: "nofile", Soft: limits.openFiles, Hard: limits.openFiles },
        { Name: "memlock", Soft: 65_536, Hard: 65_536 },
        // Counted per user over all sandboxes, so no limit of a call's; named because Podman's default is refused
        // where the engine may not raise limits.
        { Name: "nproc", Soft: PROCESSES_OF_ALL, Hard: PROCESSES_OF_ALL },
      ],
      LogConfig: { Type: "none", Config: {} },
      RestartPolicy: { Name: "no", MaximumRetryCount: 0 },
      IpcMode: "private",
      Sysctls: SYSCTLS,
      ...{ CgroupnsMode: "private" },
      ...(plan.usernsRemap ? { UsernsMode: "host" } : {}),
      MaskedPaths: MASKED,
      ReadonlyPaths: [...readOnlyInside],
      ...mountsOf(binds, plan.product),
    },
  }
}
