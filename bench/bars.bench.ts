/**
 * Sealed beside unsealed, each pair in one run: a warm call, one by a module, one that finds no sandbox ready, one by the
 * command line, eight at once, and what ten thousand changed files cost beside the tool that wrote them.
 * Options: `--rounds=N`, `--files=N`.
 */
import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { createHost } from "../src/host/index.ts"
import type { SandboxShape } from "../src/sandbox/backend.ts"
import { runOnce } from "../src/sandbox/collect.ts"
import { lookAt } from "../src/sandbox/folder.ts"
import { createNamespaceBackend } from "../src/sandbox/namespace/backend.ts"
import { script } from "./many.ts"
import { bar, interleave, median, perSecond, printTable, ratioOf } from "./measure.ts"

const option = (name: string, otherwise: number): number =>
  Number(process.argv.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3) ?? otherwise)
const rounds = option("rounds", 25)
const files = option("files", 10_000)
const folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-bench-")))
const manifests = fileURLToPath(new URL("./manifests", import.meta.url))
const cli = fileURLToPath(new URL("../bin/caisson.cjs", import.meta.url))

const ended = (command: string, args: readonly string[], cwd = folder): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env["PATH"] ?? "/usr/bin", HOME: folder, CAISSON_DATA: join(folder, "cli"), NO_COLOR: "1" },
    })
    let said = ""
    let told = ""
    child.stdout.on("data", (piece: Buffer) => (told += piece.toString()))
    child.stderr.on("data", (piece: Buffer) => (said += piece.toString()))
    child.once("error", reject)
    child.once("close", (code) =>
      code === 0 ? resolve(told) : reject(new Error(`${command} ended with ${code}: ${said}`)),
    )
  })
const bareSpawn = async (): Promise<void> => void (await ended("/bin/true", []))
const bareNode = async (): Promise<void> => void (await ended(process.execPath, ["-e", "0"]))
const bareBwrap = async (): Promise<void> =>
  void (await ended("/usr/bin/bwrap", [
    "--unshare-all",
    ...["--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc", "--symlink", "usr/bin", "/bin"],
    ...["--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"],
    ...["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "/bin/true"],
  ]))

const limits = { memoryBytes: 512 * 2 ** 20, openFiles: 1024 }
const ofJob = { wallMs: 60_000, cpuMs: 60_000, diskBytes: 64 * 2 ** 20, outputBytes: 2 ** 20 }

try {
  const workspace = join(folder, "workspace")
  mkdirSync(workspace)
  await using host = await createHost({ data: join(folder, "data"), manifests: [manifests] })
  const call = async (tool: string, input = {}, where = workspace): Promise<void> => {
    const result = await host.call({ tool, input, workspace: where }, { approved: true })
    if (!result.ok) throw new Error(`${tool}: ${result.error.code} ${result.error.message}`)
  }
  await using backend = createNamespaceBackend({ data: join(folder, "backend") })
  await backend.start()
  let pids = 50
  /** No other call had this shape, so that none is ready. */
  const cold = async (): Promise<void> => {
    pids += 1
    const shape: SandboxShape = {
      executables: { program: "/usr/bin/true", children: false, spawn: {}, bundles: {} },
      network: "none",
      limits: { ...limits, pids },
      required: [],
      privatePipes: false,
    }
    const made = await backend.prepare(shape)
    if (!made.ok) throw new Error(made.message)
    await using prepared = made
    const job = {
      argv: ["/usr/bin/true"],
      env: {},
      files: {},
      workspace: lookAt(workspace),
      view: { read: ["**"], deny: [] },
      write: [],
      limits: ofJob,
      stdio: { kind: "pipes" },
    } as const
    const exited = await runOnce(prepared, job, { outputBytes: 2 ** 20 }, new AbortController().signal)
    if (!exited.ok) throw new Error(exited.message)
    await exited.discard()
  }
  const rows = await interleave(
    [
      { name: "spawn of true", run: bareSpawn },
      { name: "bwrap", run: bareBwrap },
      { name: "host.call of true", run: () => call("bench.true") },
      { name: "a sandbox that nobody foresaw", run: cold },
      { name: "node -e 0", run: bareNode },
      { name: "host.call of a module", run: () => call("bench.module") },
    ],
    rounds,
    60,
  )
  printTable("sealed beside unsealed", rows, "spawn of true")
  bar("warm sealed true, by Node's bare spawn", ratioOf(rows, "host.call of true", "spawn of true"), 1)
  bar("sealed, with none ready, by bwrap", ratioOf(rows, "a sandbox that nobody foresaw", "bwrap"), 1.5)
  bar("warm job of a module, by node -e 0", ratioOf(rows, "host.call of a module", "node -e 0"), 0.3)

  const words = (tool: string): string[] => [
    cli,
    "call",
    tool,
    "--manifests",
    manifests,
    "--workspace",
    workspace,
    "--json",
  ]
  /** By the clock that the program told, when it was started inside. */
  const starts: number[] = []
  const toSandbox = async (): Promise<void> => {
    const began = Date.now()
    const { value } = JSON.parse(await ended(process.execPath, words("bench.clock"))) as { value: unknown }
    starts.push(Number(BigInt(String(value).trim()) / 1000n) / 1000 - began)
  }
  const line = await interleave(
    [
      { name: "node -e 0", run: bareNode },
      { name: "caisson call", run: async () => void (await ended(process.execPath, words("bench.true"))) },
      { name: "caisson call, of a clock", run: toSandbox },
    ],
    Math.ceil(rounds / 3),
  )
  printTable("by the command line, no daemon", line, "node -e 0")
  const nodeMs = line.find(({ name }) => name === "node -e 0")?.median ?? Number.NaN
  bar("caisson call, from its start to the sandbox's program, by node -e 0", median(starts) / nodeMs, 4)
  console.log(`  from start to end: ${ratioOf(line, "caisson call", "node -e 0").toFixed(2)} × node -e 0`)

  const turns = { bwrap: [] as number[], call: [] as number[] }
  for (let turn = 0; turn < 5; turn += 1) {
    turns.bwrap.push(await perSecond(8, 64, bareBwrap))
    turns.call.push(await perSecond(8, 64, () => call("bench.true")))
  }
  console.log(`\n8 at once: bwrap ${median(turns.bwrap).toFixed(1)}/s, sealed ${median(turns.call).toFixed(1)}/s`)
  bar("8 at once, by bwrap's calls a second", median(turns.call) / median(turns.bwrap), 0.7, { atLeast: true })

  let made = 0
  const fresh = (): string => {
    const at = join(folder, `many-${made++}`)
    mkdirSync(at)
    return at
  }
  const many = await interleave(
    [
      {
        name: "the tool alone",
        run: async () => void (await ended("python3", ["-c", script, String(files)], fresh())),
      },
      { name: "sealed, judged and committed", run: () => call("bench.many", { files }, fresh()) },
    ],
    3,
  )
  printTable(`${files} files written`, many, "the tool alone")
  bar(`${files} changed files, by the tool alone`, ratioOf(many, "sealed, judged and committed", "the tool alone"), 3)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
