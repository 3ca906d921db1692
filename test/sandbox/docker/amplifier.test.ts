/** Tools of Amplifier's modules with the docker backend: the same cases as without it. */
import { afterAll } from "vitest"
import { amplifierSuite } from "../../e2e/amplifier-cases.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""

engineSuite("tools of Amplifier's modules, with the docker backend", engine, () => {
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })
  amplifierSuite("docker", () => `docker: { engine: "unix://${socket}" }\n`)
})
