/** Drivers that are composed of code, with the docker backend: the same cases as without it. */
import { afterAll } from "vitest"
import { codeSuite } from "../../e2e/code-cases.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""

engineSuite("a driver that is composed of code, with the docker backend", engine, () => {
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })
  codeSuite("docker", () => `docker: { engine: "unix://${socket}" }\n`)
})
