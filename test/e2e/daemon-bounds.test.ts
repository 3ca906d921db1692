/** What one client, or a crowd of strangers, can take of the daemon, and for how long. */
import { execFileSync } from "node:child_process"
import { once } from "node:events"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { connect } from "node:tls"
import { expect, it } from "vitest"
import { daemonLimits } from "../../src/daemon/limits.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { askAt, openDaemonWorld } from "./daemon-world.ts"
import { openWire, requestOf, statusesIn, type Wire } from "./daemon-wire.ts"
import { openFolder } from "./host-world.ts"

const MiB = 1024 * 1024

it("a stream of events ends when its token is revoked, by this daemon or beside it, and nobody else's does", async () => {
  await using world = await openDaemonWorld()
  const issue = async (options: object) => {
    const made = await world.daemon.host.tokens.issue({ user: "alice", workspaces: [world.workspace], ...options })
    if (!made.ok) throw new Error(made.error.message)
    return made.value
  }
  const [over, beside, kept] = [await issue({}), await issue({}), await issue({})]
  const bearer = ({ token }: { token: string }) => ({ authorization: `Bearer ${token}` })
  const ask = askAt(world.address, bearer(kept))
  const slow = { tool: "fixture.act", input: { verb: "sleep", args: ["notes/x"] }, workspace: world.workspace }
  const begun = await ask("POST", "/v1/calls", slow, { prefer: "respond-async" })
  const path = `/v1/calls/${String(begun.body["call"])}/events`
  const streams = await Promise.all(
    [over, beside, kept].map(async (token) => {
      const wire = openWire(world.address)
      wire.say(requestOf("GET", path, bearer(token)))
      await wire.until(/event: admitted/)
      return wire
    }),
  )
  const [first, second, third] = streams
  const hearing = third?.closed.then(() => "closed")
  expect((await world.local("DELETE", `/v1/tokens/${over.id}`)).status).toBe(204)
  await first?.closed
  expect((await world.daemon.host.tokens.revoke(beside.id)).ok).toBe(true)
  await second?.closed
  expect(await Promise.race([hearing, Promise.resolve("open")])).toBe("open")
  expect((await ask("GET", path.replace("/events", ""))).body).toMatchObject({ state: "running" })
  expect((await ask("DELETE", path.replace("/events", ""))).status).toBe(202)
  await third?.closed
  expect(third?.heard).toContain("event: settled")
}, 60_000)

it("as many strangers as there are connections keep nobody out who has a token, nor one who is there", async () => {
  await using world = await openDaemonWorld()
  const alice = await world.as({ user: "alice" })
  const made = await world.daemon.host.tokens.issue({ user: "alice", workspaces: [world.workspace] })
  const bearer = { authorization: `Bearer ${made.ok ? made.value.token : ""}` }
  const slow = { tool: "fixture.act", input: { verb: "sleep", args: ["notes/x"] }, workspace: world.workspace }
  const call = `/v1/calls/${String((await alice("POST", "/v1/calls", slow, { prefer: "respond-async" })).body["call"])}`
  using there = openWire(world.address)
  there.say(requestOf("GET", `${call}/events`, bearer))
  await there.until(/event: admitted/)
  const strangers: Wire[] = []
  try {
    // No more at once than wait for a listener.
    while (strangers.length < daemonLimits.connections.value + 50) {
      const some = Array.from({ length: 128 }, () => openWire(world.address))
      strangers.push(...some)
      await Promise.all(some.map(({ socket }) => once(socket, "connect")))
    }
    for (let nth = 0; nth < 5; nth += 1) {
      using fresh = openWire(world.address)
      fresh.say(requestOf("GET", "/v1/tools", bearer))
      await fresh.until(/^HTTP\/1\.1 200/)
    }
    expect((await alice("DELETE", call)).status).toBe(202)
    await there.until(/event: settled/)
  } finally {
    for (const { socket } of strangers) socket.destroy()
  }
}, 60_000)

it("one user's connections leave room for others', however many of them have shown a good token", async () => {
  await using world = await openDaemonWorld()
  const tokenOf = async (user: string): Promise<Record<string, string>> => {
    const made = await world.daemon.host.tokens.issue({ user, workspaces: [world.workspace] })
    return { authorization: `Bearer ${made.ok ? made.value.token : ""}` }
  }
  const [alice, bob] = [await tokenOf("alice"), await tokenOf("bob")]
  // Let in, and then without the body that was promised.
  const unfinished = requestOf("POST", "/v1/calls", {
    ...alice,
    "content-type": "application/json",
    "content-length": "10",
    expect: "100-continue",
  })
  const held: Wire[] = []
  try {
    while (held.length < daemonLimits.connections.value + 50) {
      const some = Array.from({ length: 128 }, () => openWire(world.address))
      held.push(...some)
      await Promise.all(some.map(({ socket }) => once(socket, "connect").catch(() => undefined)))
      for (const wire of some) wire.say(unfinished)
    }
    for (let nth = 0; nth < 5; nth += 1) {
      using fresh = openWire(world.address)
      fresh.say(requestOf("GET", "/v1/tools", bob))
      expect(statusesIn(await fresh.until(/^HTTP\/1\.1 \d+/))).toEqual([200])
    }
    expect(held.filter(({ heard }) => heard.includes("100 Continue")).length).toBeGreaterThan(10)
    using beyond = openWire(world.address)
    beyond.say(requestOf("GET", "/v1/tools", alice))
    expect(statusesIn(await beyond.until(/overloaded/))).toEqual([503])
  } finally {
    for (const { socket } of held) socket.destroy()
  }
}, 60_000)

it("bodies that one user sends at once are bounded before they are read, said or not how long they are; others are served", async () => {
  await using world = await openDaemonWorld()
  const tokenOf = async (user: string): Promise<Record<string, string>> => {
    const made = await world.daemon.host.tokens.issue({ user, workspaces: [world.workspace] })
    return { authorization: `Bearer ${made.ok ? made.value.token : ""}` }
  }
  const [alice, bob] = [await tokenOf("alice"), await tokenOf("bob")]
  const large = 17 * MiB
  const json = { "content-type": "application/json" }
  const head = (more: Readonly<Record<string, string>>): string =>
    requestOf("POST", "/v1/calls", { ...alice, ...json, ...more })
  const most = Math.floor(daemonLimits.bodiesOfOneBytes.value / large)
  const held = Array.from({ length: most }, () => openWire(world.address))
  try {
    for (const wire of held) wire.say(head({ "content-length": String(large), expect: "100-continue" }))
    // Whoever is told to go on was let in.
    for (const wire of held) await wire.until(/100 Continue/)
    using beyond = openWire(world.address)
    beyond.say(head({ "content-length": String(large) }))
    expect(statusesIn(await beyond.until(/overloaded/))).toEqual([503])
    using chunked = openWire(world.address)
    chunked.say(head({ "transfer-encoding": "chunked" }))
    const piece = `${MiB.toString(16)}\r\n${" ".repeat(MiB)}\r\n`
    for (let sent = 0; sent < 16; sent += 1) chunked.say(piece)
    expect(statusesIn(await chunked.until(/overloaded/))).toEqual([503])
    const print = { tool: "fixture.act", input: { verb: "print", args: ["3"] }, workspace: world.workspace }
    expect((await askAt(world.address, bob)("POST", "/v1/calls", print)).status).toBe(200)
    for (const { socket } of held) socket.destroy()
    const again = async (): Promise<number> => (await askAt(world.address, alice)("POST", "/v1/calls", print)).status
    await expect.poll(again).toBe(200)
  } finally {
    for (const { socket } of held) socket.destroy()
  }
}, 60_000)

it("a certificate that was renewed is taken at a reload, and one that is broken is refused with what it comes with", async () => {
  const folder = openFolder()
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")]
  const issue = (name: string): void => {
    const of = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    execFileSync("openssl", ["req", "-x509", ...of, "-subj", `/CN=${name}`, "-keyout", key, "-out", cert], {
      stdio: "ignore",
    })
  }
  try {
    issue("first.test")
    const world = await openDaemonWorld("", { tls: { cert, key } })
    await using stack = new AsyncDisposableStack()
    stack.use(world)
    const { hostname, port } = new URL(world.address)
    const shown = async (): Promise<string | string[] | undefined> => {
      const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false })
      await once(socket, "secureConnect")
      const { subject } = socket.getPeerCertificate()
      socket.destroy()
      return subject.CN
    }
    expect(await shown()).toBe("first.test")
    issue("second.test")
    expect(await shown()).toBe("first.test")
    expect((await world.local("POST", "/v1/reload")).status).toBe(200)
    expect(await shown()).toBe("second.test")
    writeFileSync(cert, "no certificate\n")
    const refused = await world.local("POST", "/v1/reload")
    expect(refused).toMatchObject({ status: 400, body: { code: "input_invalid" } })
    expect(await shown()).toBe("second.test")
  } finally {
    removeFolder(folder)
  }
}, 60_000)
