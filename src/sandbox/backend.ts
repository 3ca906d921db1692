/**
 * The one interface over sandbox backends, and the plain policy value they enforce.
 *
 * Guarantees: a backend runs the command only if every control in the profile is enforced; else `prepare` or `start`
 * answers `unavailable` and nothing was started. States are types: Prepared → Running → Exited → (committed |
 * held | discarded); each is owned by the caller and disposable at any time. `profile.ts` splits a profile into the shape that
 * a sandbox is made in and the job that it is given.
 * Does not: know tools, drivers, contracts or logins.
 */
import type { Server } from "node:net"
import type { Socket as UdpSocket } from "node:dgram"
import type { Duplex, Readable, Writable } from "node:stream"
import type { WriteSet } from "./effects/types.ts"
import type { FolderIdentity } from "./folder.ts"
import type { HeldCommit, HeldCommitResult, HoldAnswer, HoldRequest } from "./layers/held.ts"
import type { LookBounds, Looked } from "./layers/look.ts"
import type {
  Captured,
  CommitResult,
  ControlReport,
  Denial,
  Ending,
  Exchanged,
  Glance,
  ImageProgram,
  ImageQuestion,
  HomeAfter,
  Job,
  Observed,
  SandboxShape,
  Unavailable,
} from "./terms.ts"

export type * from "./terms.ts"

/** Listeners that live inside the call's network namespace and are served from outside it. */
export interface Channel {
  readonly proxy: Server
  readonly transparent: ReadonlyMap<number, Server>
  readonly dnsUdp?: UdpSocket
  readonly dnsTcp?: Server
}

export interface SandboxBackend extends AsyncDisposable {
  readonly name: "namespace" | "docker"
  /** Start what the first call would otherwise wait for. A failure shows at the first call. */
  start?(): Promise<void>
  /** All that does not need the call. `cancel` ends a wait for a sandbox. */
  prepare(shape: SandboxShape, cancel?: AbortSignal): Promise<PreparedSandbox | Unavailable>
  /** Finish or undo what a crashed host left, for this workspace. Called before anything else touches it. */
  recover(workspace: string | FolderIdentity, cancel?: AbortSignal): Promise<void>
  /**
   * Write a layer that a call on this data folder left held, all of it or nothing; whichever backend ran the call.
   * `cancel` ends a wait for another commit, and no more.
   */
  commitHeld(held: HeldCommit, cancel?: AbortSignal): Promise<HeldCommitResult>
  /** What an image starts that the engine has; absent: this backend has no images. Nothing of it is run. */
  imageProgram?(question: ImageQuestion): Promise<{ readonly ok: true; readonly value: ImageProgram } | Unavailable>
  /** Prove each control with a canary that must fail. */
  examine(): Promise<readonly ControlReport[]>
}

export interface PreparedSandbox extends AsyncDisposable {
  readonly ok: true
  readonly channel: Channel | "none"
  /** Attach workspace and job and start, once. `cancel` stops the whole tree at once, whenever it comes. */
  start(job: Job, cancel: AbortSignal): Promise<RunningSandbox | Unavailable>
}

/** The program runs. Disposing ends it and throws its layer away, unless that was settled. */
export interface RunningSandbox extends AsyncDisposable {
  readonly ok: true
  /** Ended, the program reads to the end of its input. What a program that is gone does not read is lost. */
  readonly stdin: Writable
  /** A reader that stops costs a pipe's size and a buffer's: the program waits. At its end the streams end. */
  readonly stdout: Readable
  readonly stderr: Readable
  /** there where the job asked for one: `stdin` and `stdout` are then the terminal's */
  readonly terminal?: { resize(columns: number, rows: number): void }
  /** there where the shape asked for them */
  readonly pipes?: { readonly toTool: Writable; readonly fromTool: Readable }
  /** How it stands now, while it runs; rejects where nobody can tell any more. */
  glance(): Promise<Glance>
  /**
   * A connection to what the program itself listens with on its own loopback, made inside; undefined where nothing listens
   * there, where the port is one of the host's own listeners, and where the run is over. Nothing reaches it otherwise.
   */
  reach(port: number): Promise<Duplex | undefined>
  /** To the program's first process, where it still lives. */
  signal(name: NodeJS.Signals): void
  /** End the whole tree now; the first reason given is how the run ended, unless it had ended. */
  stop(ending: Ending): void
  /** The tree is gone and the layer sealed, whether or not the streams were read. */
  readonly exited: Promise<ExitedSandbox | Unavailable>
}

/** The process tree is gone; its layer is still there, unjudged. */
export interface ExitedSandbox extends AsyncDisposable {
  readonly ok: true
  readonly ending: Ending
  readonly denied: readonly Denial[]
  /** of a job that asked for it */
  readonly observed?: Observed
  readonly usage: { readonly wallMs: number; readonly cpuMs?: number; readonly peakMemoryBytes?: number }
  readonly writes: WriteSet
  /** files handed to the program and taken from it; absent where there are none, or nobody saw its processes end */
  readonly exchanged?: Exchanged
  /** what the call changed in its home, of what `home.keep` names; absent where no home is kept */
  readonly home?: WriteSet
  /** what a home in memory holds now, for whoever keeps it; absent where there is none */
  readonly homeAfter?: HomeAfter
  /** Keep that, all of it or nothing, whatever becomes of the workspace's layer. Before `commit` and `discard`. */
  keepHome(): Promise<CommitResult>
  /**
   * Write the layer to the workspace, all of it or nothing; `only`: of its effects, those at these paths, and the rest is
   * thrown away. `cancel` ends a wait for another commit, and no more.
   */
  commit(cancel?: AbortSignal, only?: readonly string[]): Promise<CommitResult>
  /** What files hold before and after, for who is to decide about it. Before `commit`, `hold` and `discard`. */
  look(bounds: LookBounds): Promise<readonly Looked[]>
  /** Keep the layer on disk beyond the call, with no process alive. Where it cannot be, it is there as before. */
  hold(request: HoldRequest): Promise<HoldAnswer>
  /** Throw the layer away. Also what disposing does. */
  discard(): Promise<void>
}

/** An exited sandbox together with what its program printed (`collect.ts`). */
export interface CollectedSandbox extends ExitedSandbox {
  readonly stdout: Captured
  readonly stderr: Captured
}
