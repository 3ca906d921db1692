import { once } from "node:events"
import { readFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type CallEvent, type Client, createClient, ProblemError, Unreachable } from "../../src/client/index.ts"
import { clientTypes, documentOfDaemon, typeOf } from "../../scripts/client-types.ts"
import { type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"

describe("caisson/client", () => {
  let world: DaemonWorld
  let local: Client
  const remote = async (options: object = {}): Promise<Client> => {
    const made = await local.tokens.create({ user: "alice", workspaces: [world.workspace], ...options })
    return createClient({ address: world.address, token: made.token })
  }
  const act = (input: object): Parameters<Client["calls"]["make"]>[0] => ({
    tool: "fixture.act",
    input: input as never,
    workspace: world.workspace,
  })
  beforeAll(async () => {
    world = await openDaemonWorld()
    local = createClient({ socket: world.daemon.socket })
  })
  afterAll(() => world[Symbol.asyncDispose]())

  it("has the types that the daemon's document has: `npm run client-types` makes them", async () => {
    const made = clientTypes(await documentOfDaemon())
    expect(readFileSync(join(import.meta.dirname, "../../src/client/api.ts"), "utf8")).toBe(made)
  })

  it("makes no type of a schema that it does not understand", () => {
    expect(() => typeOf({ type: "object", patternProperties: {} })).toThrow(/patternProperties/)
    expect(() => typeOf({ type: "object", properties: { a: { type: "tuple" } } })).toThrow(/tuple/)
    expect(typeOf({ oneOf: [{ const: "any" }, { type: ["string", "null"] }] })).toBe('("any" | string | null)')
  })

  it("makes calls over the socket and over TCP with a token, and answers with the envelope however they end", async () => {
    const alice = await remote()
    for (const client of [local, alice])
      expect(await client.calls.make(act({ verb: "print", args: ["5"] }))).toMatchObject({ ok: true })
    expect(await alice.calls.make({ ...act({}), tool: "no.such" })).toMatchObject({
      ok: false,
      error: { code: "not_found" },
    })
    const key = { key: "one" }
    const first = await alice.calls.make(act({ verb: "print", args: ["6"] }), key)
    expect(await alice.calls.make(act({ verb: "print", args: ["6"] }), key)).toEqual(first)
    expect((await alice.calls.list({ limit: 1 })).map(({ call }) => call)).toEqual([first.call])
  })

  it("throws what the daemon refuses, and what does not answer, each as what it is", async () => {
    const stranger = createClient({ address: world.address, token: "csn_wrong" })
    await expect(stranger.tools.list()).rejects.toMatchObject({ status: 401, problem: { code: "auth_required" } })
    await expect(local.calls.get("none")).rejects.toThrow(ProblemError)
    await expect(local.tools.get("..")).rejects.toMatchObject({ status: 404 })
    await expect(createClient({ socket: join(world.folder, "nobody") }).tools.list()).rejects.toMatchObject({
      why: "absent",
    })
    const replies: Record<string, string> = {
      broken: "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 90\r\n\r\n{",
      strange: "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nhi",
    }
    for (const [why, reply] of Object.entries(replies)) {
      const path = join(world.folder, why)
      const server = createServer((socket) => {
        socket.on("error", () => undefined)
        socket.once("data", () => socket.end(reply))
      })
      await once(server.listen(path), "listening")
      const asked = createClient({ socket: path }).tools.list()
      await expect(asked).rejects.toThrow(Unreachable)
      await expect(asked).rejects.toMatchObject({ why })
      server.close()
    }
  })

  it("tells events as they come, goes on where one was, and over a connection that broke", async () => {
    const alice = await remote()
    const id = await alice.calls.begin(act({ verb: "print", args: ["9"] }))
    const all: CallEvent[] = []
    for await (const event of alice.calls.events(id)) all.push(event)
    expect(all[0]?.type).toBe("admitted")
    expect(all.at(-1)?.type).toBe("settled")
    expect(all.map(({ id: number }) => number)).toEqual(all.map((_, at) => at))
    const rest: CallEvent[] = []
    for await (const event of alice.calls.events(id, { after: 0 })) rest.push(event)
    expect(rest).toEqual(all.slice(1))
    // A server in between that ends every connection after one event.
    const told = all.map(
      ({ id: number, type, data }) => `id: ${number}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`,
    )
    const asked: (string | undefined)[] = []
    const path = join(world.folder, "between")
    const server = createServer((socket) => {
      socket.on("error", () => undefined)
      socket.once("data", (bytes: Buffer) => {
        const last = /last-event-id: (\d+)/i.exec(bytes.toString())?.[1]
        asked.push(last)
        const next = last === undefined ? 0 : Number(last) + 1
        const isLast = next === told.length - 1
        const piece = told[next] ?? ""
        const chunk = `${Buffer.byteLength(piece).toString(16)}\r\n${piece}\r\n${isLast ? "0\r\n\r\n" : ""}`
        socket.end(`HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n${chunk}`)
      })
    })
    await once(server.listen(path), "listening")
    const through: CallEvent[] = []
    for await (const event of createClient({ socket: path }).calls.events(id)) through.push(event)
    server.close()
    expect(through).toEqual(all)
    expect(asked).toEqual([undefined, ...all.slice(0, -1).map(({ id: number }) => String(number))])
  })

  it("ends a call by an abort, and one that its key was asked for again by whoever may", async () => {
    const alice = await remote()
    const slow = act({ verb: "sleep", args: ["60"] })
    const leaving = new AbortController()
    const left = alice.calls.make(slow, { signal: leaving.signal })
    await expect.poll(async () => (await alice.calls.list()).some(({ state }) => state === "running")).toBe(true)
    leaving.abort()
    await expect(left).rejects.toThrow()
    await expect
      .poll(async () => (await alice.calls.list()).some(({ state }) => state === "running"), { timeout: 30_000 })
      .toBe(false)
    const id = await alice.calls.begin(slow, { key: "slow" })
    const again = alice.calls.make(slow, { key: "slow" })
    expect(await alice.calls.begin(slow, { key: "slow" })).toBe(id)
    await alice.calls.cancel(id)
    expect(await again).toMatchObject({ ok: false, call: id, error: { code: "cancelled" } })
  })

  it("lists tools and drivers, where manifests lie to the operator alone, and says why", async () => {
    const alice = await remote()
    const [own, hers] = [await local.tools.get("json.query"), await alice.tools.get("json.query@1")]
    expect(own.file).toContain("manifests")
    expect({ ...own, file: undefined }).toEqual({ ...hers, file: undefined })
    expect(hers).not.toHaveProperty("file")
    expect((await local.drivers.get("jq")).kind).toBe("cli")
    expect((await alice.tools.list()).diagnostics).toEqual([])
    expect(await alice.why(act({ verb: "print", args: ["1"] }))).toMatchObject({ selected: expect.any(String) })
  })

  it("approves, keeps secrets and makes tokens", async () => {
    const held = await local.calls.make(act({ verb: "write", args: ["notes/c.txt", "x"] }))
    expect(held).toMatchObject({ ok: false, error: { code: "approval_required" } })
    expect((await local.approvals.list()).map(({ id }) => id)).toContain(held.call)
    expect(await local.approvals.get(held.call)).toMatchObject({ effects: [{ path: "notes/c.txt" }] })
    expect(await local.approvals.decide(held.call, "approve")).toMatchObject({ ok: true })
    await local.secrets.set({ slug: "client-key", value: "v-1", shared: true })
    expect(JSON.stringify(await local.secrets.list())).toContain("client-key")
    expect(await local.secrets.remove("client-key", { shared: true })).toBe(true)
    const made = await local.tokens.create({ workspaces: "any", label: "one" })
    expect(await createClient({ address: world.address, token: made.token }).tools.list()).toBeDefined()
    await local.tokens.revoke(made.id)
    await expect(createClient({ address: world.address, token: made.token }).tools.list()).rejects.toMatchObject({
      status: 401,
    })
  })
})
