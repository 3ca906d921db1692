/** What a token made for an agent may not do, however it asks; and what it is told. */
import { symlinkSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Ask, type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"

describe("a token made for an agent", () => {
  let world: DaemonWorld
  let agent: Ask
  let person: Ask
  beforeAll(async () => {
    world = await openDaemonWorld()
    agent = await world.as()
    person = await world.as({ agent: false, roles: ["caller", "approver"] })
  })
  afterAll(() => world[Symbol.asyncDispose]())
  const print = { tool: "fixture.act", input: { verb: "print", args: ["3"] } }

  it("puts no secret of its own in the place of its user's, and removes none", async () => {
    const secret = { slug: "some-token", value: "the user's" }
    expect((await person("POST", "/v1/secrets", secret)).status).toBe(204)
    const refused = { status: 403, body: { code: "unauthorised" } }
    expect(await agent("POST", "/v1/secrets", { ...secret, value: "the agent's" })).toMatchObject(refused)
    expect(await agent("DELETE", "/v1/secrets/some-token")).toMatchObject(refused)
    expect((await agent("GET", "/v1/secrets")).body).toMatchObject({ secrets: [{ slug: "some-token" }] })
    expect(await person("DELETE", "/v1/secrets/some-token")).toMatchObject({ status: 200, body: { removed: true } })
  })

  it("is not told by secrets which folders of others there are", async () => {
    const secret = { slug: "probe", value: "x" }
    const told = async (method: "POST" | "DELETE", workspace: string) => {
      const { status, body } =
        method === "POST"
          ? await person("POST", "/v1/secrets", { ...secret, workspace })
          : await person("DELETE", `/v1/secrets/probe?workspace=${encodeURIComponent(workspace)}`)
      return [status, JSON.stringify(body).replaceAll(workspace, "")]
    }
    const link = join(world.workspace, "notes", "way-out")
    symlinkSync("/etc", link)
    for (const method of ["POST", "DELETE"] as const) {
      const none = await told(method, "/no/such/folder")
      expect(none[0]).toBe(404)
      for (const folder of ["/etc", world.data, "..", link]) expect(await told(method, folder)).toEqual(none)
      expect((await told(method, world.workspace))[0]).not.toBe(404)
    }
  })

  it("says which driver serves its calls only where it has the role for that", async () => {
    const pinned = { ...print, workspace: world.workspace, driver: "actor" }
    const inContext = { ...print, workspace: world.workspace, context: { pinnedProvider: "actor" } }
    for (const asked of [pinned, inContext]) {
      expect(await agent("POST", "/v1/calls", asked)).toMatchObject({
        status: 403,
        body: { ok: false, error: { code: "unauthorised" } },
      })
      const allowed = await world.as({ roles: ["caller", "pin"] })
      expect(await allowed("POST", "/v1/calls", asked)).toMatchObject({ status: 200, body: { driver: "actor@1" } })
      const operator = await world.as({ agent: false, roles: ["caller", "operator"] })
      expect(await operator("POST", "/v1/calls", asked)).toMatchObject({ status: 200 })
    }
  })

  it("is not told where the daemon runs by asking why without a folder", async () => {
    const told = await agent("POST", "/v1/why", { tool: "fixture.act", input: print.input })
    expect(told.status).toBe(200)
    expect(JSON.stringify(told.body)).not.toContain(process.cwd())
  })

  it("is told where what it did waits for a person: id, address and end, in the envelope itself", async () => {
    const held = await agent("POST", "/v1/calls", {
      tool: "fixture.act",
      input: { verb: "write", args: ["notes/held.txt", "x"] },
      workspace: world.workspace,
    })
    const { call, approval } = held.body as { call: string; approval: { id: string; url: string; expires: string } }
    expect(held.status).toBe(428)
    expect(approval).toEqual({ id: call, url: `/v1/approvals/${call}`, expires: expect.any(String) })
    expect(Date.parse(approval.expires)).toBeGreaterThan(Date.now())
    expect(await person("POST", approval.url, { decision: "approve" })).toMatchObject({ status: 200 })
  })
})
