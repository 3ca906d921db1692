import { closeSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { createHost } from "../../src/host/index.ts"
import type { ExitedSandbox, SandboxBackend } from "../../src/sandbox/backend.ts"
import { withFolderLock } from "../../src/sandbox/effects/commit/lock.ts"
import { openTxRoot } from "../../src/sandbox/effects/commit/tx-root.ts"
import { folderKey, lookAt } from "../../src/sandbox/folder.ts"
import { createNamespaceBackend } from "../../src/sandbox/namespace/backend.ts"
import { fixtureTools, openWorld, type World } from "./host-world.ts"

interface Moments {
  /** admitted and sealed; nothing runs yet */
  readonly prepared?: () => void
  /** the tool is gone; nothing is committed yet */
  readonly exited?: () => void
}

/** The real backend, with something happening on the host between its steps. */
const during = (real: SandboxBackend, { prepared, exited }: Moments): SandboxBackend => ({
  name: real.name,
  recover: (workspace, cancel) => real.recover(workspace, cancel),
  examine: () => real.examine(),
  async prepare(profile) {
    const made = await real.prepare(profile)
    prepared?.()
    if (!made.ok) return made
    return {
      ok: true,
      channel: made.channel,
      [Symbol.asyncDispose]: () => made[Symbol.asyncDispose](),
      async run(job, cancel) {
        const ended = await made.run(job, cancel)
        exited?.()
        return ended as ExitedSandbox
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

describe("a workspace whose parent is swapped for a link", () => {
  const attempt = async (when: keyof Moments) => {
    await using world = await openWorld()
    const place = layOut(world)
    await using real = createNamespaceBackend({ data: world.data })
    let armed = false
    const backend = during(real, { [when]: () => armed && place.swap() })
    const config = join(world.folder, "caisson.yaml")
    await using host = await createHost({ data: world.data, manifests: [fixtureTools], config, backend })
    // The driver's own check of its version has run by then.
    expect((await host.why({ tool: "fixture.act", workspace: place.workspace })).selected).toBeDefined()
    armed = true
    const envelope = await host.call({
      tool: "fixture.act",
      input: { verb: "write", args: ["notes/a.txt", "landed"] },
      workspace: place.workspace,
      approve: true,
    })
    return { envelope, stolen: readdirSync(join(place.victim, "notes")), own: readdirSync(join(place.moved, "notes")) }
  }

  it("after the tool has run lands nothing where the link leads, and nothing is committed", async () => {
    const { envelope, stolen, own } = await attempt("exited")
    expect(stolen).toEqual([])
    expect(envelope).toMatchObject({ ok: false, error: { message: expect.stringContaining("moved or replaced") } })
    expect(own).toEqual([])
  })

  it("between admission and the run shows the tool nothing of where the link leads", async () => {
    const { envelope, stolen, own } = await attempt("prepared")
    expect(stolen).toEqual([])
    expect(envelope).toMatchObject({ ok: false, error: { message: expect.stringContaining("moved or replaced") } })
    expect(own).toEqual([])
  })
})

describe("a commit that waits for another one on the same workspace", () => {
  it("hears that its call was cancelled, and commits nothing", async () => {
    await using world = await openWorld()
    await using real = createNamespaceBackend({ data: world.data })
    const cancel = new AbortController()
    const config = join(world.folder, "caisson.yaml")
    // The driver's version is known by then.
    await world.host.why({ tool: "fixture.act", workspace: world.workspace })
    const root = openTxRoot(join(world.data, "tx"))
    try {
      const held = Promise.withResolvers<void>()
      let locked: Promise<void> = Promise.resolve()
      const started = during(real, {
        prepared: () => {
          locked = withFolderLock(root, folderKey(lookAt(world.workspace)), {}, () => held.promise)
        },
        exited: () => setImmediate(() => cancel.abort()),
      })
      await using other = await createHost({ data: world.data, manifests: [fixtureTools], config, backend: started })
      const envelope = await other.call({
        tool: "fixture.act",
        input: { verb: "write", args: ["notes/a.txt", "x"] },
        workspace: world.workspace,
        approve: true,
        signal: cancel.signal,
      })
      held.resolve()
      await locked
      expect(envelope).toMatchObject({ ok: false, error: { code: "cancelled" } })
      expect(readdirSync(join(world.workspace, "notes"))).toEqual(["old.txt"])
    } finally {
      closeSync(root)
    }
  })
})

describe("a workspace that holds the manifests in use", () => {
  it("lets no tool rewrite them, though its contract covers the path", async () => {
    await using world = await openWorld()
    const tools = join(world.workspace, "notes/tools")
    cpSync(fixtureTools, tools, { recursive: true })
    const config = join(world.folder, "caisson.yaml")
    await using host = await createHost({ data: join(world.folder, "data2"), manifests: [tools], config })
    const target = join("notes/tools", "actor/DRIVER.md")
    const was = readFileSync(join(world.workspace, target), "utf8")
    const write = (path: string) =>
      host.call({
        tool: "fixture.act",
        input: { verb: "write", args: [path, "egress: everything"] },
        workspace: world.workspace,
        approve: true,
      })
    expect(await write(target)).toMatchObject({
      ok: false,
      error: { code: "undeclared_write", message: expect.stringContaining("the host uses it: manifests") },
    })
    expect(await write("notes/tools/new.md")).toMatchObject({ ok: false, error: { code: "undeclared_write" } })
    expect(readFileSync(join(world.workspace, target), "utf8")).toBe(was)
    expect(existsSync(join(tools, "new.md"))).toBe(false)
    expect(await write("notes/free.md")).toMatchObject({ ok: true })
  })
})
