/**
 * The plain values that cross the border of a sandbox: what is asked of it, and what it says. Types alone; what makes and
 * runs one is in `backend.ts`, which every other room reads these through.
 */
import type { FolderIdentity } from "./folder.ts"
import type { Exchange, StagingFault } from "./exchange.ts"
import type { HomeContent } from "./home.ts"

export type { HomeAfter, HomeContent } from "./home.ts"

export interface Limits {
  readonly wallMs: number
  readonly memoryBytes: number
  readonly pids: number
  /** total CPU time of the tree */
  readonly cpuMs?: number
  /** share of the machine: 1 = one core */
  readonly cpus?: number
  /** bytes the call may write in all: workspace layer, home layer and /tmp */
  readonly diskBytes: number
  /** bytes of stdout and of stderr kept, each */
  readonly outputBytes: number
  readonly openFiles: number
}

/** Limits a contract or the operator named: these are refused where they cannot be enforced; others are defaults. */
export type LimitName = keyof Limits

export interface Executables {
  /** absolute host path of the program that the call starts */
  readonly program: string
  /** may it have child processes at all */
  readonly children: boolean
  /** further programs it may run: name → absolute host path */
  readonly spawn: Readonly<Record<string, string>>
  /** read-only folders of the driver's own (vendored files): host path → path inside */
  readonly bundles: Readonly<Record<string, string>>
  /** an image whose programs and libraries are shown in the place of the host's, by its digest; a backend without images refuses it */
  readonly image?: string
  /** the paths of programs are those of that image, and nothing of the host's is laid over it */
  readonly imagePrograms?: true
}

/** Asked of a backend that has images: what one starts. */
export interface ImageQuestion {
  /** by its digest */
  readonly image: string
  /** in the place of the image's own arguments; none: those */
  readonly args: readonly string[]
  /** further programs by name */
  readonly spawn: readonly string[]
}

export interface ImageProgram {
  /** its id */
  readonly image: string
  /** the first word is a path in the image */
  readonly argv: readonly string[]
  /** programs that the start goes through, and those that were asked for: path → the same */
  readonly starts: Readonly<Record<string, string>>
  /** of those that were asked for */
  readonly absent: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** where it is started */
  readonly folder: string
}

/**
 * Where the sandbox may listen to the host's channel. Nothing here means no network at all.
 * The backend makes listeners inside the call's own network namespace and hands them out as
 * `Prepared.channel`; whoever serves them decides what gets out.
 */
export interface NetworkChannelSpec {
  /** loopback port of the HTTP/SOCKS proxy inside the sandbox */
  readonly proxyPort: number
  /** ports that transparent listeners take connections on, any local address */
  readonly transparentPorts: readonly number[]
  /** serve UDP and TCP 53 on 127.0.0.1 */
  readonly dns: boolean
}

/** kept in a folder of the host's, by the sandbox */
interface FolderHome {
  readonly dir: string
  /** paths below it that survive the call */
  readonly keep: readonly string[]
}
/** in memory alone; what it holds afterwards is handed back (`ExitedSandbox.homeAfter`) */
interface MemoryHome {
  readonly content: HomeContent
  readonly keep: readonly string[]
}

export interface SandboxProfile {
  readonly executables: Executables
  /** glob lists relative to the workspace root; what they hide is not visible inside */
  readonly view: { readonly read: readonly string[]; readonly deny: readonly string[] }
  /** workspace paths kept visible although `view.read` does not name them, because they may be written */
  readonly write: readonly string[]
  /**
   * keep `$HOME` between calls in this host folder; absent: a private, empty home. `inMemory`: nothing of it lies on a disk;
   * whoever starts the job hands over what it holds, and keeps what it holds afterwards
   */
  readonly home?: FolderHome & { readonly inMemory?: true }
  readonly env: Readonly<Record<string, string>>
  readonly tty: boolean
  /** see `SandboxShape`; absent: none */
  readonly privatePipes?: boolean
  readonly network: NetworkChannelSpec | "none"
  readonly limits: Limits
  /** limits that must hold or the call is refused */
  readonly required: readonly LimitName[]
  /** read-only files placed in the sandbox: path inside → content (CA bundles, config) */
  readonly files: Readonly<Record<string, Uint8Array>>
  /** files of the workspace handed to the program below /tmp, and taken from there; absent: none */
  readonly exchange?: Exchange
  /** may it start what it writes to /tmp, as a compiler's own helpers need? absent: nothing that it writes can be started */
  readonly startsScratch?: true
  /** where the program is started; absent: in the workspace */
  readonly startsIn?: string
}

/**
 * A program that may be started before there is a call, and be told at the door what its call brings: environment and
 * folder. It speaks the door's few words itself (`src/runner`): a backend may as well start it with the job.
 */
export interface Waits {
  /** words of the program; the number of the door's descriptor is added as the last one */
  readonly argv: readonly string[]
  /** what every call's environment will hold, and nothing that only one may know */
  readonly env: Readonly<Record<string, string>>
  /** read-only texts that it needs before its call: path inside → text */
  readonly files: Readonly<Record<string, string>>
  /** of what it imports: another one is of no use to a call that finds this one */
  readonly edition: string
  /** the same for each of its calls */
  readonly limits: Pick<Limits, "cpuMs" | "diskBytes">
}

/** What creation needs: sandboxes of equal shapes can stand in for each other. */
export interface SandboxShape {
  readonly executables: Executables
  readonly network: NetworkChannelSpec | "none"
  /** descriptors 3 (read) and 4 (write) inside, for a runner's own protocol */
  readonly privatePipes: boolean
  readonly limits: Pick<Limits, "memoryBytes" | "pids" | "cpus" | "openFiles">
  readonly required: readonly LimitName[]
  /** started as soon as a sandbox of this shape waits; absent: the program is started with its job */
  readonly waits?: Waits
}

/** The program's three streams: pipes, or one terminal of its own that is all three. */
export type Stdio =
  | { readonly kind: "pipes" }
  | {
      readonly kind: "terminal"
      readonly columns: number
      readonly rows: number
      /** as for a person: what is typed is shown, and lines end as a screen wants them; else output comes as written */
      readonly echo: boolean
    }

/** What one run is given. */
export interface Job {
  readonly argv: readonly string[]
  readonly env: SandboxProfile["env"]
  readonly files: SandboxProfile["files"]
  /**
   * absolute path of a real directory, or which directory that must be; by its path it is the one that is there when
   * the job starts, and another one is never used
   */
  readonly workspace: string | FolderIdentity
  readonly view: SandboxProfile["view"]
  readonly write: SandboxProfile["write"]
  readonly home?: FolderHome | MemoryHome
  readonly exchange?: Exchange
  readonly limits: Pick<Limits, "wallMs" | "cpuMs" | "diskBytes">
  /** see `SandboxProfile` */
  readonly startsScratch?: true
  readonly startsIn?: string
  /** tell what it asked the kernel for (`Observed`); a backend that cannot refuses it */
  readonly observe?: true
  readonly stdio: Stdio
}

export type { Observed, ObservedPath } from "./observe/observed.ts"
export type { Exchange, Exchanged, StagedInput, TakenOutput } from "./exchange.ts"

export interface Denial {
  readonly layer: "egress" | "exec" | "fs" | "limit"
  readonly reason: string
  readonly target: string
  readonly count: number
}

/** A run in the middle of it: what its processes do next is not in here. */
export interface Glance {
  /** something lies in the workspace's layer, or in the home under a path that is kept */
  readonly written: boolean
  /** dials that the kernel stopped, since the run began */
  readonly denied: readonly Denial[]
}

export type Unavailable = {
  readonly ok: false
  /** the control that cannot be enforced here */
  readonly control: string
  readonly message: string
  readonly fix: string
  /** why a file could not be handed over, where that is the reason */
  readonly file?: { readonly name: string; readonly path: string; readonly fault: StagingFault }
}

export interface Captured {
  readonly bytes: Uint8Array
  /** the stream went on after the cap */
  readonly truncated: boolean
  readonly total: number
}

export type Ending =
  | { readonly by: "exit"; readonly code: number }
  | { readonly by: "signal"; readonly signal: string }
  | { readonly by: "limit"; readonly limit: "wall" | "memory" | "pids" | "cpu" | "disk" | "output" }
  | { readonly by: "cancelled" }
  /** a process was stopped for making a child process that the profile forbids */
  | { readonly by: "exec-denied" }
  /** the sandbox itself broke; the tool's own work is unknown, unless its program was never started */
  | { readonly by: "infrastructure"; readonly message: string; readonly started?: false }

export type CommitResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: "conflict"; readonly paths: readonly string[] }
  /** nothing was written */
  | { readonly ok: false; readonly reason: "failed"; readonly message: string }
  /** whoever wrote it broke off: all of it, nothing or a part is there until the next call's recovery */
  | { readonly ok: false; readonly reason: "unknown"; readonly message: string }

export interface ControlReport {
  /** stable name, e.g. `network-isolated`, `memory-limit` */
  readonly control: string
  readonly state: "enforced" | "absent" | "degraded"
  /** what the canary did and what happened */
  readonly evidence: string
  /** what to do where it does not hold */
  readonly fix?: string
}
