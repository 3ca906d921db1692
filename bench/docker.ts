/**
 * A sealed call in a container, cold and from the pool, beside the engine's own `docker run --rm --network none` of the
 * same programs on the same engine, in the same run. Workspaces of ten and of fifty thousand files.
 *
 * Bars: a pooled call at most 0.05 of `docker run`, one with changes 0.10; a cold one no slower than it.
 */
import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import type { SandboxProfile } from "../src/sandbox/backend.ts"
import { runOnce } from "../src/sandbox/collect.ts"
import { createDockerBackend } from "../src/sandbox/docker/backend.ts"
import { jobOf, shapeOf } from "../src/sandbox/profile.ts"
import { acquireEngine } from "../test/support/docker-engine.ts"
import { bar, interleave, printTable } from "./measure.ts"

const rounds = 20
const mebibyte = 2 ** 20
const profile: SandboxProfile = {
  executables: {
    program: "/usr/bin/true",
    children: true,
    spawn: { sh: "/usr/bin/sh", rm: "/usr/bin/rm" },
    bundles: {},
  },
  view: { read: ["**"], deny: [] },
  write: ["**"],
  env: { PATH: "/usr/bin", HOME: "/home/tool" },
  tty: false,
  network: { proxyPort: 3128, transparentPorts: [80, 443], dns: true },
  limits: {
    wallMs: 30_000,
    memoryBytes: 256 * mebibyte,
    pids: 64,
    diskBytes: 64 * mebibyte,
    outputBytes: mebibyte,
    openFiles: 1024,
  },
  required: [],
  files: {},
}

const fillWorkspace = (folder: string, files: number): string => {
  const perFolder = 500
  for (let index = 0; index < files; index += 1) {
    const dir = join(folder, `d${Math.floor(index / perFolder)}`)
    if (index % perFolder === 0) mkdirSync(dir, { recursive: true })
    writeFileSync(join(dir, `f${index}`), `${index}\n`)
  }
  return folder
}

const engine = await acquireEngine()
if (!engine.ok) {
  console.log(`not measured: ${engine.reason}`)
  process.exit(0)
}
const dir = mkdtempSync(join(tmpdir(), "caisson-bench-docker-"))
const socket = `unix://${engine.socket}`
const docker = promisify(execFile)
try {
  const [small, large] = [fillWorkspace(join(dir, "small"), 10), fillWorkspace(join(dir, "large"), 50_000)]
  await using pooled = createDockerBackend({
    data: join(dir, "pooled"),
    engine: socket,
    rootfs: "host",
    pool: { perProfile: 1 },
  })
  await using cold = createDockerBackend({ data: join(dir, "cold"), engine: socket, rootfs: "host" })
  const call = async (backend: typeof pooled, argv: readonly string[], workspace: string): Promise<void> => {
    const prepared = await backend.prepare(shapeOf(profile))
    if (!prepared.ok) throw new Error(prepared.message)
    const job = jobOf(profile, { argv, workspace })
    const output = { stdin: new Uint8Array(), outputBytes: profile.limits.outputBytes }
    const exited = await runOnce(prepared, job, output, new AbortController().signal)
    if (!exited.ok || exited.ending.by !== "exit" || exited.ending.code !== 0) throw new Error("the call failed")
    await exited.discard()
  }
  // The pool is full again before each measured call: refilling is not on its path.
  const fromPool = async (argv: readonly string[], workspace: string): Promise<number> => {
    await pooled.warm(shapeOf(profile))
    const start = performance.now()
    await call(pooled, argv, workspace)
    return performance.now() - start
  }
  const changes = [
    "/usr/bin/sh",
    "-c",
    "for i in 1 2 3 4 5; do echo $i > d0/new$i; done; for i in 0 1 2 3 4; do rm d0/f$i; done",
  ]
  const image = await cold.connectedEngine().then(async (connectedEngine) => {
    if ("ok" in connectedEngine) throw new Error(connectedEngine.message)
    const root = await connectedEngine.rootFor(profile.executables)
    if (!root.ok) throw new Error(root.failure.message)
    return root.value.image
  })
  const dockerRun = async (): Promise<void> => {
    await docker("docker", [
      "-H",
      socket,
      "run",
      "--rm",
      "--network",
      "none",
      "--log-driver",
      "none",
      "-v",
      "/usr:/usr:ro",
      image,
      "/usr/bin/true",
    ])
  }
  const rows = await interleave(
    [
      { name: "docker run --rm --network none true", run: dockerRun },
      { name: "cold sealed call of true", run: () => call(cold, ["/usr/bin/true"], small) },
    ],
    rounds,
  )
  const sample = async (name: string, argv: readonly string[], workspace: string) => {
    const times: number[] = []
    for (let round = 0; round < rounds; round += 1) times.push(await fromPool(argv, workspace))
    const sorted = times.toSorted((a, b) => a - b)
    return {
      name,
      median: sorted[Math.floor(rounds / 2)] ?? Number.NaN,
      p90: sorted[Math.floor(rounds * 0.9)] ?? Number.NaN,
    }
  }
  rows.push(await sample("pooled sealed call of true, 10 files", ["/usr/bin/true"], small))
  rows.push(await sample("pooled sealed call of true, 50 k files", ["/usr/bin/true"], large))
  rows.push(await sample("pooled call, ten changes, 10 files", changes, small))
  rows.push(await sample("pooled call, ten changes, 50 k files", changes, large))
  const base = "docker run --rm --network none true"
  printTable("containers", rows, base)
  const median = (name: string): number => rows.find((row) => row.name === name)?.median ?? Number.NaN
  bar("pooled call of true, by docker run", median("pooled sealed call of true, 10 files") / median(base), 0.05)
  bar("pooled call with ten changes, by docker run", median("pooled call, ten changes, 50 k files") / median(base), 0.1)
  bar("cold sealed call, by docker run", median("cold sealed call of true") / median(base), 1)
} finally {
  await engine[Symbol.asyncDispose]()
  rmSync(dir, { recursive: true, force: true })
}
