/** What earlier hosts left below the data folder's `docker`, and a call that finds it there. */
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { noRoot, testNeeding } from "../../support/needing.ts"
import { sweepWorkFolders } from "../../../src/sandbox/docker/work-folder.ts"
import { mount, umount } from "../../../src/linux/mounts.ts"
import { openFolder, openWorld } from "../../e2e/host-world.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""
/** No process ever has these numbers. */
const dead = (serial: number): string => `4194999-1-${serial}`

/** A folder with things in it, a file, and a link, each under a dead host's name. */
const litter = (parent: string, precious: string): void => {
  mkdirSync(join(parent, dead(1), "deep/er"), { recursive: true })
  writeFileSync(join(parent, dead(1), "deep/file"), "left")
  writeFileSync(join(parent, dead(2)), "a file")
  symlinkSync(precious, join(parent, dead(3)))
}

describe("a sweep of dead hosts' folders", () => {
  testNeeding("removes what it may, follows no link, and goes into no mount", noRoot, () => {
    const folder = openFolder()
    const [parent, precious] = [join(folder, "docker"), join(folder, "precious")]
    mkdirSync(precious)
    writeFileSync(join(precious, "file"), "keep")
    mkdirSync(parent)
    litter(parent, precious)
    const foreign = join(parent, dead(4), "foreign")
    mkdirSync(foreign, { recursive: true })
    mount(precious, foreign, null, 4096, null)
    try {
      expect(sweepWorkFolders(parent)).toEqual([dead(1), dead(2), dead(3)])
      expect(existsSync(join(foreign, "file"))).toBe(true)
      expect(readFileSync(join(precious, "file"), "utf8")).toBe("keep")
    } finally {
      umount(foreign)
      expect(sweepWorkFolders(parent)).toEqual([dead(4)])
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

engineSuite("a host with the docker backend", engine, () => {
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })
  const config = `docker: { engine: "unix://${socket}" }\n`

  it("serves calls where an earlier host left folders, files and links", async () => {
    await using world = await openWorld(config, { backend: "docker" })
    mkdirSync(join(world.data, "docker"), { recursive: true })
    litter(join(world.data, "docker"), world.workspace)
    expect(await world.call("fixture.act", { verb: "read", args: ["README.md"] })).toMatchObject({ ok: true })
    expect(existsSync(join(world.workspace, "README.md"))).toBe(true)
  })

  it("answers with an envelope where its folder cannot be made at all", async () => {
    await using world = await openWorld(config, { backend: "docker" })
    writeFileSync(join(world.data, "docker"), "a file in the way")
    const envelope = await world.call("fixture.act", { verb: "read", args: ["README.md"] })
    expect(envelope).toMatchObject({ ok: false, error: { code: "sandbox_unavailable" } })
    expect(envelope.receipt).toMatch(/^sha256:/)
  })
})
