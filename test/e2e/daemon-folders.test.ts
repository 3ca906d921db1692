/** Two tokens of one user, for a folder each: with the one nothing is learned, watched, ended or asked for again of the other's calls. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { type Ask, type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"

let world: DaemonWorld
let other = ""
let one: Ask
let another: Ask
let anywhere: Ask
beforeAll(async () => {
  world = await openDaemonWorld()
  other = join(world.folder, "other")
  mkdirSync(join(other, "notes"), { recursive: true })
  writeFileSync(join(world.workspace, "secret.txt"), "of the one folder alone")
  one = await world.as()
  another = await world.as({ workspaces: [other] })
  anywhere = await world.as({ workspaces: "any" })
})
afterAll(() => world[Symbol.asyncDispose]())

const call = (more: object = {}) => ({
  tool: "fixture.act",
  input: { verb: "write", args: ["notes/kept.txt", "of the one folder alone"] },
  workspace: world.workspace,
  ...more,
})

it("tells nothing of a call on a folder that the token is not for, by any way there is, and ends none", async () => {
  const made = await one("POST", "/v1/calls", call({ plan: true }))
  expect(made).toMatchObject({ status: 200, body: { ok: true } })
  const id = String(made.body["call"])
  const ways = ["", "/events", "/diff"].map((way) => `/v1/calls/${id}${way}`)
  for (const way of ways) expect([way, (await another("GET", way)).status]).toEqual([way, 404])
  expect((await another("DELETE", `/v1/calls/${id}`)).status).toBe(404)
  expect((await another("GET", "/v1/calls")).body["calls"]).toEqual([])
  // The same user, by tokens that are for it.
  expect((await one("DELETE", `/v1/calls/${id}`)).status).toBe(409)
  for (const ask of [one, anywhere]) {
    expect((await ask("GET", `/v1/calls/${id}`)).status).toBe(200)
    expect((await ask("GET", "/v1/calls")).body["calls"]).toHaveLength(1)
  }
})

it("gives nobody the answer to a key of a call on a folder that the token is not for", async () => {
  const headers = { "idempotency-key": "order-17" }
  const made = await one("POST", "/v1/calls", call({ plan: true }), headers)
  expect(made).toMatchObject({ status: 200, body: { ok: true } })
  expect(await one("POST", "/v1/calls", call({ plan: true }), headers)).toMatchObject({ body: made.body })
  expect(await another("POST", "/v1/calls", call({ plan: true }), headers)).toMatchObject({ status: 404 })
  expect(await another("POST", "/v1/calls", call({ workspace: other, plan: true }), headers)).toMatchObject({
    status: 409,
  })
})

it("tells of calls on no folder, and of those on its own", async () => {
  const none = await one("POST", "/v1/calls", { tool: "json.query", input: { filter: ".a", document: { a: 1 } } })
  expect((await another("GET", `/v1/calls/${String(none.body["call"])}`)).status).toBe(200)
  const own = await another("POST", "/v1/calls", call({ workspace: other, plan: true }))
  expect((await another("GET", `/v1/calls/${String(own.body["call"])}`)).status).toBe(200)
  expect((await another("GET", `/v1/calls/${String(own.body["call"])}/diff`)).status).toBe(200)
})
