import { existsSync, readFileSync } from "node:fs"
import { connect } from "node:net"
import { once } from "node:events"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { openDaemon } from "../../src/daemon/daemon.ts"
import { verifyChain } from "../../src/host/index.ts"
import { type Ask, type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"

const write = (path: string, text = "by the tool"): object => ({ verb: "write", args: [path, text] })

describe("the daemon", () => {
  let world: DaemonWorld
  let alice: Ask
  let bob: Ask
  let person: Ask
  beforeAll(async () => {
    world = await openDaemonWorld()
    alice = await world.as()
    bob = await world.as({ user: "bob" })
    person = await world.as({ agent: false, roles: ["caller", "approver"] })
  })
  afterAll(() => world[Symbol.asyncDispose]())
  const act = (input: object): object => ({ tool: "fixture.act", input, workspace: world.workspace })
  const note = (name: string): string | undefined => {
    const file = join(world.workspace, "notes", name)
    return existsSync(file) ? readFileSync(file, "utf8") : undefined
  }

  it("runs a call, and remembers what it answered for whom it was made, and nobody else", async () => {
    const made = await alice("POST", "/v1/calls", act({ verb: "print", args: ["5"] }))
    expect(made).toMatchObject({ status: 200, body: { ok: true } })
    const id = String(made.body["call"])
    expect(await alice("GET", `/v1/calls/${id}`)).toMatchObject({
      status: 200,
      body: { state: "settled", envelope: made.body },
    })
    expect((await bob("GET", `/v1/calls/${id}`)).status).toBe(404)
    const bobs = await bob("GET", "/v1/calls")
    expect(JSON.stringify(bobs.body)).not.toContain(id)
    expect((await bob("GET", `/v1/calls/${id}/events`)).status).toBe(404)
    expect((await bob("DELETE", `/v1/calls/${id}`)).status).toBe(404)
    expect((await alice("DELETE", `/v1/calls/${id}`)).status).toBe(409)
  })

  it("serves nobody without a token over TCP, whatever they say they are, and the data folder's owner over the socket", async () => {
    for (const headers of [
      {},
      { authorization: "Bearer csn_wrong" },
      { authorization: "Basic YTpi" },
      { "caisson-user": "alice" },
    ])
      expect(await world.raw("GET", "/v1/tools", undefined, headers)).toMatchObject({
        status: 401,
        body: { code: "auth_required" },
      })
    const { local } = world
    expect((await local("GET", "/v1/tools")).status).toBe(200)
    expect((await local("POST", "/v1/calls", act({ verb: "print", args: ["1"] }))).status).toBe(200)
  })

  it("is not led on by a page that comes under another name, or from another origin", async () => {
    const [host, port] = new URL(world.address).host.split(":")
    const socket = connect(Number(port), host)
    socket.write("GET /v1/tools HTTP/1.1\r\nHost: rebound.example\r\nConnection: close\r\n\r\n")
    const [first] = (await once(socket, "data")) as [Buffer]
    expect(first.toString()).toMatch(/^HTTP\/1\.1 421 /)
    socket.destroy()
    expect((await alice("GET", "/v1/tools", undefined, { origin: "https://evil.example" })).status).toBe(403)
  })

  it("gives a key its first answer, runs it once, and refuses it for anything else", async () => {
    const headers = { "idempotency-key": "one", "caisson-approved": "yes" }
    const body = act(write("notes/key.txt", "once"))
    const first = await person("POST", "/v1/calls", body, headers)
    expect(first).toMatchObject({
      status: 200,
      body: { ok: true, effects: [{ path: "notes/key.txt", committed: true }] },
    })
    const again = await person("POST", "/v1/calls", body, headers)
    expect(again.body).toEqual(first.body)
    expect(await person("POST", "/v1/calls", act(write("notes/key.txt", "twice")), headers)).toMatchObject({
      status: 409,
      body: { code: "conflict" },
    })
    expect(note("key.txt")).toBe("once")
    // Another user's key of the same name is another key.
    const others = await bob("POST", "/v1/calls", act({ verb: "print", args: ["2"] }), { "idempotency-key": "one" })
    expect(others.body["call"]).not.toBe(first.body["call"])
  })

  it("holds the effects of an agent's call, which no agent can approve, and commits them when a person says yes", async () => {
    const held = await alice("POST", "/v1/calls", act(write("notes/held.txt")), { "caisson-approved": "yes" })
    expect(held).toMatchObject({ status: 428, body: { ok: false, error: { code: "approval_required" } } })
    const id = String(held.body["call"])
    expect((await alice("POST", `/v1/approvals/${id}`, { decision: "approve" })).status).toBe(403)
    expect((await bob("GET", `/v1/approvals/${id}`)).status).toBe(404)
    expect(note("held.txt")).toBeUndefined()
    expect(await person("GET", `/v1/approvals/${id}`)).toMatchObject({ status: 200, body: { intact: true } })
    const content = [
      {
        kind: "create",
        path: "notes/held.txt",
        declared: true,
        mode: "none → 0644",
        diff: "@@ -0,0 +1,1 @@\n+by the tool\n\\ No newline at end of file",
      },
    ]
    expect((await person("GET", `/v1/approvals/${id}`)).body["content"]).toEqual(content)
    expect((await alice("GET", `/v1/calls/${id}/diff`)).body).toEqual({ changes: content })
    expect((await bob("GET", `/v1/calls/${id}/diff`)).status).toBe(404)
    const plan = await alice("POST", "/v1/calls", { ...act(write("notes/old.txt", "new")), plan: true })
    const planned = await alice("GET", `/v1/calls/${String(plan.body["call"])}/diff`)
    expect(planned.body).toMatchObject({
      changes: [{ kind: "modify", diff: expect.stringContaining("-old") as string }],
    })
    expect(await person("POST", `/v1/approvals/${id}`, { decision: "approve" })).toMatchObject({
      status: 200,
      body: { ok: true, call: id },
    })
    expect(note("held.txt")).toBe("by the tool")
  })

  it("tells of a held call that was decided what became of it, by its id and by its key", async () => {
    for (const decision of ["approve", "deny"] as const) {
      const headers = { "idempotency-key": `held-${decision}` }
      const body = act(write(`notes/${decision}.txt`))
      const held = await person("POST", "/v1/calls", body, headers)
      expect(held).toMatchObject({ status: 428, body: { error: { code: "approval_required" } } })
      const id = String(held.body["call"])
      const decided = await person("POST", `/v1/approvals/${id}`, { decision })
      expect(decided).toMatchObject({ status: 200, body: { ok: decision === "approve", call: id } })
      expect(await person("GET", `/v1/calls/${id}`)).toMatchObject({
        status: 200,
        body: { state: "settled", envelope: decided.body },
      })
      const again = await person("POST", "/v1/calls", body, headers)
      expect(again.body).toEqual(decided.body)
    }
  })

  it("answers later where that is asked for, tells what happens meanwhile, and goes on where a reader was", async () => {
    const begun = await alice("POST", "/v1/calls", act({ verb: "print", args: ["9"] }), { prefer: "respond-async" })
    expect(begun).toMatchObject({ status: 202, body: { state: "running" } })
    const where = begun.headers.get("location") ?? ""
    expect(where).toBe(`/v1/calls/${String(begun.body["call"])}`)
    const made = await world.daemon.host.tokens.issue({ user: "alice", workspaces: [world.workspace] })
    if (!made.ok) throw new Error(made.error.message)
    const authorization = `Bearer ${made.value.token}`
    const all = await (await fetch(`${world.address}${where}/events`, { headers: { authorization } })).text()
    const types = [...all.matchAll(/^event: (.*)$/gm)].map(([, type]) => type)
    expect(types[0]).toBe("admitted")
    expect(types.at(-1)).toBe("settled")
    expect(all).toContain("xxxxxxxxx")
    const last = [...all.matchAll(/^id: (.*)$/gm)].at(-2)?.[1] ?? ""
    const rest = await (
      await fetch(`${world.address}${where}/events`, { headers: { authorization, "last-event-id": last } })
    ).text()
    expect([...rest.matchAll(/^event: (.*)$/gm)].map(([, type]) => type)).toEqual(["settled"])
  })

  it("ends a call that is cancelled, and one whose caller left without a way to ask again", async () => {
    const slow = act({ verb: "sleep", args: ["60"] })
    const begun = await alice("POST", "/v1/calls", slow, { prefer: "respond-async" })
    const id = String(begun.body["call"])
    expect((await bob("DELETE", `/v1/calls/${id}`)).status).toBe(404)
    expect((await alice("DELETE", `/v1/calls/${id}`)).status).toBe(202)
    await expect
      .poll(async () => (await alice("GET", `/v1/calls/${id}`)).body, { timeout: 30_000 })
      .toMatchObject({ state: "settled", envelope: { error: { code: "cancelled" } } })
  })

  it("refuses what it cannot read, with the field and the fix, and runs nothing", async () => {
    const bad: readonly (readonly [unknown, number])[] = [
      ["{", 400],
      [[], 400],
      [{ tool: "fixture.act", inptu: {} }, 400],
      [{ tool: 7 }, 400],
      [{ ...(act({}) as object), workspace: "relative" }, 400],
      [{ tool: "no.such", input: {} }, 404],
      [{ tool: "fixture.act", input: { verb: "print", args: [] }, workspace: "/etc" }, 404],
    ]
    for (const [body, status] of bad) {
      const answer = await alice("POST", "/v1/calls", body)
      expect([JSON.stringify(body), answer.status]).toEqual([JSON.stringify(body), status])
    }
    expect((await alice("POST", "/v1/calls", "x".repeat(64), { "content-type": "text/plain" })).status).toBe(415)
    expect((await alice("GET", "/v1/nothing")).status).toBe(404)
  })

  it("lets no second daemon on its data folder, and leaves nothing of the first", async () => {
    await expect(openDaemon({ data: world.data, listen: "none" })).rejects.toThrow(/runs on the data folder/)
    const own = await openDaemonWorld()
    const voice = await own.as()
    expect(
      (await voice("POST", "/v1/calls", { tool: "json.query", input: { filter: ".", document: {} } })).status,
    ).toBe(200)
    await own.daemon.close()
    expect(existsSync(own.daemon.socket)).toBe(false)
    await expect(fetch(own.address)).rejects.toThrow()
    expect(await verifyChain(own.data)).toMatchObject({ ok: true })
    await own[Symbol.asyncDispose]()
  })
})
