import { afterAll, beforeAll, expect } from "vitest"
import type { SandboxBackend } from "../../../src/sandbox/backend.ts"
import { createDockerBackend } from "../../../src/sandbox/docker/backend.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { removeFolder, temporaryFolder } from "../../support/sealed.ts"
import { runningSuite } from "../running-suite.ts"
import { engineSuite } from "./engine-suite.ts"
import { leftovers } from "./support.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""

engineSuite("a program that runs in a container while you watch", engine, () => {
  let folder = ""
  let backend: SandboxBackend
  beforeAll(() => {
    folder = temporaryFolder("running")
    backend = createDockerBackend({ data: `${folder}/data`, engine: `unix://${socket}`, rootfs: "host" })
  })
  afterAll(async () => {
    await backend[Symbol.asyncDispose]()
    if (engine.ok) expect(await leftovers(socket, folder)).toMatchObject({ mounts: [], containers: 0 })
    removeFolder(folder)
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })
  const killed = (): string => `${folder}/killed`
  runningSuite({
    backend: () => backend,
    folder: () => folder,
    host: () => ["docker", killed(), socket],
    // The next host of that data folder removes what the dead one mounted.
    async swept() {
      await using next = createDockerBackend({ data: killed(), engine: `unix://${socket}`, rootfs: "host" })
      await next.start()
    },
  })
})
