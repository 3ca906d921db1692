import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { createHost } from "../../src/host/index.ts"
import { daemonLimits } from "../../src/daemon/limits.ts"
import { type Ask, askAt, askLocally, type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"
import { openWire, requestOf, statusesIn } from "./daemon-wire.ts"
import { fixtureTools } from "./host-world.ts"

describe("a hostile client", () => {
  let world: DaemonWorld
  let token: string
  let alice: Ask
  let faults: unknown[]
  beforeAll(async () => {
    faults = []
    world = await openDaemonWorld("", { onFault: (error) => faults.push(error) })
    const made = await world.daemon.host.tokens.issue({ user: "alice", workspaces: [world.workspace] })
    if (!made.ok) throw new Error(made.error.message)
    token = made.value.token
    alice = askAt(world.address, { authorization: `Bearer ${token}` })
  })
  afterAll(async () => {
    expect(faults).toEqual([])
    await world[Symbol.asyncDispose]()
  })
  const act = (input: object): object => ({ tool: "fixture.act", input, workspace: world.workspace })
  const print = (): object => act({ verb: "print", args: ["3"] })
  const bearer = (): Record<string, string> => ({ authorization: `Bearer ${token}` })
  const running = async (): Promise<unknown[]> =>
    ((await alice("GET", "/v1/calls")).body["calls"] as { state: string }[]).filter(({ state }) => state === "running")

  it("that speaks no good HTTP is told so and thrown out, before anything that follows is read as a request", async () => {
    const own = `authorization: Bearer ${token}\r\n`
    const smuggled = "GET /v1/calls HTTP/1.1\r\nhost: 127.0.0.1\r\n" + own + "\r\n"
    const head = `POST /v1/calls HTTP/1.1\r\nhost: 127.0.0.1\r\n${own}content-type: application/json\r\n`
    const cases: Readonly<Record<string, string>> = {
      "length and chunks": `${head}content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
      "chunks, then length": `${head}transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\n${smuggled}`,
      "two lengths": `${head}content-length: 2\r\ncontent-length: 4\r\n\r\n{}${smuggled}`,
      "a length with a sign": `${head}content-length: +2\r\n\r\n{}${smuggled}`,
      "chunks that are not the last coding": `${head}transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n${smuggled}`,
      "a blank before the colon": `${head}transfer-encoding : chunked\r\n\r\n0\r\n\r\n${smuggled}`,
      "a folded header": `${head}x: a\r\n b\r\ntransfer-encoding: \r\n chunked\r\n\r\n0\r\n\r\n${smuggled}`,
      "a chunk's size that is none": `${head}transfer-encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n${smuggled}`,
      "HTTP/0.9": `GET /v1/tools\r\n${smuggled}`,
      "HTTP/2 without having been asked": `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${smuggled}`,
      "a version that there is not": `GET /v1/tools HTTP/3.7\r\n\r\n${smuggled}`,
      "a method that there is not": `STEAL /v1/tools HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n${smuggled}`,
      "no host": `GET /v1/tools HTTP/1.1\r\n${own}\r\n${smuggled}`,
      "a header of a zero byte": `GET /v1/tools HTTP/1.1\r\nhost: 127.0.0.1\r\nx: a\0b\r\n\r\n${smuggled}`,
    }
    for (const [of, bytes] of Object.entries(cases)) {
      using wire = openWire(world.address)
      wire.say(bytes)
      await wire.closed
      const statuses = statusesIn(wire.heard)
      expect([of, statuses.filter((status) => status !== 400)]).toEqual([of, []])
      expect([of, statuses.length]).toEqual([of, 1])
    }
    using long = openWire(world.address)
    long.say(requestOf("GET", "/v1/tools", { ...bearer(), x: "y".repeat(daemonLimits.headerBytes.value) }))
    await long.closed
    expect(statusesIn(long.heard)).toEqual([431])
    using tunnel = openWire(world.address)
    tunnel.say("CONNECT 127.0.0.1:22 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
    await tunnel.closed
    expect(statusesIn(tunnel.heard).filter((status) => status < 400)).toEqual([])
  })

  it("that asks for another protocol, or for something of no method, gets what anybody without a token gets", async () => {
    using wire = openWire(world.address)
    const upgrade = {
      connection: "upgrade",
      upgrade: "websocket",
      "sec-websocket-key": "x",
      "sec-websocket-version": "13",
    }
    wire.say(requestOf("GET", "/v1/tools", upgrade))
    expect(statusesIn(await wire.until(/auth_required/))).toEqual([401])
    using star = openWire(world.address)
    star.say(requestOf("OPTIONS", "*"))
    await star.until(/^HTTP\/1\.1 4\d\d/)
    expect(star.heard).not.toMatch(/access-control|allow:/i)
    for (const method of ["OPTIONS", "TRACE", "PUT", "PATCH", "PROPFIND"]) {
      using odd = openWire(world.address)
      odd.say(requestOf(method, "/v1/calls", { ...bearer(), origin: "http://127.0.0.1", connection: "close" }))
      await odd.closed
      expect([method, statusesIn(odd.heard).every((status) => status >= 400 && status < 500)]).toEqual([method, true])
      expect(odd.heard).not.toMatch(/access-control/i)
    }
  })

  it("that plays with addresses finds nothing, in problem details", async () => {
    const ids = [
      "..%2f",
      "..%2f..%2fetc%2fpasswd",
      "%00",
      "none",
      "__proto__",
      "constructor",
      "%2e%2e",
      "a%0d%0ab",
      "01J",
    ]
    for (const id of ids)
      for (const [method, path] of [
        ["GET", `/v1/calls/${id}`],
        ["GET", `/v1/calls/${id}/events`],
        ["GET", `/v1/calls/${id}/diff`],
        ["DELETE", `/v1/calls/${id}`],
        ["GET", `/v1/approvals/${id}`],
      ] as const) {
        using wire = openWire(world.address)
        wire.say(requestOf(method, path, { ...bearer(), connection: "close" }))
        await wire.closed
        expect([method, path, statusesIn(wire.heard)]).toEqual([method, path, [404]])
      }
    for (const path of ["/v1/calls/%zz", `/v1/calls/${"x".repeat(daemonLimits.pathChars.value + 1)}`]) {
      const wire = openWire(world.address)
      wire.say(requestOf("GET", path, { connection: "close" }))
      await wire.closed
      const [, head = "", body = ""] = /^([^]*?)\r\n\r\n([^]*)$/.exec(wire.heard) ?? []
      expect([path.slice(0, 20), head]).toEqual([
        path.slice(0, 20),
        expect.stringMatching(/^content-type: application\/problem\+json/im),
      ])
      expect(body).toContain("urn:caisson:reason:")
    }
    for (const path of [
      "//v1/tools",
      "/v1/tools/",
      "/V1/TOOLS",
      "/v1/tools;x",
      "/v1//tools",
      "/%76%31/tools/..",
      "/.well-known/x",
    ])
      expect([path, [400, 404].includes((await alice("GET", path)).status)]).toEqual([path, true])
  })

  it("that sends bodies made to confuse is told what is wrong with them, and nothing runs", async () => {
    const before = (await alice("GET", "/v1/calls?limit=200")).body["calls"] as unknown[]
    const call = JSON.stringify(print())
    const bodies: Readonly<Record<string, string>> = {
      "a prototype": call.replace('{"tool"', '{"__proto__":{"plan":true},"tool"'),
      "a prototype below": call.replace('"args"', '"__proto__":{"x":1},"args"'),
      "a constructor's": call.replace('"args"', '"constructor":{"prototype":{"x":1}},"args"'),
      "too deep": `{"tool":"fixture.act","input":${"[".repeat(200_000)}${"]".repeat(200_000)}}`,
      "rubbish behind it": `${call}x`,
      "no object": "null",
      "a lone quote": '"',
    }
    for (const [of, body] of Object.entries(bodies))
      for (const headers of [{}, { "idempotency-key": `confused-${of.replaceAll(" ", "-")}` }]) {
        const answer = await alice("POST", "/v1/calls", body, headers)
        const isRefused = answer.status === 400 || answer.status === 422
        expect([of, answer.status, isRefused]).toEqual([of, answer.status, true])
        const said = JSON.stringify(answer.body)
        expect([of, said]).toEqual([of, expect.not.stringMatching(/\/node_modules\/|\.ts:|call stack/)])
        if (of.includes("prototype") || of.includes("constructor")) expect(said).toMatch(/__proto__/)
      }
    expect(
      (await alice("POST", "/v1/calls", call, { "content-type": "application/x-www-form-urlencoded" })).status,
    ).toBe(415)
    expect((await alice("DELETE", "/v1/calls/none", "{}")).status).toBe(404)
    const after = (await alice("GET", "/v1/calls?limit=200")).body["calls"] as { envelope?: { ok: boolean } }[]
    expect(after.slice(0, after.length - before.length).filter(({ envelope }) => envelope?.ok !== false)).toEqual([])
    expect(({} as { plan?: boolean }).plan).toBeUndefined()
  })

  it("that sends headers that say too much, twice, or nonsense, is refused or ignored, and never believed", async () => {
    const made = await alice("POST", "/v1/calls", print(), { prefer: 'respond-async="yes"; x, wait=-1,,,;;' })
    expect(made.status).toBe(200)
    const id = String(made.body["call"])
    for (const last of ["99999999999999999999", "-1", "1e3", "0x1", "NaN", " ", "9".repeat(2_000)]) {
      using wire = openWire(world.address)
      wire.say(requestOf("GET", `/v1/calls/${id}/events`, { ...bearer(), "last-event-id": last, connection: "close" }))
      await wire.closed
      expect([last.slice(0, 24), statusesIn(wire.heard)]).toEqual([last.slice(0, 24), [400]])
    }
    // One that has seen more than there was has seen all.
    const beyond = await fetch(`${world.address}/v1/calls/${id}/events`, {
      headers: { ...bearer(), "last-event-id": "999999999999999" },
    })
    expect([beyond.status, await beyond.text()]).toEqual([200, ""])
    for (const key of ["a b", "x".repeat(256), "\u00e9", "a, b"])
      expect([key.slice(0, 8), (await alice("POST", "/v1/calls", print(), { "idempotency-key": key })).status]).toEqual(
        [key.slice(0, 8), 400],
      )
    const body = JSON.stringify(print())
    const twice = (name: string, one: string, other: string): string =>
      requestOf("POST", "/v1/calls", { ...bearer(), connection: "close", [name]: one }, body).replace(
        "\r\n\r\n",
        `\r\n${name}: ${other}\r\n\r\n`,
      )
    for (const [name, one, other, statuses] of [
      ["idempotency-key", "one", "two", [400]],
      ["caisson-user", "alice", "bob", [400]],
      ["caisson-user", "bob", "bob", [400]],
      ["authorization", `Bearer ${token}`, "Bearer csn_other", [200, 400, 401]],
      ["host", "127.0.0.1", "evil.example", [400, 421]],
    ] as const) {
      using wire = openWire(world.address)
      wire.say(twice(name, one, other))
      await wire.closed
      const [status = 0] = statusesIn(wire.heard)
      expect([name, statuses.includes(status as never), status]).toEqual([name, true, status])
    }
    for (const user of ["../bob", "__proto__ x", "a".repeat(5_000), ""])
      expect([user.slice(0, 9), (await alice("GET", "/v1/tools", undefined, { "caisson-user": user })).status]).toEqual(
        [user.slice(0, 9), 400],
      )
    expect((await alice("GET", "/v1/tools", undefined, { "caisson-user": "bob" })).status).toBe(403)
  })

  it("that asks for the head of a stream gets no stream", async () => {
    const begun = await alice("POST", "/v1/calls", act({ verb: "sleep", args: ["notes/x"] }), {
      prefer: "respond-async",
    })
    const id = String(begun.body["call"])
    using wire = openWire(world.address)
    wire.say(requestOf("HEAD", `/v1/calls/${id}/events`, { ...bearer(), connection: "close" }))
    await wire.closed
    expect(statusesIn(wire.heard)).toEqual([404])
    expect((await alice("DELETE", `/v1/calls/${id}`)).status).toBe(202)
  })

  it("that leaves before it is answered leaves no call running", async () => {
    const slow = JSON.stringify(act({ verb: "sleep", args: ["notes/x"] }))
    for (let nth = 0; nth < 8; nth += 1) {
      using wire = openWire(world.address)
      await new Promise((resolve) => wire.socket.once("connect", resolve))
      wire.say(requestOf("POST", "/v1/calls", bearer(), slow))
      wire.socket.destroy()
      await wire.closed
    }
    await expect.poll(running, { timeout: 30_000 }).toEqual([])
  })

  it("that tries tokens out is slowed down, and does not lock out who has a good one from the same address", async () => {
    const tries: number[] = []
    for (let nth = 0; nth < daemonLimits.authFailures.value + 5; nth += 1)
      tries.push(
        (await world.raw("GET", "/v1/tools", undefined, { authorization: `Bearer csn_${"x".repeat(43)}` })).status,
      )
    expect(tries.at(0)).toBe(401)
    expect(tries.at(-1)).toBe(429)
    expect((await alice("GET", "/v1/tools")).status).toBe(200)
  })

  it("that sends many requests at once on a connection is served one at a time, and thrown out with more", async () => {
    const lookFor = (more = {}): string =>
      requestOf("GET", "/v1/calls/01JZZZZZZZZZZZZZZZZZZZZZZZ", { ...bearer(), ...more })
    const most = daemonLimits.pipelined.value
    using wire = openWire(world.address)
    wire.say(lookFor().repeat(most - 1) + lookFor({ connection: "close" }))
    await wire.closed
    expect(statusesIn(wire.heard)).toEqual(Array.from({ length: most }, () => 404))
    using flood = openWire(world.address)
    flood.say(lookFor().repeat(most * 10))
    await flood.closed
    expect(statusesIn(flood.heard).length).toBeLessThan(most)
    // Nor do those of one connection take the places of all.
    using greedy = openWire(world.address)
    const slow = JSON.stringify(act({ verb: "sleep", args: ["notes/x"] }))
    greedy.say(requestOf("POST", "/v1/calls", bearer(), slow).repeat(20))
    await expect.poll(running, { timeout: 20_000 }).toHaveLength(1)
    greedy.socket.destroy()
    await expect.poll(running, { timeout: 60_000 }).toEqual([])
    const ids = (
      (await alice("GET", "/v1/calls")).body["calls"] as { envelope?: { error?: { code: string } } }[]
    ).filter(({ envelope }) => envelope?.error?.code === "cancelled")
    expect(ids.length).toBeLessThan(20)
  })

  it("that brings one key many times at once, over connections and processes, has one call", async () => {
    const headers = { "idempotency-key": "at-once", "caisson-approved": "yes" }
    const local = askLocally(world.daemon.socket)
    const body = act({ verb: "append", args: ["notes/once.txt", "x"] })
    await using other = await createHost({ data: world.data, manifests: [fixtureTools], record: true })
    const beside = async (): Promise<unknown> =>
      other
        .call(body as never, { key: "at-once", approved: true })
        .then((told) => (told.ok ? told.call : told.error.code))
    const told = await Promise.all([
      ...Array.from({ length: 8 }, async () => {
        const { body: answer } = await local("POST", "/v1/calls", body, headers)
        return answer["call"] ?? answer["code"]
      }),
      beside(),
      beside(),
    ])
    const calls = new Set(told.filter((one) => one !== "conflict"))
    expect(calls.size, JSON.stringify(told)).toBe(1)
    expect(readFileSync(join(world.workspace, "notes/once.txt"), "utf8")).toBe("x")
    const after = await local("POST", "/v1/calls", body, headers)
    expect(after.body["call"]).toBe([...calls][0])
    expect(await beside()).toBe([...calls][0])
  })

  it("that brings its key again hears how the call ended from a daemon that has forgotten what happened in it", async () => {
    const own = await openDaemonWorld()
    await using stack = new AsyncDisposableStack()
    stack.use(own)
    const local = askLocally(own.daemon.socket)
    const body = { tool: "fixture.act", input: { verb: "print", args: ["3"] }, workspace: own.workspace }
    await using other = await createHost({ data: own.data, manifests: [fixtureTools], record: true })
    const first = await other.call(body as never, { key: "before" })
    const again = await local("POST", "/v1/calls", body, { "idempotency-key": "before" })
    expect(again.body["call"]).toBe(first.call)
    const wire = openWire({ path: own.daemon.socket })
    wire.say(requestOf("GET", `/v1/calls/${first.call}/events`, { connection: "close" }))
    await wire.closed
    expect(wire.heard).toContain("event: settled")
  })

  it("that comes while the daemon closes is told to come later, and begins nothing", async () => {
    const own = await openDaemonWorld()
    await using stack = new AsyncDisposableStack()
    stack.use(own)
    const local = askLocally(own.daemon.socket)
    const slow = { tool: "fixture.act", input: { verb: "sleep", args: ["notes/x"] }, workspace: own.workspace }
    const begun = await local("POST", "/v1/calls", slow, { prefer: "respond-async" })
    expect(begun.status).toBe(202)
    using kept = openWire({ path: own.daemon.socket })
    kept.say(requestOf("GET", "/v1/tools"))
    await kept.until(/^HTTP\/1\.1 200/)
    const closing = own.daemon.close()
    kept.say(
      requestOf(
        "POST",
        "/v1/calls",
        {},
        JSON.stringify({ ...slow, input: { verb: "write", args: ["notes/late.txt", "x"] } }),
      ),
    )
    await kept.until(/HTTP\/1\.1 503[^]*overloaded/)
    const told = await local("DELETE", `/v1/calls/${String(begun.body["call"])}`)
    expect(told.status).toBe(202)
    await closing
    expect(existsSync(join(own.workspace, "notes/late.txt"))).toBe(false)
    expect(existsSync(own.daemon.socket)).toBe(false)
  })
})
