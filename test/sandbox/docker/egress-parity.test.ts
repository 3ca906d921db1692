/** The egress corpus from inside a sandbox of each backend: the same verdicts, dials and denials, test by test. */
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import type { SandboxBackend } from "../../../src/sandbox/backend.ts"
import { createDockerBackend } from "../../../src/sandbox/docker/backend.ts"
import { createNamespaceBackend } from "../../../src/sandbox/namespace/backend.ts"
import { egressFromInside } from "../../corpus/egress-from-inside.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { removeFolder, temporaryFolder } from "../../support/sealed.ts"
import { engineSuite } from "./engine-suite.ts"
import { parityTable } from "./parity-table.ts"

const engine = await acquireEngine()

engineSuite("the egress corpus on both backends", engine, () => {
  if (!engine.ok) {
    it("comes to the same on both", () => expect.unreachable())
    return
  }
  const folder = temporaryFolder("egress-parity")
  const table = parityTable("egress corpus from inside")
  const backends = {
    namespace: createNamespaceBackend({ data: join(folder, "namespace") }),
    docker: createDockerBackend({ data: join(folder, "docker"), engine: `unix://${engine.socket}`, rootfs: "host" }),
  } satisfies Record<string, SandboxBackend>
  afterAll(async () => {
    table.print()
    for (const backend of Object.values(backends)) await backend[Symbol.asyncDispose]()
    removeFolder(folder)
    await engine[Symbol.asyncDispose]()
  })

  const came = { namespace: new Map<string, unknown[]>(), docker: new Map<string, unknown[]>() }
  for (const name of ["namespace", "docker"] as const) {
    describe(name, () => {
      egressFromInside(
        () => backends[name],
        (test, what) => came[name].set(test, [...(came[name].get(test) ?? []), what]),
      )
    })
  }

  it("comes to the same on both", () => {
    expect(came.namespace.size).toBeGreaterThan(100)
    expect([...came.docker.keys()]).toEqual([...came.namespace.keys()])
    for (const [test, here] of came.namespace) table.agree(test, here, came.docker.get(test))
  })
})
