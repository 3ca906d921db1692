/** Commands without a manifest in containers: as in the namespace backend, and without a record of what they ask for. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, afterEach, beforeEach, expect, it } from "vitest"
import { openWorld, type World } from "../../e2e/host-world.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""
let world: World

engineSuite("a command, with the docker backend", engine, () => {
  beforeEach(async () => {
    world = await openWorld(`docker: { engine: "unix://${socket}" }\n`, { backend: "docker" })
  })
  afterEach(() => world[Symbol.asyncDispose]())
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })

  it("has its output, its exit code and its changes, and is not observed", async () => {
    const { workspace, host } = world
    const command = ["sh", "-c", "cat README.md; echo kept > b; exit $0"]
    const request = { workspace, write: ["b"], exec: ["cat"] }
    const good = await host.run({ ...request, command: [...command, "0"] }, { approved: true })
    expect(good).toMatchObject({ ok: true, value: { exit_code: 0, stdout: "read me\n" } })
    expect(good.access?.means).toBe("none")
    expect(readFileSync(join(workspace, "b"), "utf8")).toBe("kept\n")
    const bad = await host.run({ ...request, command: [...command, "9"] }, { approved: true })
    expect(bad).toMatchObject({ ok: false, error: { details: { exit_code: 9 } } })
  })

  it("that is to be observed is refused by that name, and nothing runs", async () => {
    const { workspace, host } = world
    const request = { workspace, command: ["sh", "-c", "echo ran > b"], write: ["b"], observe: true }
    const envelope = await host.run(request, { approved: true })
    expect(envelope).toMatchObject({
      ok: false,
      error: { code: "sandbox_unavailable", details: { control: "observe" } },
    })
    expect(existsSync(join(workspace, "b"))).toBe(false)
  })
})
