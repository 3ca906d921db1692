/** A thousand who listen, those who take nothing, and slowhttptest: none of them is in anybody's way. */
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as turn } from "node:timers/promises"
import { promisify } from "node:util"
import { describe, expect, it } from "vitest"
import { launcher, scratch } from "../cli/run-caisson.ts"
import { describeNeeding } from "../support/needing.ts"
import { patience } from "../support/patience.ts"
import { openDaemonWorld } from "./daemon-world.ts"
import { openWire, requestOf, type Wire } from "./daemon-wire.ts"

const sockets = (pid: number | "self" = "self"): number =>
  readdirSync(`/proc/${pid}/fd`).filter((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith("socket:")
    } catch {
      return false
    }
  }).length

describe("a thousand streams of events", () => {
  it("that have nothing to tell are bounded, cost little, hold up nobody, and end with their call", {
    timeout: 240_000 * patience,
  }, async () => {
    await using world = await openDaemonWorld("serve: { limits: { streams: 1000, streams_per_user: 1000 } }")
    const alice = await world.as()
    const made = await world.daemon.host.tokens.issue({ user: "alice", workspaces: [world.workspace] })
    const bearer = { authorization: `Bearer ${made.ok ? made.value.token : ""}` }
    const act = (verb: string, ...args: string[]): object => ({
      tool: "fixture.act",
      input: { verb, args },
      workspace: world.workspace,
    })
    const begun = await alice("POST", "/v1/calls", act("sleep", "notes/x"), { prefer: "respond-async" })
    const path = `/v1/calls/${String(begun.body["call"])}`
    const before = process.memoryUsage().rss
    const wires: Wire[] = []
    try {
      while (wires.length < 1_000) {
        const some = Array.from({ length: 100 }, () => openWire(world.address))
        wires.push(...some)
        await Promise.all(some.map(({ socket }) => once(socket, "connect")))
        for (const wire of some) wire.say(requestOf("GET", `${path}/events`, bearer))
        await Promise.all(some.map((wire) => wire.until(/event: admitted/)))
      }
      expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024)
      expect((await alice("GET", `${path}/events`)).status).toBe(503)
      const printed = await alice("POST", "/v1/calls", act("print", "3"))
      expect(printed).toMatchObject({ status: 200, body: { ok: true } })
      expect((await alice("DELETE", path)).status).toBe(202)
      await Promise.all(wires.map((wire) => wire.until(/event: settled/)))
      const again = async (): Promise<number> =>
        (await fetch(`${world.address}${path}/events`, { headers: bearer })).status
      expect(await again()).toBe(200)
    } finally {
      for (const { socket } of wires) socket.destroy()
    }
  })
})

it("clients that never read what they asked for are left, and what they left behind is let go of", {
  timeout: 180_000 * patience,
}, async () => {
  await using world = await openDaemonWorld()
  const alice = await world.as()
  const before = sockets()
  const wires = Array.from({ length: 30 }, () => openWire(world.address))
  try {
    await Promise.all(wires.map(({ socket }) => once(socket, "connect")))
    for (const wire of wires) {
      wire.socket.pause()
      // More than the two ends of a connection hold.
      wire.say(requestOf("GET", "/openapi.json").repeat(60))
    }
    for (let nth = 0; nth < 10; nth += 1) expect((await alice("GET", "/v1/tools")).status).toBe(200)
    // The daemon's end of each goes by itself: one that is paused does not hear of it.
    await expect.poll(() => sockets(), { timeout: 120_000 }).toBeLessThan(before + wires.length + 10)
    expect((await alice("GET", "/v1/tools")).status).toBe(200)
  } finally {
    for (const { socket } of wires) socket.destroy()
  }
})

const program = "/usr/bin/slowhttptest"
const missing = existsSync(program) ? undefined : "no slowhttptest here: apt-get install -y slowhttptest"

/** The daemon as people run it, in a process of its own. */
const startServe = async (folder: string) => {
  const data = join(folder, "data")
  const child = spawn(process.execPath, [launcher, "serve", "--listen", "127.0.0.1:0"], {
    env: { ...process.env, CAISSON_DATA: data },
    stdio: ["ignore", "ignore", "pipe"],
  })
  let said = ""
  child.stderr.on("data", (piece: Buffer) => (said += piece.toString()))
  const token = join(data, "first-token")
  await expect.poll(() => existsSync(token) && said.includes("try  curl"), { timeout: 60_000 }).toBe(true)
  return {
    address: /http:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0] ?? "",
    token: readFileSync(token, "utf8").trim(),
    sockets: () => sockets(child.pid),
    async [Symbol.asyncDispose]() {
      const gone = once(child, "exit")
      child.kill("SIGTERM")
      expect(await gone).toEqual([0, null])
    },
  }
}

describeNeeding("slowhttptest", missing, () => {
  const ways = {
    "slow headers": ["-H"],
    "a slow body": ["-B", "-f", "application/json", "-s", "8192"],
    ranges: ["-R"],
    "a slow read": ["-X", "-w", "8", "-y", "16", "-n", "3", "-z", "16", "-k", "5"],
  }
  it.each(Object.entries(ways))(
    "by %s finds the daemon there, and so does who has a token",
    { timeout: 240_000 * patience },
    async (way, flags) => {
      using place = scratch()
      await using served = await startServe(place.folder)
      const before = served.sockets()
      const headers = { authorization: `Bearer ${served.token}` }
      // It knows no other way to bring a header along.
      const cookie = `a=b\r\nAuthorization: Bearer ${served.token}`
      const path = way === "a slow body" ? "/v1/calls" : "/openapi.json"
      const crowd = ["-c", "600", "-r", "300", "-l", "15", "-i", "3", "-p", "5", "-j", cookie]
      let isOver = false
      const testing = promisify(execFile)(program, [...flags, "-u", served.address + path, ...crowd])
      void testing.finally(() => (isOver = true)).catch(() => undefined)
      let asked = 0
      while (!isOver) {
        const answer = await fetch(`${served.address}/v1/tools`, { headers })
        expect(answer.status).toBe(200)
        await answer.arrayBuffer()
        asked += 1
        await turn(100)
      }
      const { stdout } = await testing
      const told = stdout.replaceAll(/\u001b\[[0-9;]*[A-Za-z]/g, "")
      // A machine that is starved may be late for one of its probes.
      expect([...told.matchAll(/service available:\s+(YES|NO)/g)].at(-1)?.[1]).toBe("YES")
      expect(asked).toBeGreaterThan(0)
      await expect.poll(served.sockets, { timeout: 90_000 }).toBeLessThan(before + 10)
    },
  )
})
