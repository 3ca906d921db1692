/** Every hostile program of the escape suite on both backends: it is stopped on each, in the same way. */
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import type { SandboxBackend } from "../../../src/sandbox/backend.ts"
import { createDockerBackend } from "../../../src/sandbox/docker/backend.ts"
import { createNamespaceBackend } from "../../../src/sandbox/namespace/backend.ts"
import { applies, caseGroups } from "../../escape/cases/index.ts"
import type { Verdict } from "../../escape/escape-case.ts"
import { type Ground, openGround } from "../../escape/ground.ts"
import { runEscapeCase } from "../../escape/run-escape-case.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { prepared, removeFolder, temporaryFolder } from "../../support/sealed.ts"
import { engineSuite } from "./engine-suite.ts"
import { parityTable } from "./parity-table.ts"

const engine = await acquireEngine()

/** Where the docker backend is meant to come to something else, and why. */
const known = {
  "a first process rewritten to outlive its launcher does not outlive the deadline":
    "process 1 of a container cannot be opened, let alone rewritten",
  "a first process rewritten to outlive its launcher does not outlive the program":
    "process 1 of a container cannot be opened, let alone rewritten",
  "sysrq, the kernel log, kernel memory and interrupts are out of reach":
    "engines mount /dev/mqueue; it is covered by an empty read-only folder",
}
/** What must still hold there on docker: the breaches that the case reports are these and no others. */
const allowed = [
  /PermissionError: .*'\/proc\/1\/syscall'/s,
  /^the attempt did not get anywhere$/,
  /^BREACH: devices: \['mqueue'\]$/,
]

engineSuite("the escape suite on both backends", engine, () => {
  const folder = temporaryFolder("parity")
  const table = parityTable("escape suite", known)
  let ground: Ground
  let namespace: SandboxBackend
  let docker: SandboxBackend
  beforeAll(async () => {
    if (!engine.ok) return
    // The host's environment holds the bait's token before a backend starts anything.
    ground = await openGround()
    namespace = createNamespaceBackend({ data: join(folder, "namespace") })
    docker = createDockerBackend({ data: join(folder, "docker"), engine: `unix://${engine.socket}`, rootfs: "host" })
  })
  afterAll(async () => {
    if (engine.ok) {
      table.print()
      await namespace[Symbol.asyncDispose]()
      await docker[Symbol.asyncDispose]()
      await ground[Symbol.asyncDispose]()
      await engine[Symbol.asyncDispose]()
    }
    removeFolder(folder)
  })

  const cases = Object.entries(caseGroups).flatMap(([group, each]) =>
    each.filter(applies).map((one) => ({ group, one })),
  )
  it.each(cases)("$group: $one.name", async ({ one }) => {
    const here = await runEscapeCase(namespace, one, ground)
    const there = await runEscapeCase(docker, one, ground)
    expect(here.breaches).toEqual([])
    const meant = one.name in known ? allowed : []
    expect(there.breaches.filter((breach) => !meant.some((pattern) => pattern.test(breach)))).toEqual([])
    const told = [there.ending, ...there.denied, ...there.effects, there.commit].join(", ")
    // Where another program races the commit, how it ends is chance; that nothing is breached is not.
    const compared = (verdict: Verdict) => (one.commits === "any" ? verdict.breaches : verdict)
    table.agree(one.name, compared(here), compared(there), told)
  })

  it("refuses a NUL in a variable or an argument before anything runs, as the other does", async () => {
    for (const env of [{ X: "x\0--cap-add\0ALL" }, { "X\0": "y" }, { "X=Y": "z" }, { "": "z" }]) {
      const job = { argv: ["/usr/bin/sh", "-c", "true"], workspace: ground.folder }
      const run = async (backend: SandboxBackend) => (await prepared(backend, { env })).run(job)
      const [here, there] = [await run(namespace), await run(docker)]
      expect(there).toMatchObject({ ok: false, control: "environment" })
      table.agree(`variable ${JSON.stringify(env)}`, here, there)
    }
    const job = { argv: ["/usr/bin/sh", "-c", "true", "a\0b"], workspace: ground.folder }
    const run = async (backend: SandboxBackend) => (await prepared(backend)).run(job)
    const [here, there] = [await run(namespace), await run(docker)]
    expect(there).toMatchObject({ ok: false, control: "arguments" })
    table.agree("argument with a NUL", here, there)
  })
})
