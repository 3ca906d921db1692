/** Files of a contract with the docker backend: the same cases as without it. */
import { afterAll, describe } from "vitest"
import { hostileSuite, kindsSuite, openFilesWorld } from "../../e2e/files-cases.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"

const engine = await acquireEngine()
const settings = engine.ok ? `docker: { engine: "unix://${engine.socket}" }\n` : ""
const open = () => openFilesWorld({ settings, backend: "docker" })

engineSuite("files of a contract, with the docker backend", engine, () => {
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })
  describe("kind by kind", () => kindsSuite(["turn-cli", "turn-sdk", "turn-mcp", "turn-own"], open))
  describe("tried by hostile programs and workspaces", () => hostileSuite(open))
})
