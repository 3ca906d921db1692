/** The proxy command, spawned for real, dialling loopback only. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { closeSync, openSync, writeFileSync } from "node:fs"
import { createServer, request, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { createInterface } from "node:readline"
import type { Readable } from "node:stream"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { caisson, launcher, scratch } from "./run-caisson.ts"

let room: ReturnType<typeof scratch>
let origin: Server
let child: ChildProcess | undefined

beforeEach(async () => {
  room = scratch()
  origin = createServer((_, response) => response.end("from the origin"))
  origin.listen(0, "127.0.0.1")
  await once(origin, "listening")
})

afterEach(async () => {
  if (child !== undefined && child.exitCode === null && child.signalCode === null) {
    child.kill("SIGKILL")
    await once(child, "exit")
  }
  child = undefined
  origin.closeAllConnections()
  origin.close()
  room[Symbol.dispose]()
})

const policyFile = (name: string): string => {
  const file = join(room.folder, "policy.yaml")
  writeFileSync(
    file,
    `egress: ["${name}"]\nservices: { ${name}: "127.0.0.1:${(origin.address() as AddressInfo).port}" }\n`,
  )
  return file
}

interface Running {
  readonly child: ChildProcess
  readonly port: number
  /** Resolves with the next line that matches. */
  readonly hears: (pattern: RegExp) => Promise<string>
  readonly stdout: string[]
}

const start = async (policy: string, output: "pipe" | number = "pipe"): Promise<Running> => {
  const started = spawn(process.execPath, [launcher, "egress-proxy", "--policy", policy, "--listen", "127.0.0.1:0"], {
    stdio: ["ignore", output, "pipe"],
  })
  child = started
  if (typeof output === "number") closeSync(output)
  const stdout: string[] = []
  if (started.stdout !== null) createInterface({ input: started.stdout }).on("line", (line) => stdout.push(line))
  const lines = createInterface({ input: started.stderr as Readable })[Symbol.asyncIterator]()
  const hears = async (pattern: RegExp): Promise<string> => {
    for (let next = await lines.next(); next.done !== true; next = await lines.next())
      if (pattern.test(next.value)) return next.value
    throw new Error(`the proxy ended without saying ${pattern}`)
  }
  const port = Number(/:(\d+)$/.exec(await hears(/listens on/))?.[1])
  return { child: started, port, hears, stdout }
}

const fetchThrough = (port: number, url: string): Promise<{ status: number | undefined; body: string }> =>
  new Promise((resolve, reject) => {
    const sent = request(
      { host: "127.0.0.1", port, method: "GET", path: url, headers: { host: new URL(url).host } },
      (response) => {
        let body = ""
        response
          .setEncoding("utf8")
          .on("data", (chunk: string) => (body += chunk))
          .on("end", () => resolve({ status: response.statusCode, body }))
      },
    )
    sent.on("error", reject).end()
  })

describe("caisson egress-proxy", () => {
  test("passes declared hosts, refuses others, tells each verdict on stdout, and ends with 0 on SIGTERM", async () => {
    const proxy = await start(policyFile("good.test"))
    expect(await fetchThrough(proxy.port, "http://good.test/")).toEqual({ status: 200, body: "from the origin" })
    expect((await fetchThrough(proxy.port, "http://bad.test/")).status).toBe(403)
    proxy.child.kill("SIGTERM")
    const [code] = (await once(proxy.child, "close")) as [number | null]
    expect(code).toBe(0)
    const verdicts = proxy.stdout.map((line) => JSON.parse(line) as { decision: string; host: string })
    expect(verdicts).toEqual([
      expect.objectContaining({ level: 30, msg: "egress", decision: "allow", host: "good.test" }),
      expect.objectContaining({ level: 40, msg: "egress", decision: "deny", host: "bad.test" }),
    ])
  })

  test("row 111: passes nothing when its verdicts cannot be written, says so, and ends with 5", async () => {
    const proxy = await start(policyFile("good.test"), openSync("/dev/full", "w"))
    const ended = once(proxy.child, "exit")
    const { status, body } = await fetchThrough(proxy.port, "http://good.test/")
    expect([status, JSON.parse(body)]).toEqual([503, expect.objectContaining({ reason: "verdict_log_failed" })])
    await proxy.hears(/verdicts cannot be written.*ENOSPC.*nothing passes/)
    expect(await ended).toEqual([5, null])
  })

  test("passes nothing unlogged when whoever reads its verdicts has gone, as `| head` does", async () => {
    const proxy = await start(policyFile("good.test"))
    const ended = once(proxy.child, "exit")
    expect((await fetchThrough(proxy.port, "http://good.test/")).status).toBe(200)
    proxy.child.stdout?.destroy()
    const answers = await Promise.allSettled(
      Array.from({ length: 8 }, () => fetchThrough(proxy.port, "http://good.test/")),
    )
    const passed = answers.filter((answer) => answer.status === "fulfilled" && answer.value.status === 200)
    expect(passed).toEqual([])
    await proxy.hears(/verdicts cannot be written.*EPIPE.*nothing passes/)
    expect(await ended).toEqual([5, null])
  })

  test("passes nothing untold on a terminal whose stderr nobody reads any more", async () => {
    const line = `'${process.execPath}' '${launcher}' egress-proxy --policy '${policyFile("good.test")}' --listen 127.0.0.1:0`
    // `script` gives it a terminal for stdout; stderr is a pipe of which the reader goes.
    const started = spawn("script", ["-qec", `${line} 2>&3`, "/dev/null"], {
      stdio: ["ignore", "ignore", "ignore", "pipe"],
    })
    child = started
    const reader = started.stdio[3] as Readable
    const ended = once(started, "exit")
    const lines = createInterface({ input: reader })
    const [first] = (await once(lines, "line")) as [string]
    const port = Number(/:(\d+)$/.exec(first)?.[1])
    expect((await fetchThrough(port, "http://good.test/")).status).toBe(200)
    reader.destroy()
    const answers = await Promise.allSettled(Array.from({ length: 4 }, () => fetchThrough(port, "http://good.test/")))
    expect(answers.filter((answer) => answer.status === "fulfilled" && answer.value.status === 200)).toEqual([])
    expect(await ended).toEqual([5, null])
  })

  test("reads the policy again on SIGHUP, and keeps the old one when the new one is bad", async () => {
    const proxy = await start(policyFile("good.test"))
    policyFile("other.test")
    proxy.child.kill("SIGHUP")
    await proxy.hears(/the new policy holds/)
    expect((await fetchThrough(proxy.port, "http://good.test/")).status).toBe(403)
    expect((await fetchThrough(proxy.port, "http://other.test/")).status).toBe(200)
    writeFileSync(join(room.folder, "policy.yaml"), "egress: [OTHER.test]\n")
    proxy.child.kill("SIGHUP")
    await proxy.hears(/the old policy stays/)
    expect((await fetchThrough(proxy.port, "http://other.test/")).status).toBe(200)
  })

  test.each([
    ["egress: [GOOD.test]\n", /write "good\.test"/],
    ["egres: [good.test]\n", /did you mean `egress`/],
    ["egress: [good.test]\nsubstitutions: [x]\n", /secrets do not belong/],
    ["egress: [*a]\n", /policy\.yaml/],
  ])("refuses %j with exit code 2 and names what to mend", async (text, message) => {
    const file = join(room.folder, "policy.yaml")
    writeFileSync(file, text)
    const { code, stdout, stderr } = await caisson(["egress-proxy", "--policy", file, "--listen", "127.0.0.1:0"])
    expect(stderr).toMatch(message)
    expect(stdout).toBe("")
    expect(code).toBe(2)
  })
})
