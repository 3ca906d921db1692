import { closeSync, cpSync, existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { createHost } from "../../src/host/index.ts"
import type { SandboxBackend } from "../../src/sandbox/backend.ts"
import { withFolderLock } from "../../src/sandbox/effects/commit/lock.ts"
import { openTxRoot } from "../../src/sandbox/effects/commit/recovery/tx-root.ts"
import { folderKey, lookAt } from "../../src/sandbox/folder.ts"
import { createNamespaceBackend } from "../../src/sandbox/namespace/backend.ts"
import { fixtureTools, openWorld } from "./host-world.ts"
import { attempt, during } from "./swap.ts"

const namespace = (data: string): SandboxBackend => createNamespaceBackend({ data })

describe("a workspace whose parent is swapped for a link", () => {
  it("after the tool has run lands nothing where the link leads, and nothing is committed", async () => {
    const { envelope, stolen, own } = await attempt("exited", namespace)
    expect(stolen).toEqual([])
    expect(envelope).toMatchObject({ ok: false, error: { message: expect.stringContaining("moved or replaced") } })
    expect(own).toEqual([])
  })

  it("between admission and the run shows the tool nothing of where the link leads", async () => {
    const { envelope, stolen, own } = await attempt("prepared", namespace)
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
      const envelope = await other.call(
        { tool: "fixture.act", input: { verb: "write", args: ["notes/a.txt", "x"] }, workspace: world.workspace },
        { approved: true, signal: cancel.signal },
      )
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
      host.call(
        {
          tool: "fixture.act",
          input: { verb: "write", args: [path, "egress: everything"] },
          workspace: world.workspace,
        },
        { approved: true },
      )
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
