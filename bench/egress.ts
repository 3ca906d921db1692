/**
 * The egress proxy beside a direct connection, and beside squid and tinyproxy where they are installed.
 *
 * Origin, proxy and client are three processes on loopback; every way is measured in the same run, in turns, and the
 * best of the turns counts. Prints numbers and ratios; judges nothing.
 * Run: node bench/egress.ts [--quick]
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { connect, createServer, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseAuthority } from "../src/egress-proxy/authority.ts"
import { decide } from "../src/egress-proxy/decide.ts"
import { policyFrom } from "../src/egress-proxy/options.ts"
import { compilePolicy } from "../src/egress-proxy/policy.ts"
import { createEgressProxy } from "../src/egress-proxy/proxy.ts"

const [role, argument] = process.argv.slice(2)
const quick = process.argv.includes("--quick")
const bulkBytes = quick ? 64 * 1024 * 1024 : 512 * 1024 * 1024
const connectMs = quick ? 700 : 3_000
const turns = quick ? 1 : 3

/** `N` bytes for the line `N\n`, then an echo of whatever follows. */
async function origin(): Promise<void> {
  const block = Buffer.alloc(256 * 1024, "x")
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on("error", () => {})
    socket.once("data", (line) => {
      let left = Number(line.toString("latin1"))
      if (!(left > 0)) {
        socket.write(line)
        socket.on("data", (chunk) => socket.write(chunk))
        return
      }
      const pour = () => {
        for (let room = true; room && left > 0; left -= block.length)
          room = socket.write(left < block.length ? block.subarray(0, left) : block)
        if (left <= 0) socket.end()
        else socket.once("drain", pour)
      }
      pour()
    })
  })
  server.listen(0, "127.0.0.1", 1024)
  await once(server, "listening")
  process.send?.((server.address() as { port: number }).port)
}

async function proxyFor(port: number): Promise<void> {
  const proxy = await createEgressProxy({
    egress: ["tcp://origin.bench:443"],
    services: { "origin.bench": { address: "127.0.0.1", port } },
    listen: "127.0.0.1:0",
  })
  process.send?.(proxy.port)
}

interface Way {
  readonly name: string
  /** resolves to a connection on which the origin's protocol is spoken */
  open(): Promise<Socket>
}

const openTcp = (port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true })
    socket.once("connect", () => resolve(socket)).once("error", reject)
  })

const through = (name: string, port: number, target: string): Way => ({
  name,
  async open() {
    const socket = await openTcp(port)
    socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`)
    const [head] = (await once(socket, "data")) as [Buffer]
    if (!head.toString("latin1").includes(" 200 "))
      throw new Error(`${name}: ${head.toString("latin1").split("\r\n")[0]}`)
    return socket
  },
})

async function pull(way: Way, bytes: number): Promise<void> {
  const socket = await way.open()
  socket.write(`${bytes}\n`)
  let got = 0
  socket.on("data", (chunk) => {
    got += chunk.length
  })
  await once(socket, "close")
  if (got !== bytes) throw new Error(`${way.name}: ${got} of ${bytes} bytes`)
}

async function throughput(way: Way, streams: number): Promise<number> {
  const start = performance.now()
  await Promise.all(Array.from({ length: streams }, () => pull(way, Math.floor(bulkBytes / streams))))
  return bulkBytes / 1e6 / ((performance.now() - start) / 1e3)
}

async function connectionsPerSecond(way: Way): Promise<number> {
  const end = performance.now() + connectMs
  let count = 0
  const worker = async () => {
    while (performance.now() < end) {
      const socket = await way.open()
      socket.write("x\n")
      await once(socket, "data")
      socket.resetAndDestroy()
      count += 1
    }
  }
  await Promise.all(Array.from({ length: 16 }, worker))
  return count / (connectMs / 1e3)
}

/** Round trips of one byte on an open tunnel, and whole new tunnels, in microseconds. */
async function latencies(way: Way): Promise<{ readonly round: readonly number[]; readonly fresh: readonly number[] }> {
  const round: number[] = []
  const fresh: number[] = []
  const socket = await way.open()
  socket.write("x\n")
  await once(socket, "data")
  for (let count = 0; count < (quick ? 300 : 2_000); count += 1) {
    const start = performance.now()
    socket.write("y")
    await once(socket, "data")
    round.push((performance.now() - start) * 1e3)
  }
  socket.destroy()
  for (let count = 0; count < (quick ? 100 : 500); count += 1) {
    const start = performance.now()
    const one = await way.open()
    one.write("x\n")
    await once(one, "data")
    fresh.push((performance.now() - start) * 1e3)
    one.resetAndDestroy()
  }
  return { round, fresh }
}

const quantile = (values: readonly number[], at: number): number =>
  [...values].sort((a, b) => a - b)[Math.floor(at * (values.length - 1))] ?? 0
const installed = (program: string): string | undefined => {
  const found = spawnSync("sh", ["-c", `PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v ${program}`], {
    encoding: "utf8",
  })
  return found.status === 0 ? found.stdout.trim() : undefined
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function startOther(
  name: "squid" | "tinyproxy",
  originPort: number,
  folder: string,
  children: ChildProcess[],
): Promise<Way | undefined> {
  const program = installed(name)
  if (program === undefined) return undefined
  const port = await freePort()
  const file = join(folder, `${name}.conf`)
  const squid = `http_port 127.0.0.1:${port}\nacl all_ports port 1-65535\nhttp_access allow all_ports\ncache deny all\naccess_log none\ncache_log /dev/null\npid_filename none\nshutdown_lifetime 0 seconds\ncoredump_dir ${folder}\n`
  const tiny = `Port ${port}\nListen 127.0.0.1\nTimeout 600\nMaxClients 1000\nLogLevel Critical\nConnectPort ${originPort}\n`
  writeFileSync(file, name === "squid" ? squid : tiny)
  children.push(spawn(program, name === "squid" ? ["-N", "-f", file] : ["-d", "-c", file], { stdio: "ignore" }))
  for (let tries = 0; tries < 100; tries += 1) {
    const up = await openTcp(port).then(
      (socket) => socket.destroy() !== undefined,
      () => false,
    )
    if (up) return through(`${name}`, port, `127.0.0.1:${originPort}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return undefined
}

function decideMicroseconds(): number {
  const hosts = Array.from({ length: 200 }, (_, at) => `host-${at}.example.com:443`)
  const policy = compilePolicy(policyFrom({ egress: [...hosts, "*.cdn.example.com", "tcp://db.example.com:5432"] }))
  const targets = [
    "host-100.example.com:443",
    "a.b.cdn.example.com:443",
    "evil.test:443",
    "10.0.0.1:443",
    "db.example.com:22",
  ].map((text) => {
    const parsed = parseAuthority(text)
    if (!parsed.ok) throw new Error(text)
    return parsed.value
  })
  const rounds = 200_000
  for (let count = 0; count < 20_000; count += 1) for (const target of targets) decide(policy, target)
  const start = performance.now()
  for (let count = 0; count < rounds; count += 1) for (const target of targets) decide(policy, target)
  return ((performance.now() - start) * 1e3) / (rounds * targets.length)
}

async function child(which: string, value: string, children: ChildProcess[]): Promise<number> {
  const started = spawn(process.execPath, [import.meta.filename, which, value], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  })
  children.push(started)
  const [port] = (await once(started, "message")) as [number]
  return port
}

async function measure(): Promise<void> {
  const children: ChildProcess[] = []
  const folder = mkdtempSync(join(tmpdir(), "caisson-bench-"))
  try {
    const originPort = await child("origin", "", children)
    const ways: Way[] = [
      { name: "direct", open: () => openTcp(originPort) },
      through("caisson", await child("proxy", String(originPort), children), "origin.bench:443"),
    ]
    for (const other of ["squid", "tinyproxy"] as const) {
      const way = await startOther(other, originPort, folder, children)
      if (way === undefined) process.stdout.write(`${other}: not installed, left out\n`)
      else ways.push(way)
    }
    const best = new Map(
      ways.map((way) => [
        way.name,
        {
          one: 0,
          many: 0,
          connections: 0,
          p50: Number.POSITIVE_INFINITY,
          p99: Number.POSITIVE_INFINITY,
          new50: Number.POSITIVE_INFINITY,
        },
      ]),
    )
    for (let turn = 0; turn < turns; turn += 1) {
      for (const way of ways) {
        const row = best.get(way.name)
        if (row === undefined) continue
        await latencies(way)
        row.one = Math.max(row.one, await throughput(way, 1))
        row.many = Math.max(row.many, await throughput(way, 32))
        row.connections = Math.max(row.connections, await connectionsPerSecond(way))
        const { round, fresh } = await latencies(way)
        row.p50 = Math.min(row.p50, quantile(round, 0.5))
        row.p99 = Math.min(row.p99, quantile(round, 0.99))
        row.new50 = Math.min(row.new50, quantile(fresh, 0.5))
      }
    }
    const caisson = best.get("caisson")
    const direct = best.get("direct")
    process.stdout.write("way        MB/s 1   MB/s 32   conn/s   µs p50   µs p99   µs new tunnel p50\n")
    for (const [name, row] of best) {
      process.stdout.write(
        `${name.padEnd(9)}${[row.one, row.many, row.connections, row.p50, row.p99, row.new50].map((value) => value.toFixed(0).padStart(9)).join("")}\n`,
      )
    }
    for (const [name, row] of best) {
      if (caisson === undefined || name === "caisson") continue
      const ratio = (mine: number, theirs: number) => (mine / theirs).toFixed(2)
      process.stdout.write(
        `caisson / ${name}: one stream ${ratio(caisson.one, row.one)}, 32 streams ${ratio(caisson.many, row.many)}, connections ${ratio(caisson.connections, row.connections)}, p50 ${ratio(caisson.p50, row.p50)}, p99 ${ratio(caisson.p99, row.p99)}\n`,
      )
    }
    if (caisson !== undefined && direct !== undefined)
      process.stdout.write(
        `added latency: p50 ${(caisson.p50 - direct.p50).toFixed(0)} µs, p99 ${(caisson.p99 - direct.p99).toFixed(0)} µs\n`,
      )
    process.stdout.write(`decide: ${decideMicroseconds().toFixed(2)} µs\n`)
  } finally {
    for (const one of children) one.kill("SIGKILL")
    rmSync(folder, { recursive: true, force: true })
  }
}

if (role === "origin") await origin()
else if (role === "proxy") await proxyFor(Number(argument))
else await measure()
