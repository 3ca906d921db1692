/** The workspace stays the folder that was admitted, with containers too. */
import { afterAll, expect, it } from "vitest"
import type { SandboxBackend } from "../../../src/sandbox/backend.ts"
import { createDockerBackend } from "../../../src/sandbox/docker/backend.ts"
import { attempt } from "../../e2e/swap.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"

const engine = await acquireEngine()
const docker = (data: string): SandboxBackend =>
  createDockerBackend({ data, engine: `unix://${engine.ok ? engine.socket : ""}`, pool: { perProfile: 0 } })

engineSuite("a workspace whose parent is swapped for a link, in a container", engine, () => {
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })
  it.each(["prepared", "exited"] as const)("once it is %s lands nothing where the link leads", async (when) => {
    const { envelope, stolen, own } = await attempt(when, docker)
    expect(stolen).toEqual([])
    expect(envelope).toMatchObject({ ok: false, error: { message: expect.stringContaining("moved or replaced") } })
    expect(own).toEqual([])
  })
})
