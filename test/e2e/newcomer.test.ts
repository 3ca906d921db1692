/** What somebody runs into who comes to it for the first time, or at the end of a pipe. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { caisson, scratch } from "../cli/run-caisson.ts"
import { type Ask, type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"

const lines = (messages: readonly object[]): string => messages.map((one) => `${JSON.stringify(one)}\n`).join("")

describe("`caisson mcp`", { timeout: 120_000 }, () => {
  it("answers all that came through a pipe that has ended since", async () => {
    using place = scratch()
    const call = (id: number) => ({
      jsonrpc: "2.0",
      id,
      method: "tools/call",
      params: { name: "json.query", arguments: { filter: ".a", document: { a: id } } },
    })
    const clientInfo = { name: "pipe", version: "1" }
    const asked = [
      {
        jsonrpc: "2.0",
        id: 1,
        method: "initialize",
        params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo },
      },
      { jsonrpc: "2.0", method: "notifications/initialized" },
      { jsonrpc: "2.0", id: 2, method: "tools/list" },
      call(3),
      call(4),
    ]
    const { code, stdout } = await caisson(["mcp"], {
      env: { CAISSON_DATA: `${place.folder}/data` },
      cwd: place.folder,
      input: lines(asked),
    })
    const told = stdout
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as { id: number })
    expect(told.map(({ id }) => id).sort()).toEqual([1, 2, 3, 4])
    expect(stdout).toContain('"structuredContent"')
    expect(code).toBe(0)
  })

  it("says of a folder that is not there that it is not, and serves nothing", async () => {
    using place = scratch()
    const ended = await caisson(["mcp", "--workspace", "/nonexist"], { env: { CAISSON_DATA: `${place.folder}/data` } })
    expect(ended).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining("there is no folder /nonexist"),
    })
  })
})

describe("the API", () => {
  let world: DaemonWorld
  let alice: Ask
  beforeAll(async () => {
    world = await openDaemonWorld()
    alice = await world.as({ agent: false })
  })
  afterAll(() => world[Symbol.asyncDispose]())

  it("begins no login of a driver that there is not, nor in a folder that there is not", async () => {
    const login = (driver: string, workspace: string) => alice("POST", "/v1/logins", { driver, workspace })
    expect(await login("no-such", world.workspace)).toMatchObject({ status: 404, body: { code: "not_found" } })
    expect(await login("jq", "/nonexist")).toMatchObject({ status: expect.toBeOneOf([400, 403, 404]) })
  })

  it("refuses filters of receipts that nothing can fit, with the field", async () => {
    for (const [query, field] of [
      ["verdict=nonsense", "verdict"],
      ["tool=%20%20", "tool"],
      ["host=https%3A%2F%2Fapi.test%2Fx", "host"],
      ["wrote=notes", "wrote"],
      ["call=nonsense", "call"],
      ["since=2026-02-01&until=2026-01-01", "until"],
    ] as const) {
      const told = await alice("GET", `/v1/receipts?${query}`)
      expect([query, told.status, JSON.stringify(told.body)]).toEqual([query, 400, expect.stringContaining(field)])
    }
    for (const query of [
      "verdict=ok",
      "verdict=timeout",
      "verdict=notes:gone",
      "tool=json.query",
      "tool=a.b@2",
      "host=a.test:443",
    ])
      expect([query, (await alice("GET", `/v1/receipts?${query}`)).status]).toEqual([query, 200])
  })

  it("hints at no flag of the command line to whoever is not at one, and titles a refusal by what was asked", async () => {
    const write = {
      tool: "fixture.act",
      input: { verb: "write", args: ["notes/h.txt", "x"] },
      workspace: world.workspace,
    }
    const agent = await world.as()
    const held = await agent("POST", "/v1/calls", write)
    expect(held).toMatchObject({ status: 428 })
    expect(JSON.stringify(held.body)).not.toContain("--yes")
    expect(JSON.stringify((await world.local("POST", "/v1/calls", write)).body)).toContain("--yes")
    expect((await agent("GET", "/v1/calls?limit=0")).body["title"]).toBe("the request is not what is asked for")
    expect((await world.raw("GET", "/v1/tools")).body["title"]).toBe("somebody must sign in first")
  })
})
