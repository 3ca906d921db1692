/**
 * What one sandbox's traffic does to another's on the same host, as ratios: two proxies in one process, one of them
 * attacked in turn with everything that costs little to send, the other asked one plain request after the other.
 *
 * The bar is the 99th percentile within five times that of the same host at rest, measured before each attack; the
 * attacker, the origin and the one who asks are processes of their own, and on few cores they take time from the host
 * too, which the ratio then shows: the host's own account tells it from
 * what the host does itself. Options: `--only=WORD` for the attacks with it in their name, `--seconds=N` for each, `--strict`: a missed bar is exit code 1.
 */
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { Agent, get } from "node:http"
import { availableParallelism, loadavg } from "node:os"
import { fileURLToPath } from "node:url"
import { row } from "./measure.ts"
import type { Account } from "./egress/fairness-roles.ts"

const seconds = Number(process.argv.find((word) => word.startsWith("--seconds="))?.slice(10) ?? 3)
const only = process.argv.find((word) => word.startsWith("--only="))?.slice(7) ?? ""
const bar = 5
const roles = fileURLToPath(new URL("./egress/fairness-roles.ts", import.meta.url))
const attacks = [
  "pipelined denied requests",
  "denied tunnels, each on its own",
  "WebSocket pings",
  "headers full of percent signs",
  "bodies full of percent signs",
  "chunks of one byte",
  "compressed bodies that swell",
  "refused dials",
  "DNS over UDP",
  "DNS over TCP",
]

await using scope = new AsyncDisposableStack()
const start = (message: object): ChildProcess => {
  const child = fork(roles)
  scope.defer(() => void child.kill("SIGKILL"))
  child.send(message)
  return child
}
const said = async (child: ChildProcess): Promise<unknown> => ((await once(child, "message")) as [unknown])[0]

const agent = new Agent({ keepAlive: false })
const ask = (port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    const begun = performance.now()
    const options = { host: "127.0.0.1", port, agent, path: "http://plain.bench/", headers: { host: "plain.bench" } }
    get(options, (response) => response.resume().on("end", () => resolve(performance.now() - begun))).on(
      "error",
      reject,
    )
  })
/** The 99th percentile and the median of one request after the other, in milliseconds. */
async function latency(port: number): Promise<{ readonly p50: number; readonly p99: number }> {
  const times: number[] = []
  for (const end = performance.now() + seconds * 1_000; performance.now() < end; ) times.push(await ask(port))
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN
  return { p50: at(0.5), p99: at(0.99) }
}

const accountOf = async (host: ChildProcess): Promise<Account> => {
  host.send("account")
  return (await said(host)) as Account
}
const percent = (share: number): string => `${(share * 100).toFixed(0)} %`
const upstream = start({ role: "origin" })
const at = await said(upstream)
console.log(
  `another call's latency while one is hostile, ${seconds} s each (ms; ratio of p99 to rest; of the host: memory, p99 of its event loop's delay, share of the time that it was on a core and that it waited for one); load ${loadavg()[0]?.toFixed(1)} on ${availableParallelism()} cores`,
)
let missed = 0
for (const kind of attacks.filter((name) => name.includes(only))) {
  // One host for each: what an attack leaves in the kernel's buffers is worked on long after it.
  const host = start({ role: "host", at })
  const ports = (await said(host)) as { readonly calm: number }
  for (let count = 0; count < 300; count += 1) await ask(ports.calm)
  await accountOf(host)
  const rest = await latency(ports.calm)
  const before = await accountOf(host)
  const attacker = start({ role: "attack", kind, at: ports })
  await new Promise((resolve) => setTimeout(resolve, 500))
  await accountOf(host)
  const under = await latency(ports.calm)
  const after = await accountOf(host)
  const ratio = under.p99 / rest.p99
  if (ratio > bar) missed += 1
  row(`another sandbox's p99 under ${kind}, by that at rest`, ratio, bar)
  console.log(
    `  ${ratio <= bar ? "met   " : "MISSED"} ${kind.padEnd(34)} p50 ${rest.p50.toFixed(2)} → ${under.p50.toFixed(2)}, p99 ${rest.p99.toFixed(2)} → ${under.p99.toFixed(2)}, ${ratio.toFixed(1)}× (bar ${bar}); host ${(after.rss / (1 << 20)).toFixed(0)} MiB, loop ${before.lateP99.toFixed(1)} → ${after.lateP99.toFixed(1)}, ran ${percent(before.ran)} → ${percent(after.ran)}, waited ${percent(before.waited)} → ${percent(after.waited)}`,
  )
  attacker.kill("SIGKILL")
  await once(attacker, "exit")
  host.kill("SIGKILL")
  await once(host, "exit")
}
if (missed > 0 && process.argv.includes("--strict")) process.exitCode = 1
await scope.disposeAsync()
process.exit()
