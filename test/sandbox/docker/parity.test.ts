import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, it } from "vitest"
import type { Denial, SandboxBackend } from "../../../src/sandbox/backend.ts"
import { createDockerBackend } from "../../../src/sandbox/docker/backend.ts"
import type { Effect } from "../../../src/sandbox/effects/types.ts"
import { createNamespaceBackend } from "../../../src/sandbox/namespace/backend.ts"
import { writeSetCases } from "../../corpus/write-set-cases.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { prepareFor, profileOf } from "../../support/sealed.ts"
import { engineSuite } from "./engine-suite.ts"
import { parityCases, type ParityCase } from "./parity-cases.ts"
import { parityTable } from "./parity-table.ts"

/** Where the docker backend is meant to come to something else, and why. */
const known = {
  user: "the number of the tool's user: containers share the machine's user namespace, so it is one that owns nothing",
  "the folder /sys": "engines insist on the folder; it is covered by an empty read-only one",
  "memory that may be locked": "64 KiB in a container; elsewhere the host's own limit holds",
}

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""

interface Verdict {
  readonly ending: unknown
  readonly out: string
  readonly err: string
  readonly truncated: boolean
  readonly effects: readonly Effect[]
  readonly denied: readonly Omit<Denial, "count">[]
}
const writeCases: readonly ParityCase[] = writeSetCases.map((each) => ({
  name: `writes: ${each.name}`,
  argv: ["/usr/bin/sh", "-c", `umask 022; ${each.run}`],
  before: each.before,
}))

engineSuite("the two backends", engine, () => {
  const folder = mkdtempSync(join(tmpdir(), "caisson-parity-"))
  const backends: Readonly<Record<string, SandboxBackend>> = engine.ok
    ? {
        namespace: createNamespaceBackend({ data: join(folder, "namespace") }),
        docker: createDockerBackend({
          data: join(folder, "docker"),
          engine: `unix://${socket}`,
          rootfs: "host",
          pool: { perProfile: 3 },
        }),
      }
    : {}
  const table = parityTable("endings, limits, network, writes", known)
  afterAll(async () => {
    if (engine.ok) table.print()
    for (const backend of Object.values(backends)) await backend[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })

  const verdict = async (backend: SandboxBackend, each: ParityCase): Promise<Verdict> => {
    const workspace = mkdtempSync(join(folder, "ws-"))
    execFileSync("/bin/sh", ["-c", `umask 022; ${each.before ?? "true"}`], { cwd: workspace })
    const prepared = await prepareFor(backend, profileOf(each.overrides))
    if (!prepared.ok) throw new Error(`${prepared.control}: ${prepared.message}`)
    const exited = await prepared.run({ argv: each.argv, stdin: each.stdin ?? "", workspace })
    if (!exited.ok) return { ending: exited, out: "", err: "", truncated: false, effects: [], denied: [] }
    await exited.discard()
    const quiet = each.quiet === true
    const text = (bytes: Uint8Array): string => (quiet ? "" : Buffer.from(bytes).toString("latin1"))
    return {
      // The words of an infrastructure failure are each backend's own.
      ending: exited.ending.by === "infrastructure" ? { by: "infrastructure" } : exited.ending,
      out: text(exited.stdout.bytes),
      err: text(exited.stderr.bytes),
      truncated: exited.stdout.truncated,
      effects: exited.writes.effects,
      denied: exited.denied.map(({ layer, reason, target }) => ({ layer, reason, target })),
    }
  }

  it.each([...parityCases, ...writeCases])("agree on: $name", async (each) => {
    const [namespace, docker] = [
      await verdict(backends["namespace"] as SandboxBackend, each),
      await verdict(backends["docker"] as SandboxBackend, each),
    ]
    const { ending, effects, denied } = docker
    table.agree(
      each.name,
      namespace,
      docker,
      `${JSON.stringify(ending)}, effects ${effects.length}, denied ${denied.length}`,
    )
  })
})
