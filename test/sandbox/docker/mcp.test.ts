/** MCP servers with the docker backend: the same cases as without it. */
import { afterAll, describe } from "vitest"
import { mcpSuite } from "../../e2e/mcp-cases.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""

engineSuite("MCP servers, with the docker backend", engine, () => {
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })
  describe.each(["legacy", "modern"] as const)("a server of the %s era", (era) =>
    mcpSuite("docker", era, () => `docker: { engine: "unix://${socket}" }\n`),
  )
})
