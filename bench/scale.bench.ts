/**
 * What grows with size on one machine, as ratios in one run: a call among a thousand tools beside one among a handful, the
 * last of ten thousand calls beside the first, fifty users in turn beside one, a workspace of a million files beside a small
 * one, two gigabytes written beside the tool alone; and the memory of the host over them.
 * Options: `--tools=N`, `--calls=N`, `--users=N`, `--workspace=N` (files), `--megabytes=N`, `--rounds=N`; `--small` for a look
 * at all of it in a minute or two.
 */
import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { createHost, processCaller } from "../src/host/index.ts"
import type { Host } from "../src/host/types.ts"
import { bar, interleave, median, printTable, ratioOf } from "./measure.ts"

const small = process.argv.includes("--small")
const option = (name: string, otherwise: number, inShort: number): number => {
  const told = process.argv.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3)
  return Number(told ?? (small ? inShort : otherwise))
}
const sizes = {
  tools: option("tools", 1_000, 200),
  calls: option("calls", 10_000, 200),
  users: option("users", 50, 10),
  files: option("workspace", 1_000_000, 20_000),
  megabytes: option("megabytes", 2_048, 64),
  rounds: option("rounds", 25, 7),
}
const folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-bench-")))
const manifests = fileURLToPath(new URL("./manifests", import.meta.url))
const workspace = join(folder, "workspace")

/** What this process, the host, has for itself, in megabytes. */
const memory = (): number =>
  Number(/Private_Dirty:\s+(\d+)/.exec(readFileSync("/proc/self/smaps_rollup", "utf8"))?.[1] ?? 0) / 1024
const call = async (host: Host, tool: string, input = {}, at = workspace, user = "alice"): Promise<void> => {
  const caller = processCaller(user)
  const result = await host.call({ tool, input, workspace: at }, { caller, approved: true })
  if (!result.ok) throw new Error(`${tool}: ${result.error.code} ${result.error.message}`)
}
const timed = async (run: () => Promise<unknown>): Promise<number> => {
  const began = performance.now()
  await run()
  return performance.now() - began
}
const flat = (what: string, ratio: number, most = 1.2): void => bar(what, ratio, most)

const manyTools = (): string => {
  const at = join(folder, "tools")
  const tool = readFileSync(join(manifests, "tools/true/TOOL.md"), "utf8")
  const driver = readFileSync(join(manifests, "true/DRIVER.md"), "utf8")
  for (let n = 0; n < sizes.tools; n += 1) {
    for (const part of ["tool", "driver"]) mkdirSync(join(at, `t${n}`, part), { recursive: true })
    writeFileSync(join(at, `t${n}/tool/TOOL.md`), tool.replace("bench.true", `bench.true-${n}`))
    const own = driver
      .replace("id: bench-true", `id: bench-true-${n}`)
      .replace("../tools/true/TOOL.md", "../tool/TOOL.md")
    writeFileSync(join(at, `t${n}/driver/DRIVER.md`), own)
  }
  return at
}
const manyFiles = (files: number): string => {
  const at = join(folder, `files-${files}`)
  for (let n = 0; n < files; n += 1) {
    const dir = join(at, `d${Math.floor(n / 1000)}`)
    if (n % 1000 === 0) mkdirSync(dir, { recursive: true })
    writeFileSync(join(dir, `f${n}`), "")
  }
  return at
}

const tools = async (): Promise<void> => {
  const all = [manifests, manyTools()]
  const options = (name: string, from: readonly string[]) => ({ data: join(folder, name), manifests: [...from] })
  const starts = { few: [] as number[], many: [] as number[] }
  for (let turn = 0; turn < 3; turn += 1) {
    const begin = (name: string, from: readonly string[]): Promise<number> =>
      timed(async () => (await createHost(options(`${name}-${turn}`, from))).close())
    starts.few.push(await begin("few", [manifests]))
    starts.many.push(await begin("many", all))
  }
  const grown = (median(starts.many) - median(starts.few)) / sizes.tools
  console.log(
    `\n${sizes.tools} tools: a host is ready after ${median(starts.many).toFixed(0)} ms, ${grown.toFixed(2)} ms a tool`,
  )
  await using few = await createHost(options("few", [manifests]))
  await using many = await createHost(options("many", all))
  const rows = await interleave(
    [
      { name: "among a handful of tools", run: () => call(few, "bench.true") },
      { name: "among many", run: () => call(many, `bench.true-${sizes.tools - 1}`) },
    ],
    sizes.rounds,
  )
  printTable("a call", rows, "among a handful of tools")
  flat(
    `a call among ${sizes.tools} tools, by one among a handful`,
    ratioOf(rows, "among many", "among a handful of tools"),
  )
}

const calls = async (host: Host): Promise<void> => {
  const times: number[] = []
  await call(host, "bench.true")
  const before = memory()
  for (let n = 0; n < sizes.calls; n += 1) times.push(await timed(() => call(host, "bench.true")))
  const tenth = Math.max(1, Math.floor(sizes.calls / 10))
  const [first, last] = [times.slice(0, tenth), times.slice(-tenth)]
  console.log(`\n${sizes.calls} calls: ${before.toFixed(0)} MB before, ${memory().toFixed(0)} MB after`)
  flat(`the last tenth of ${sizes.calls} calls, by the first`, median(last) / median(first))
  flat(`memory after ${sizes.calls} calls, by that before`, memory() / before, 2)
}

const users = async (host: Host): Promise<void> => {
  let next = 0
  const rows = await interleave(
    [
      { name: "one user", run: () => call(host, "bench.true") },
      { name: "many users", run: () => call(host, "bench.true", {}, workspace, `user-${next++ % sizes.users}`) },
    ],
    Math.max(sizes.users, sizes.rounds),
  )
  printTable(`${sizes.users} users in turn`, rows, "one user")
  flat(`${sizes.users} users in turn, by one`, ratioOf(rows, "many users", "one user"))
}

const files = async (host: Host): Promise<void> => {
  const [few, many] = [manyFiles(1_000), manyFiles(sizes.files)]
  const rows = await interleave(
    [
      { name: "1000 files", run: () => call(host, "bench.true", {}, few) },
      { name: "many files", run: () => call(host, "bench.true", {}, many) },
    ],
    sizes.rounds,
  )
  printTable(`a workspace of ${sizes.files} files`, rows, "1000 files")
  flat(`a workspace of ${sizes.files} files, by one of 1000`, ratioOf(rows, "many files", "1000 files"))
}

const large = async (host: Host): Promise<void> => {
  const text = readFileSync(join(manifests, "large/DRIVER.md"), "utf8")
  const script = JSON.parse(/argv: \["-c", ("(?:[^"\\]|\\.)*")/.exec(text)?.[1] ?? '""') as string
  const alone = (cwd: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const child = spawn("python3", ["-c", script, String(sizes.megabytes)], { cwd, stdio: "ignore" })
      child.once("close", (code) => (code === 0 ? resolve() : reject(new Error(`python3 ended with ${code}`))))
    })
  const fresh = (name: string): string => {
    const at = join(folder, name)
    mkdirSync(at)
    return at
  }
  const bare = await timed(() => alone(fresh("large-alone")))
  const before = memory()
  const sealed = await timed(() => call(host, "bench.large", { megabytes: sizes.megabytes }, fresh("large-sealed")))
  console.log(`\n${sizes.megabytes} MB in one file: alone ${bare.toFixed(0)} ms, sealed ${sealed.toFixed(0)} ms`)
  bar(`${sizes.megabytes} MB written, by the tool alone`, sealed / bare, 3)
  flat(`memory after ${sizes.megabytes} MB were written, by that before`, memory() / before, 1.5)
}

try {
  mkdirSync(workspace)
  const config = join(folder, "caisson.yaml")
  writeFileSync(config, "limits: { disk_mb: 8192, wall_ms: 600000, cpu_ms: 600000 }\n", { mode: 0o600 })
  await tools()
  await using host = await createHost({ data: join(folder, "data"), manifests: [manifests], config })
  await calls(host)
  await users(host)
  await large(host)
  await files(host)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
