/**
 * A soak of the egress proxy: many idle tunnels at once, then mixed load with killed clients and upstreams.
 *
 * Passes only if every tunnel stood, and afterwards file descriptors and counters are back where they were and
 * memory is within the bound. Where one process may not open enough files, the tunnels are spread over as many proxy
 * processes as it takes, and that is said. Options: `--tunnels=10000`, `--seconds=60`.
 */
import { type ChildProcess, fork, spawnSync } from "node:child_process"
import { once } from "node:events"
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import type { ProxyCounters } from "../../src/egress-proxy/index.ts"

const option = (name: string, otherwise: number): number =>
  Number(process.argv.find((word) => word.startsWith(`--${name}=`))?.split("=")[1] ?? otherwise)
const tunnels = option("tunnels", 10_000)
const seconds = option("seconds", 60)
/** what one proxy process may have grown by in the end */
const bound = { rss: 24 << 20, heap: 12 << 20 }
const roles = fileURLToPath(new URL("./roles.ts", import.meta.url))
const mega = (bytes: number): string => `${(bytes / (1 << 20)).toFixed(1)} MiB`

/** How many files a process may open; raised to what is wanted where that is allowed, and inherited by children. */
function openFiles(wanted: number): number {
  const soft = (): number => Number(/^Max open files +([0-9]+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1])
  if (soft() < wanted)
    spawnSync("prlimit", ["--pid", String(process.pid), `--nofile=${wanted}:${wanted}`], { stdio: "ignore" })
  return soft()
}

await using scope = new AsyncDisposableStack()
const stop = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill("SIGKILL")
  await once(child, "exit")
}
const start = async (
  role: string,
  ...words: readonly (string | number)[]
): Promise<{ child: ChildProcess; said: unknown }> => {
  const child = fork(roles, [role, ...words.map(String)], { execArgv: ["--expose-gc"] })
  scope.defer(() => stop(child))
  const [said] = (await once(child, "message")) as [unknown]
  return { child, said }
}
const ask = async (child: ChildProcess, message: unknown): Promise<unknown> => {
  child.send(message as object)
  return ((await once(child, "message")) as [unknown])[0]
}

interface Sample {
  readonly files: number
  readonly rss: number
  readonly heapUsed: number
  readonly counters: ProxyCounters
}
const sample = async (child: ChildProcess): Promise<Sample> => {
  const memory = (await ask(child, "sample")) as Omit<Sample, "files">
  return { ...memory, files: readdirSync(`/proc/${child.pid}/fd`).length }
}
const samples = (): Promise<readonly Sample[]> => Promise.all(proxies.map(({ child }) => sample(child)))
const busy = ({ counters }: Sample): number => counters.connections + counters.passages + counters.pending
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
const show = (title: string, all: readonly Sample[]): void =>
  console.log(
    `${title.padEnd(34)} files ${all.map(({ files }) => files).join("+")}, open ${sum(all.map(({ counters }) => counters.connections))}, tunnels ${sum(all.map(({ counters }) => counters.passages))}, rss ${all.map(({ rss }) => mega(rss)).join(" + ")}, heap ${all.map(({ heapUsed }) => mega(heapUsed)).join(" + ")}`,
  )

/** Waits, within reason, until nothing is open any more. */
async function quiet(wanted: readonly number[]): Promise<readonly Sample[]> {
  const deadline = Date.now() + 30_000
  for (;;) {
    const now = await samples()
    const still = now.every((one, at) => busy(one) === 0 && one.files <= (wanted[at] ?? 0))
    if (still || Date.now() > deadline) return now
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
}

const faults: string[] = []
const need = (holds: boolean, what: string): void => {
  if (!holds) faults.push(what)
}
const compare = (title: string, before: readonly Sample[], after: readonly Sample[]): void => {
  show(title, after)
  after.forEach((now, at) => {
    const was = before[at] as Sample
    need(busy(now) === 0, `${title}: ${busy(now)} connections, tunnels or dials were left`)
    need(now.files <= was.files, `${title}: ${now.files} files are open, ${was.files} were`)
    need(now.heapUsed - was.heapUsed <= bound.heap, `${title}: the heap grew by ${mega(now.heapUsed - was.heapUsed)}`)
    need(now.rss - was.rss <= bound.rss, `${title}: memory grew by ${mega(now.rss - was.rss)}`)
  })
}

const limit = openFiles(2 * tunnels + 2_048)
const each = Math.floor((limit - 1_024) / 2)
const count = Math.ceil(tunnels / each)
console.log(
  `${tunnels} tunnels, ${limit} open files a process: ${count === 1 ? "one proxy process" : `spread over ${count} proxy processes, since each tunnel takes two`}`,
)
const origins = await Promise.all(Array.from({ length: count }, () => start("origin", 0)))
const proxies = await Promise.all(origins.map(({ said }) => start("proxy", Number(said))))
const ports = proxies.map(({ said }) => Number(said))

// A start that has seen work: code compiled, pools filled, so that growth is growth.
const holders = await Promise.all(Array.from({ length: count }, () => start("holder", ...ports)))
const share = Math.ceil(tunnels / holders.length)
const holdAll = async (word: string, amount = 0): Promise<number> =>
  sum((await Promise.all(holders.map(({ child }) => ask(child, [word, amount])))) as number[])
await holdAll("open", Math.ceil(share / 5))
await holdAll("close")
const idleFiles = (await samples()).map(({ files }) => files)
const before = await quiet(idleFiles)
show("at the start", before)

const opened = await holdAll("open", share)
const full = await samples()
show(`${opened} idle tunnels`, full)
const held = sum(full.map(({ rss }) => rss)) - sum(before.map(({ rss }) => rss))
console.log(`  ${(held / opened / 1024).toFixed(1)} KiB of memory a tunnel`)
need(opened >= tunnels, `only ${opened} of ${tunnels} tunnels stood`)
need(sum(full.map(({ counters }) => counters.passages)) >= tunnels, "the proxy counts fewer tunnels")
await new Promise((resolve) => setTimeout(resolve, 6_000))
const checked = await holdAll("check")
need(
  checked >= Math.floor(opened / 100),
  `only ${checked} of ${Math.floor(opened / 100)} idle tunnels still carried bytes`,
)
await holdAll("close")
compare("after closing them", before, await quiet(before.map(({ files }) => files)))
for (const { child } of holders) await stop(child)

let clients = await Promise.all([0, 1].map(() => start("rabble", ...ports)))
let acts = 0
let killed = 0
const end = Date.now() + seconds * 1_000
while (Date.now() < end) {
  await new Promise((resolve) => setTimeout(resolve, Math.min(3_000, end - Date.now())))
  // In turns, a whole process of clients or of upstreams is gone from one moment to the next.
  const at = killed % (clients.length + origins.length)
  killed += 1
  if (at < clients.length) {
    const victim = clients[at] as { child: ChildProcess }
    acts += Number(await ask(victim.child, "count"))
    await stop(victim.child)
    clients = await Promise.all(
      clients.map(async (client, index) => (index === at ? start("rabble", ...ports) : client)),
    )
  } else {
    const index = at - clients.length
    const { child, said } = origins[index] as { child: ChildProcess; said: unknown }
    await stop(child)
    origins[index] = await start("origin", Number(said))
  }
}
show("under mixed load", await samples())
for (const { child } of clients) {
  acts += Number(await ask(child, "count"))
  await stop(child)
}
const after = await quiet(before.map(({ files }) => files))
compare("after mixed load", before, after)
const total = (pick: (counters: ProxyCounters) => number): number => sum(after.map(({ counters }) => pick(counters)))
console.log(
  `  ${acts} acts and ${killed} killed processes in ${seconds} s; verdicts: ${total(({ allowed }) => allowed)} allowed, ${total(({ denied }) => denied)} denied, ${total(({ malformed }) => malformed)} malformed, ${total(({ infrastructure }) => infrastructure)} infrastructure; ${mega(total(({ bytesIn }) => bytesIn))} in, ${mega(total(({ bytesOut }) => bytesOut))} out`,
)
for (const fault of faults) console.log(`FAILED ${fault}`)
console.log(faults.length === 0 ? "passed: descriptors, counters and memory are back" : "failed")
process.exitCode = faults.length === 0 ? 0 : 1
