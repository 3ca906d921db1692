/** A backend that starts nothing: it ends each run as the test says and remembers what was asked of it. */
import { Readable, Writable } from "node:stream"
import type {
  CommitResult,
  Denial,
  Ending,
  Job,
  ExitedSandbox,
  SandboxBackend,
  SandboxShape,
  Unavailable,
} from "../../../src/sandbox/backend.ts"
import type { Effect } from "../../../src/sandbox/effects/types.ts"

export interface FakeRun {
  readonly ending?: Ending
  readonly stdout?: string
  readonly stderr?: string
  readonly effects?: readonly Effect[]
  readonly denied?: readonly Denial[]
  readonly commit?: CommitResult
  /** what it changed in its home */
  readonly home?: readonly Effect[]
  readonly keep?: CommitResult
  /** instead of a run */
  readonly refuse?: Unavailable
  readonly throws?: Error
  /** it ran, and what it left cannot be told */
  readonly lost?: Unavailable
  readonly commitThrows?: Error
  /** run until cancelled */
  readonly hang?: boolean
}

export interface FakeBackend extends SandboxBackend {
  readonly shapes: SandboxShape[]
  readonly jobs: Job[]
  readonly settled: ("committed" | "discarded")[]
  readonly log: string[]
}

const exitOf = async (
  run: FakeRun,
  { settled, log }: Pick<FakeBackend, "settled" | "log">,
  cancel: AbortSignal,
): Promise<ExitedSandbox | Unavailable> => {
  if (run.lost !== undefined) return run.lost
  let ending = run.ending ?? ({ by: "exit", code: 0 } as const)
  if (run.hang === true) {
    if (!cancel.aborted)
      await new Promise<void>((resolve) => cancel.addEventListener("abort", () => resolve(), { once: true }))
    ending = { by: "cancelled" }
  }
  let open = true
  const discard = async (): Promise<void> => {
    if (open) settled.push("discarded")
    open = false
  }
  return {
    ok: true,
    ending,
    denied: run.denied ?? [],
    usage: { wallMs: 1 },
    writes: { effects: run.effects ?? [], bytes: 0 },
    ...(run.home === undefined ? {} : { home: { effects: run.home, bytes: 0 } }),
    async keepHome() {
      const result = run.keep ?? { ok: true as const }
      log.push(result.ok ? "kept home" : "lost home")
      return result
    },
    look: async () => [],
    async commit() {
      if (run.commitThrows !== undefined) throw run.commitThrows
      const result = run.commit ?? { ok: true as const }
      if (open) settled.push(result.ok ? "committed" : "discarded")
      open = false
      return result
    },
    async hold() {
      return { ok: false, message: "this backend keeps nothing" }
    },
    discard,
    [Symbol.asyncDispose]: discard,
  }
}

export const fakeBackend = (...runs: readonly FakeRun[]): FakeBackend => {
  const left = [...runs]
  const fake: Omit<FakeBackend, "prepare" | "examine" | "recover" | "commitHeld" | typeof Symbol.asyncDispose> = {
    name: "namespace",
    shapes: [],
    jobs: [],
    settled: [],
    log: [],
  }
  return {
    ...fake,
    async prepare(shape) {
      const run = left.shift() ?? {}
      fake.shapes.push(shape)
      if (run.refuse !== undefined) return run.refuse
      let used = false
      return {
        ok: true,
        channel: "none",
        async start(job, cancel) {
          used = true
          fake.jobs.push(job)
          if (run.throws !== undefined) throw run.throws
          const exited = exitOf(run, fake, cancel)
          return {
            ok: true,
            stdin: new Writable({ write: (_chunk, _encoding, done) => done() }),
            stdout: Readable.from([Buffer.from(run.stdout ?? "")]),
            stderr: Readable.from([Buffer.from(run.stderr ?? "")]),
            reach: async () => undefined,
            glance: async () => ({ written: false, denied: [] }),
            signal: () => undefined,
            stop: () => undefined,
            exited,
            [Symbol.asyncDispose]: async () => {
              const ended = await exited
              if (ended.ok) await ended.discard()
            },
          }
        },
        async [Symbol.asyncDispose]() {
          fake.log.push("released")
          // One that was only looked at is there for the next.
          if (!used) left.unshift(run)
          used = true
        },
      }
    },
    async commitHeld() {
      return { ok: false, reason: "failed", message: "this backend keeps nothing" }
    },
    async recover(workspace) {
      fake.log.push(`recovered ${typeof workspace === "string" ? workspace : workspace.path}`)
    },
    examine: async () => [],
    [Symbol.asyncDispose]: async () => undefined,
  }
}
