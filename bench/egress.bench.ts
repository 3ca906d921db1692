/**
 * The egress proxy beside a direct connection, beside squid and tinyproxy, and beside itself on sockets of node:net
 * instead of bare handles, in one run, as ratios.
 *
 * Origin, proxy and load generator are processes of their own on loopback; the generator and the origin are the same
 * for all. Ways take turns and the best turn counts, since other work on the machine can only slow a turn down. The
 * processor time that a proxy took for a connection or a gigabyte is printed too: it does not depend on the others.
 * Options: `--quick`, `--turns=N`. Exits with 1 when a bar is missed and `--strict` is given.
 */
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { parseAuthority } from "../src/egress-proxy/policy/authority.ts"
import { decide } from "../src/egress-proxy/policy/decide.ts"
import { policyFrom } from "../src/egress-proxy/policy/options.ts"
import { compilePolicy } from "../src/egress-proxy/policy/compile.ts"
import type { Done, Job, Way } from "./egress/load.ts"
import { type Rival, startRival } from "./egress/rivals.ts"

const has = (word: string): boolean => process.argv.includes(word)
const quick = has("--quick")
const turns = Number(process.argv.find((word) => word.startsWith("--turns="))?.slice(8) ?? (quick ? 1 : 5))
const bytes = (quick ? 128 : 768) * 1024 * 1024
const connectMs = quick ? 500 : 1_000

const start = async (file: string, ...args: readonly string[]): Promise<{ child: ChildProcess; said: unknown }> => {
  const child = fork(fileURLToPath(new URL(`./egress/${file}`, import.meta.url)), args)
  const [said] = (await once(child, "message")) as [unknown]
  return { child, said }
}

interface Contender extends Way {
  /** process whose processor time is the proxy's; none for a direct connection */
  readonly pid?: number
}
interface Row {
  one: number
  many: number
  connections: number
  p50: number
  p99: number
  fresh: number
  /** milliseconds of processor time per gigabyte, microseconds per connection */
  cpuPerGb: number
  cpuPerConnection: number
}

/** User and system time of a process so far, in milliseconds. */
function cpuMs(pid: number | undefined): number {
  if (pid === undefined) return 0
  const text = readFileSync(`/proc/${pid}/stat`, "utf8")
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ")
  return (Number(fields[11]) + Number(fields[12])) * 10
}

async function measure(generator: ChildProcess, way: Contender, job: Job): Promise<Done & { readonly cpu: number }> {
  const before = cpuMs(way.pid)
  generator.send({
    way: { name: way.name, port: way.port, ...(way.target !== undefined && { target: way.target }) },
    job,
  })
  const [answer] = (await once(generator, "message")) as [{ done?: Done; error?: string }]
  if (answer.done === undefined) throw new Error(answer.error)
  return { ...answer.done, cpu: cpuMs(way.pid) - before }
}

const quantile = (values: readonly number[], at: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(at * (values.length - 1))] ?? Number.NaN

async function turn(generator: ChildProcess, way: Contender, row: Row): Promise<void> {
  const one = await measure(generator, way, { kind: "pull", streams: 1, bytes })
  const many = await measure(generator, way, { kind: "pull", streams: 32, bytes })
  for (let count = 0; count < 3; count += 1) {
    const connections = await measure(generator, way, { kind: "connections", workers: 16, ms: connectMs })
    row.connections = Math.max(row.connections, connections.count / (connections.ms / 1e3))
    row.cpuPerConnection = Math.min(row.cpuPerConnection, (connections.cpu * 1e3) / connections.count)
  }
  const round = await measure(generator, way, { kind: "round", times: quick ? 500 : 3_000 })
  const fresh = await measure(generator, way, { kind: "fresh", times: quick ? 200 : 1_000 })
  const speed = (done: Done): number => done.count / 1e6 / (done.ms / 1e3)
  row.one = Math.max(row.one, speed(one))
  row.many = Math.max(row.many, speed(many))
  row.p50 = Math.min(row.p50, quantile(round.micros, 0.5))
  row.p99 = Math.min(row.p99, quantile(round.micros, 0.99))
  row.fresh = Math.min(row.fresh, quantile(fresh.micros, 0.5))
  row.cpuPerGb = Math.min(row.cpuPerGb, (one.cpu + many.cpu) / ((one.count + many.count) / 1e9))
}

function decideMicros(): number {
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
  const rounds = 100_000
  for (let count = 0; count < 20_000; count += 1) for (const target of targets) decide(policy, target)
  const begun = performance.now()
  for (let count = 0; count < rounds; count += 1) for (const target of targets) decide(policy, target)
  return ((performance.now() - begun) * 1e3) / (rounds * targets.length)
}

let missed = 0
function bar(text: string, value: number, limit: number, most = false): void {
  const met = most ? value <= limit : value >= limit
  if (!met) missed += 1
  console.log(`  ${met ? "met   " : "MISSED"} ${text}: ${value.toFixed(2)} (bar ${most ? "<" : "≥"} ${limit})`)
}

function report(rows: ReadonlyMap<string, Row>): void {
  console.log("\nway          MB/s×1  MB/s×32   conn/s   µs p50   µs p99  new µs   cpu ms/GB  cpu µs/conn")
  for (const [name, row] of rows) {
    console.log(
      `${name.padEnd(11)}${[row.one, row.many, row.connections, row.p50, row.p99, row.fresh].map((value) => value.toFixed(0).padStart(9)).join("")}${row.cpuPerGb.toFixed(0).padStart(11)}${row.cpuPerConnection.toFixed(0).padStart(12)}`,
    )
  }
  const ours = rows.get("caisson")
  const direct = rows.get("direct")
  if (ours === undefined || direct === undefined) return
  for (const [name, row] of rows) {
    if (name === "caisson") continue
    console.log(
      `caisson / ${name}: one stream ${(ours.one / row.one).toFixed(2)}, 32 streams ${(ours.many / row.many).toFixed(2)}, connections ${(ours.connections / row.connections).toFixed(2)}, p50 ${(ours.p50 / row.p50).toFixed(2)}, p99 ${(ours.p99 / row.p99).toFixed(2)}`,
    )
  }
  console.log(
    `added latency of a round trip: p50 ${(ours.p50 - direct.p50).toFixed(0)} µs, p99 ${(ours.p99 - direct.p99).toFixed(0)} µs\n`,
  )
  for (const rival of ["squid", "tinyproxy"]) {
    const row = rows.get(rival)
    if (row !== undefined) bar(`connections per second, beside ${rival}`, ours.connections / row.connections, 1)
  }
  const squid = rows.get("squid")
  if (squid !== undefined) {
    bar("one stream, beside squid", ours.one / squid.one, 0.8)
    bar("32 streams, beside squid", ours.many / squid.many, 0.8)
  }
  const sockets = rows.get("on sockets")
  if (sockets !== undefined)
    bar("processor time of a connection, beside sockets", ours.cpuPerConnection / sockets.cpuPerConnection, 0.8, true)
  bar("decide, microseconds", decideMicros(), 5, true)
}

await using scope = new AsyncDisposableStack()
const forked = async (file: string, ...args: readonly string[]): Promise<{ child: ChildProcess; said: unknown }> => {
  const started = await start(file, ...args)
  scope.defer(async () => {
    if (started.child.exitCode === null && started.child.kill("SIGKILL")) await once(started.child, "exit")
  })
  return started
}
const origin = await forked("origin.ts")
const caisson = await forked("caisson.ts", String(origin.said))
const onSockets = await forked("caisson.ts", String(origin.said), "sockets")
const generator = await forked("load.ts")
const originPort = Number(origin.said)
const ours = (name: string, { child, said }: { child: ChildProcess; said: unknown }): Contender => ({
  name,
  port: Number(said),
  target: "origin.bench:443",
  ...(child.pid !== undefined && { pid: child.pid }),
})
const ways: Contender[] = [
  { name: "direct", port: originPort },
  ours("caisson", caisson),
  ours("on sockets", onSockets),
]
for (const name of ["squid", "tinyproxy"] satisfies Rival[]) {
  const rival = await startRival(name, originPort)
  if (typeof rival === "string") console.log(`${name} takes no part: ${rival}`)
  else {
    scope.use(rival)
    ways.push({ name, port: rival.port, target: `127.0.0.1:${originPort}`, pid: rival.pid })
  }
}
const best = Number.POSITIVE_INFINITY
const rows = new Map(
  ways.map(({ name }): [string, Row] => [
    name,
    { one: 0, many: 0, connections: 0, p50: best, p99: best, fresh: best, cpuPerGb: best, cpuPerConnection: best },
  ]),
)
// Every way first gets as much work as compilers and pools need to settle.
for (const way of ways) await measure(generator.child, way, { kind: "connections", workers: 16, ms: 6 * connectMs })
for (let count = 0; count < turns; count += 1)
  for (const way of ways) await turn(generator.child, way, rows.get(way.name) as Row)
report(rows)
if (missed > 0 && has("--strict")) process.exitCode = 1
