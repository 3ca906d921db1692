/** Functions of a driver's own with the docker backend: the same cases as without it. */
import { afterAll } from "vitest"
import { ownFunctionsSuite } from "../../e2e/own-functions-cases.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""

engineSuite("a driver's own functions, with the docker backend", engine, () => {
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })
  ownFunctionsSuite("docker", () => `docker: { engine: "unix://${socket}" }\n`)
})
