/** What commands hear from the network, kept and answered again, with the docker backend: the same cases as without it. */
import { afterAll } from "vitest"
import { replaySuite } from "../../e2e/replay-cases.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""

engineSuite("runs over the network, with the docker backend", engine, () => {
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })
  replaySuite("docker", `docker: { engine: "unix://${socket}" }\n`)
})
