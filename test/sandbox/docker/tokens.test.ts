/** Tokens that a program gets by itself, with the docker backend: the same cases as without it. */
import { afterAll } from "vitest"
import { tokenSuite } from "../../e2e/token-cases.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""

engineSuite("a program's own OAuth, with the docker backend", engine, () => {
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })
  tokenSuite("docker", () => `docker: { engine: "unix://${socket}" }\n`)
})
