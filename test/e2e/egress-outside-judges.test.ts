/**
 * Programs that others wrote, in front of and behind a real proxy on loopback: what the proxy makes of their requests,
 * and of the way their connections end, is judged by them.
 */
import { spawn } from "node:child_process"
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest"
import { describeNeeding } from "../support/needing.ts"
import { createEgressProxy, type EgressProxy } from "../../src/egress-proxy/index.ts"
import type { Verdict } from "../../src/egress-proxy/types.ts"
import { ensurePrograms } from "../support/servers/packages.ts"
import { startWeb, type WebServer } from "../support/servers/web.ts"

let web: WebServer
let proxy: EgressProxy
let verdicts: Verdict[]

beforeAll(async () => {
  web = await startWeb()
})
afterAll(async () => {
  await web[Symbol.asyncDispose]()
})
beforeEach(async () => {
  verdicts = []
  proxy = await createEgressProxy({
    egress: ["plain.test:80"],
    services: { "plain.test": `127.0.0.1:${web.httpPort}` },
    listen: "127.0.0.1:0",
    onVerdict: (verdict) => verdicts.push(verdict),
  })
})
afterEach(() => proxy.close())

interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}
const run = (program: string, ...args: readonly string[]): Promise<Ran> =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], env: { PATH: "/usr/bin:/bin" } })
    let [stdout, stderr] = ["", ""]
    child.stdout.on("data", (chunk) => (stdout += String(chunk)))
    child.stderr.on("data", (chunk) => (stderr += String(chunk)))
    child.on("error", reject)
    child.on("close", (code) => resolve({ code, stdout, stderr }))
  })

const noCurl = ensurePrograms({ curl: "curl" })
describeNeeding("curl", noCurl, () => {
  const curl = (...args: readonly string[]) => run("/usr/bin/curl", "-sS", "-m", "30", "-x", proxy.url ?? "", ...args)

  it("--http2 offers h2c on plain HTTP and is served", async () => {
    expect(await curl("--http2", "http://plain.test/two")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("served /two"),
    })
    expect(verdicts).toMatchObject([{ decision: "allow", host: "plain.test" }])
  })

  it("fetches a thousand pages over one connection, within a budget of 256", async () => {
    await proxy.close()
    proxy = await createEgressProxy({
      egress: ["plain.test:80"],
      services: { "plain.test": `127.0.0.1:${web.httpPort}` },
      listen: "127.0.0.1:0",
      budgets: { connections: 256 },
    })
    const ran = await curl("--fail", "-w", "%{num_connects}\n", "-o", "/dev/null", "http://plain.test/page[1-1000]")
    expect(ran).toMatchObject({ code: 0, stderr: "" })
    const connects = ran.stdout.trim().split("\n").map(Number)
    expect(connects.filter((count) => count > 0)).toHaveLength(1)
    expect(proxy.counters()).toMatchObject({ requests: 1_000, allowed: 1_000, infrastructure: 0 })
  }, 60_000)

  it("posts nothing, with a length that says so", async () => {
    const ran = await curl("-X", "POST", "-v", "http://plain.test/echo")
    expect(ran.code).toBe(0)
    expect(web.seen.at(-1)).toMatchObject({ method: "POST", url: "/echo", body: "" })
  })
})
