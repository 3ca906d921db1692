/**
 * What the daemon adds to a call: calls a second and how long each takes at 1, 8 and 64 clients over the Unix socket, beside
 * the same calls by way of `/mcp`, `host.call` in process and bare bubblewrap in the same run; how long it takes to be ready, and what it takes while idle.
 * Options: `--rounds=N` (starts), `--calls=N` (a turn of each).
 */
import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { Agent, request } from "node:http"
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { daemonLimits } from "../src/daemon/limits.ts"
import { daemonSocket } from "../src/data-folder/paths.ts"
import { createHost } from "../src/host/index.ts"
import { bar, interleave } from "./measure.ts"

const option = (name: string, otherwise: number): number =>
  Number(process.argv.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3) ?? otherwise)
const rounds = option("rounds", 7)
const many = option("calls", 128)
const folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-bench-")))
const manifests = fileURLToPath(new URL("./manifests", import.meta.url))
const cli = fileURLToPath(new URL("../bin/caisson.cjs", import.meta.url))
const workspace = join(folder, "workspace")
const config = join(folder, "caisson.yaml")

const ended = async (command: string, args: readonly string[]): Promise<void> => {
  const [code] = (await once(spawn(command, args, { stdio: "ignore" }), "close")) as [number]
  if (code !== 0) throw new Error(`${command} ended with ${code}`)
}
const bareNode = (): Promise<void> => ended(process.execPath, ["-e", "0"])
const bareBwrap = (): Promise<void> =>
  ended("/usr/bin/bwrap", [
    "--unshare-all",
    ...["--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib"],
    ...["--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "/bin/true"],
  ])

/** Until it says that it listens. */
const startDaemon = async (data: string): Promise<ChildProcess> => {
  const child = spawn(process.execPath, [cli, "serve", "--listen", "none", "--manifests", manifests], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, CAISSON_DATA: data, NO_COLOR: "1" },
  })
  const said: string[] = []
  await new Promise<void>((resolve, reject) => {
    child.stderr?.on("data", (piece: Buffer) => {
      said.push(piece.toString())
      if (said.join("").includes("the daemon listens on")) resolve()
    })
    child.once("exit", () => reject(new Error(`the daemon ended: ${said.join("")}`)))
  })
  return child
}
const stop = async (child: ChildProcess): Promise<void> => {
  const gone = once(child, "exit")
  child.kill("SIGTERM")
  await gone
}
const megabytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024
/** Left alone for longer than it takes to rest. */
const rested = async (pid: number): Promise<number> => {
  await pause(daemonLimits.restMs.value + 5_000)
  return megabytes(pid)
}

const agent = new Agent({ keepAlive: true, maxSockets: 64 })
const body = JSON.stringify({ tool: "bench.true", input: {}, workspace })
const post = (socketPath: string, path: string, own: Readonly<Record<string, string>>, sent: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(sent), ...own }
    const asked = request({ socketPath, agent, method: "POST", path, headers }, (response) => {
      const pieces: Buffer[] = []
      response.on("data", (piece: Buffer) => pieces.push(piece))
      response.on("end", () => {
        const told = Buffer.concat(pieces).toString()
        if (response.statusCode === 200) resolve(told)
        else reject(new Error(told))
      })
    })
    asked.on("error", reject)
    asked.end(sent)
  })
const askDaemon = async (socketPath: string): Promise<void> =>
  void (await post(socketPath, "/v1/calls", { "caisson-approved": "yes" }, body))

const VERSION = "2026-07-28"
const meta = {
  "io.modelcontextprotocol/protocolVersion": VERSION,
  "io.modelcontextprotocol/clientInfo": { name: "bench", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
}
const mcpBody = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: { name: "bench.true", arguments: {}, _meta: meta },
})
const mcpHeaders = {
  accept: "application/json, text/event-stream",
  "mcp-protocol-version": VERSION,
  "mcp-method": "tools/call",
  "mcp-name": "bench.true",
}
const askMcp = async (socketPath: string): Promise<void> => {
  const told = await post(socketPath, `/mcp?workspace=${encodeURIComponent(workspace)}`, mcpHeaders, mcpBody)
  if (!told.includes('"receipt":"sha256:') || told.includes('"isError":true')) throw new Error(told)
}

interface Load {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
}
const load = async (clients: number, calls: number, call: () => Promise<void>): Promise<Load> => {
  const times: number[] = []
  let left = calls
  const began = performance.now()
  const client = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      const start = performance.now()
      await call()
      times.push(performance.now() - start)
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
  const took = performance.now() - began
  const sorted = times.toSorted((a, b) => a - b)
  const at = (q: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN
  return { perSecond: (calls / took) * 1000, p50: at(0.5), p99: at(0.99) }
}
const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
/** Of a few turns, the one in the middle by its rate. */
const middle = (turns: readonly Load[]): Load => ({
  perSecond: median(turns.map(({ perSecond }) => perSecond)),
  p50: median(turns.map(({ p50 }) => p50)),
  p99: median(turns.map(({ p99 }) => p99)),
})

try {
  mkdirSync(workspace)
  writeFileSync(config, "", { mode: 0o600 })
  let starts = 0
  const daemons: ChildProcess[] = []
  const ready = await interleave(
    [
      { name: "node -e 0", run: bareNode },
      { name: "ready", run: async () => void daemons.push(await startDaemon(join(folder, `start-${starts++}`))) },
    ],
    rounds,
  )
  await Promise.all(daemons.map(stop))
  const [node = Number.NaN, start = Number.NaN] = ready.map((row) => row.median)
  console.log(`\nnode -e 0 ${node.toFixed(1)} ms · the daemon is ready after ${start.toFixed(1)} ms`)
  bar("ready, by node -e 0", start / node, 15)

  const data = join(folder, "daemon")
  const daemon = await startDaemon(data)
  try {
    const started = megabytes(daemon.pid ?? 0)
    const idle = await rested(daemon.pid ?? 0)
    console.log(`just started: ${started.toFixed(0)} MB · idle: ${idle.toFixed(0)} MB`)
    bar("MB while idle", idle, 150)
    await using host = await createHost({
      data: join(folder, "host"),
      manifests: [manifests],
      record: true,
      warm: true,
    })
    const inProcess = async (): Promise<void> => {
      const told = await host.call({ tool: "bench.true", input: {}, workspace }, { approved: true })
      if (!told.ok) throw new Error(told.error.message)
    }
    const overHttp = (): Promise<void> => askDaemon(daemonSocket(data))
    const overMcp = (): Promise<void> => askMcp(daemonSocket(data))
    const subjects = { "host.call": inProcess, daemon: overHttp, "/mcp": overMcp, bwrap: bareBwrap }
    for (const call of Object.values(subjects)) await load(8, 16, call)
    console.log("\ntrue, sealed (calls/s · p50 ms · p99 ms)")
    for (const clients of [1, 8, 64]) {
      const turns = new Map<string, Load[]>(Object.keys(subjects).map((name) => [name, []]))
      for (let turn = 0; turn < 3; turn += 1)
        for (const [name, call] of Object.entries(subjects))
          turns.get(name)?.push(await load(clients, clients === 1 ? Math.ceil(many / 2) : many, call))
      const rows = Object.fromEntries([...turns].map(([name, all]) => [name, middle(all)]))
      for (const [name, { perSecond, p50, p99 }] of Object.entries(rows))
        console.log(
          `  ${`${clients} clients, ${name}`.padEnd(28)} ${perSecond.toFixed(1).padStart(8)} ${p50.toFixed(1).padStart(8)} ${p99.toFixed(1).padStart(8)}`,
        )
      const [own, over] = [rows["host.call"], rows["daemon"]]
      if (own === undefined || over === undefined) continue
      const mcp = (rows["/mcp"]?.perSecond ?? Number.NaN) / over.perSecond
      console.log(
        `  ${mcp >= 0.9 ? "met " : "MISSED"} /mcp, by the API's calls/s: ${mcp.toFixed(2)} (bar: at least 0.9)`,
      )
      if (clients === 1) bar("overhead at p50, by node -e 0", (over.p50 - own.p50) / node, 0.1)
      if (clients === 8)
        bar("through the daemon at 8 clients, by host.call", over.perSecond / own.perSecond, 0.9, { atLeast: true })
      if (clients === 64)
        console.log(
          `  64 clients get ${(over.perSecond / own.perSecond).toFixed(2)} of host.call's calls/s (bar: at least 0.9)`,
        )
    }
    const loaded = megabytes(daemon.pid ?? 0)
    console.log(
      `after the load: ${loaded.toFixed(0)} MB · idle again: ${(await rested(daemon.pid ?? 0)).toFixed(0)} MB`,
    )
  } finally {
    await stop(daemon)
  }
} finally {
  agent.destroy()
  rmSync(folder, { recursive: true, force: true })
}
