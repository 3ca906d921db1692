/** Things that happen on the host between the steps of a call, and a workspace whose parent is swapped for a link. */
import { mkdirSync, readdirSync, renameSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { expect } from "vitest"
import { createHost } from "../../src/host/index.ts"
import type { Job, RunningSandbox, SandboxBackend } from "../../src/sandbox/backend.ts"
import { fixtureTools, openWorld, type World } from "./host-world.ts"

export interface Moments {
  /** admitted and sealed; nothing runs yet */
  readonly prepared?: () => void
  /** about to be started */
  readonly started?: (job: Job) => void
  /** the tool is gone; nothing is committed yet */
  readonly exited?: () => void
}

/** Something happens on the host once the run is over, before anybody hears of it. */
const afterwards = (running: RunningSandbox, exited: () => void): RunningSandbox => ({
  ok: true,
  stdin: running.stdin,
  stdout: running.stdout,
  stderr: running.stderr,
  reach: (port) => running.reach(port),
  glance: () => running.glance(),
  signal: (name) => running.signal(name),
  stop: (ending) => running.stop(ending),
  exited: running.exited.finally(exited),
  [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
})

/** The real backend, with something happening on the host between its steps. */
export const during = (real: SandboxBackend, { prepared, started, exited }: Moments): SandboxBackend => ({
  name: real.name,
  recover: (workspace, cancel) => real.recover(workspace, cancel),
  commitHeld: (held, cancel) => real.commitHeld(held, cancel),
  examine: () => real.examine(),
  async prepare(shape, cancel) {
    const made = await real.prepare(shape, cancel)
    prepared?.()
    if (!made.ok) return made
    return {
      ok: true,
      channel: made.channel,
      [Symbol.asyncDispose]: () => made[Symbol.asyncDispose](),
      async start(job, stop) {
        started?.(job)
        const running = await made.start(job, stop)
        return running.ok && exited !== undefined ? afterwards(running, exited) : running
      },
    }
  },
  [Symbol.asyncDispose]: () => real[Symbol.asyncDispose](),
})

/** A workspace two folders deep, and a folder elsewhere that its parent is swapped for. */
const layOut = (world: World) => {
  const [allowed, secret] = [join(world.folder, "allowed"), join(world.folder, "secret")]
  for (const dir of [join(allowed, "mine/ws/notes"), join(secret, "ws/notes")]) mkdirSync(dir, { recursive: true })
  return {
    allowed,
    workspace: join(allowed, "mine/ws"),
    moved: join(allowed, "moved/ws"),
    victim: join(secret, "ws"),
    swap: () => {
      renameSync(join(allowed, "mine"), join(allowed, "moved"))
      symlinkSync(secret, join(allowed, "mine"))
    },
  }
}

/** One call with the parent swapped at that moment, and what lies in either folder afterwards. */
export const attempt = async (when: "prepared" | "exited", open: (data: string) => SandboxBackend) => {
  await using world = await openWorld()
  const place = layOut(world)
  await using real = open(world.data)
  let armed = false
  const backend = during(real, { [when]: () => armed && place.swap() })
  const config = join(world.folder, "caisson.yaml")
  await using host = await createHost({ data: world.data, manifests: [fixtureTools], config, backend })
  // The driver's own check of its version has run by then.
  expect((await host.why({ tool: "fixture.act", workspace: place.workspace })).selected).toBeDefined()
  armed = true
  const envelope = await host.call(
    { tool: "fixture.act", input: { verb: "write", args: ["notes/a.txt", "landed"] }, workspace: place.workspace },
    { approved: true },
  )
  return { envelope, stolen: readdirSync(join(place.victim, "notes")), own: readdirSync(join(place.moved, "notes")) }
}
