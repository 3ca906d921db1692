/** Drivers of kind sdk with the docker backend: the same cases as without it, and one on an image's root. */
import { join } from "node:path"
import { Readable } from "node:stream"
import { afterAll, expect, it } from "vitest"
import { openEngine } from "../../../src/sandbox/docker/engine/engine.ts"
import { openWorld } from "../../e2e/host-world.ts"
import { sdkSuite } from "../../e2e/sdk-cases.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"
import { localBase } from "./local-base.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""
const settings = (more = ""): string => `docker: { engine: "unix://${socket}"${more} }\n`
const manifests = [join(import.meta.dirname, "../../../fixtures/sdk")]

engineSuite("a driver of kind sdk, with the docker backend", engine, () => {
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })
  sdkSuite("docker", settings)

  it("runs a module on the root of an image, by the Node of this host", async (context) => {
    if (!engine.ok || !engine.owned) return context.skip("the engine is not ours to load a base image into")
    const api = openEngine({ origin: "given", socketPath: socket })
    const base = await localBase(`s${process.pid}`, "", "caisson/base")
    expect(await api.load(Readable.from([base.bytes]))).toMatchObject({ ok: true })
    try {
      await using world = await openWorld(settings(", rootfs: image"), { manifests, backend: "docker" })
      const input = { verb: "write", path: "notes/image.txt", text: "x" }
      const envelope = await world.call("sdk.notes", input, { driver: "sdk-node" })
      expect(envelope.ok ? envelope.value : envelope.error).toEqual({ said: "node: wrote notes/image.txt" })
    } finally {
      await api.removeImage("caisson/base:bookworm")
    }
  }, 180_000)
})
