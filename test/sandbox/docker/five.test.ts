/** One contract served by five kinds of driver, with the docker backend: the same cases as without it. */
import { afterAll } from "vitest"
import { fiveSuite } from "../../e2e/five-cases.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""

engineSuite("one contract of five kinds of driver, with the docker backend", engine, () => {
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })
  fiveSuite("docker", () => `docker: { engine: "unix://${socket}" }\n`)
})
