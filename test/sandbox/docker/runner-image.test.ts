/** A driver whose runner names an image (AIP-17), with a real engine. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Readable } from "node:stream"
import { afterAll, beforeAll, expect, it } from "vitest"
import { readReceipts } from "../../../src/host/index.ts"
import { openEngine } from "../../../src/sandbox/docker/engine/engine.ts"
import { openFolder, openWorld } from "../../e2e/host-world.ts"
import { removeFolder } from "../../support/remove-folder.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"
import { localBase } from "./local-base.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""
const api = openEngine({ origin: "given", socketPath: socket })
const mark = `i${process.pid}`
const absent = `sha256:${"0".repeat(64)}`

const tool = `---
name: Release
id: image.release
description: Which system this is.
version: 1.0.0
inputs: { type: object }
outputs: { type: string }
mutates: ["workspace:/notes/"]
approval: on-mutate
timeout_ms: 60000
---
`
const driver = (id: string, image: string): string => `---
name: Release
id: ${id}
description: d
version: 1.0.0
kind: sdk
code: { sources: [{ inline: { path: tool.mjs, content: "import { readFileSync, writeFileSync } from 'node:fs'; export default ({ path = 'notes/a.txt' }) => { writeFileSync(path, 'x'); return readFileSync('/etc/os-release', 'utf8') }" } }] }
run: tool.mjs
runner: { engine: sandbox, image: "${image}", needs: { language: node } }
implements: [{ tool: image.release, version: ^1.0.0 }]
---
`

engineSuite("a runner's image", engine, () => {
  let manifests = ""
  let id = ""
  beforeAll(async () => {
    if (!engine.ok) return
    const base = await localBase(mark)
    expect(await api.load(Readable.from([base.bytes]))).toMatchObject({ ok: true })
    id = base.id
    manifests = openFolder()
    const put = (name: string, file: string, text: string): void => {
      mkdirSync(join(manifests, name))
      writeFileSync(join(manifests, name, file), text)
    }
    put("t", "TOOL.md", tool)
    put("pinned", "DRIVER.md", driver("image-pinned", id))
    put("absent", "DRIVER.md", driver("image-absent", absent))
    put("named", "DRIVER.md", driver("image-named", `caisson/test-base:${mark}`))
  })
  afterAll(async () => {
    if (!engine.ok) return
    await api.removeImage(`caisson/test-base:${mark}`)
    removeFolder(manifests)
    await engine[Symbol.asyncDispose]()
  })
  const open = (backend: "docker" | "namespace") =>
    openWorld(backend === "docker" ? `docker: { engine: "unix://${socket}" }\n` : "", {
      manifests: [manifests],
      backend,
    })

  it("is the root of its calls, which are sealed and judged as always; the receipt has its digest", async (context) => {
    if (!engine.ok || !engine.owned) return context.skip("the engine is not ours to load an image into")
    await using world = await open("docker")
    const envelope = await world.call("image.release", {}, { driver: "image-pinned" })
    expect(envelope.ok ? envelope.value : envelope.error).toContain(`NAME=${mark}`)
    expect(envelope.effects).toMatchObject([{ path: "notes/a.txt", committed: true }])
    expect(JSON.stringify(readReceipts(world.data, { call: envelope.call }))).toContain(`"runner_image":"${id}"`)
    expect(readFileSync("/etc/os-release", "utf8")).not.toContain(`NAME=${mark}`)
    const stray = await world.call("image.release", { path: "stray.txt" }, { driver: "image-pinned" })
    expect(stray).toMatchObject({ ok: false, error: { code: "undeclared_write" } })
  }, 180_000)
  it("that the engine does not have, or that is not named by its digest, is refused by name; nothing is fetched", async (context) => {
    if (!engine.ok || !engine.owned) return context.skip("the engine is not ours to load an image into")
    await using world = await open("docker")
    const listed = await world.host.drivers()
    const reasonOf = (name: string): unknown => listed.find(({ contract }) => contract.id === name)?.availability
    expect(reasonOf("image-absent")).toMatchObject({
      available: false,
      code: "sandbox_unavailable",
      reason: expect.stringContaining(`the engine does not have the image ${absent}`) as string,
    })
    expect(reasonOf("image-named")).toMatchObject({
      available: false,
      code: "sandbox_unavailable",
      reason: expect.stringContaining("not named by its digest") as string,
    })
  }, 180_000)
  it("is refused by name with the namespace backend", async () => {
    await using world = await open("namespace")
    const listed = await world.host.drivers()
    expect(listed.find(({ contract }) => contract.id === "image-pinned")?.availability).toMatchObject({
      available: false,
      code: "sandbox_unavailable",
      reason: expect.stringMatching(/runner image .* the namespace backend shows the machine's own programs/) as string,
    })
  })
})
