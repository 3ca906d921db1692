/** MCP servers that are kept, with the docker backend: the same cases as without it. */
import { afterAll, describe } from "vitest"
import { keptSuite } from "../../e2e/kept-cases.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""

engineSuite("MCP servers that are kept, with the docker backend", engine, () => {
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })
  describe("a kept server", () => keptSuite("docker", "legacy", () => `docker: { engine: "unix://${socket}" }\n`))
})
