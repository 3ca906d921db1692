/** Calls within calls with the docker backend: the same cases as without it. */
import { afterAll } from "vitest"
import { nestedSuite } from "../../e2e/nested-cases.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""

engineSuite("calls within calls, with the docker backend", engine, () => {
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })
  nestedSuite("docker", () => `docker: { engine: "unix://${socket}" }\n`)
})
