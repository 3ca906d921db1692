import { spawnSync } from "node:child_process"
import { readFileSync, rmSync } from "node:fs"
import { get } from "node:http"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Ask, type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"

const CANARY = "canary-7f3a91"

const textOf = async (world: DaemonWorld, headers: Readonly<Record<string, string>>): Promise<string> => {
  const response = await fetch(`${world.address}/metrics`, { headers })
  expect(response.status).toBe(200)
  expect(response.headers.get("content-type")).toMatch(/^text\/plain; version=/)
  return response.text()
}
const tokenOf = async (world: DaemonWorld, roles: readonly string[]): Promise<Readonly<Record<string, string>>> => {
  const made = await world.daemon.host.tokens.issue({ user: "ops", agent: false, workspaces: "any", roles })
  if (!made.ok) throw new Error(made.error.message)
  return { authorization: `Bearer ${made.value.token}` }
}

describe("what the daemon tells its operator", () => {
  let world: DaemonWorld
  let alice: Ask
  let log: string
  const lines = (): Record<string, unknown>[] =>
    readFileSync(log, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>)
  beforeAll(async () => {
    world = await openDaemonWorld("serve: { log: calls.log }\n")
    log = join(world.folder, "calls.log")
    alice = await world.as()
  })
  afterAll(() => world[Symbol.asyncDispose]())
  const act = (input: object): object => ({ tool: "fixture.act", input, workspace: world.workspace })

  it("is a line for each request and each call's end, with who, what and how long, in fields that are the daemon's own", async () => {
    const made = await alice("POST", "/v1/calls", act({ verb: "print", args: ["5"] }))
    const call = String(made.body["call"])
    await expect
      .poll(() => lines().filter((line) => line["msg"] === "request" && line["route"] === "/v1/calls").length)
      .toBe(1)
    expect(lines().find((line) => line["call"] === call)).toMatchObject({
      msg: "call",
      code: "ok",
      user: "alice",
      tenant: "local",
      ms: expect.any(Number),
    })
    expect(lines().find((line) => line["route"] === "/v1/calls")).toMatchObject({
      msg: "request",
      method: "POST",
      status: 200,
      user: "alice",
    })
  })

  it("holds nothing that a client sent, wherever it sent it, nor what a tool said", async () => {
    const headers = {
      "x-thing": CANARY,
      "user-agent": CANARY,
      "idempotency-key": CANARY,
      prefer: `wait=1; ${CANARY}`,
      "caisson-user": `${CANARY}!`,
    }
    await alice("POST", "/v1/calls", act({ verb: "print", args: [`"${CANARY}"`] }))
    await alice("POST", "/v1/calls", { tool: CANARY, input: { [CANARY]: CANARY } })
    await alice("POST", "/v1/calls", act({ verb: "print", args: [CANARY] }), { "idempotency-key": CANARY })
    await alice("GET", `/v1/calls/${CANARY}?${CANARY}=1`)
    await alice("GET", `/${CANARY}/${CANARY}`)
    await alice("GET", "/v1/calls", undefined, headers)
    await world.raw("GET", "/v1/calls", undefined, { authorization: `Bearer csn_${CANARY}` })
    await alice("POST", "/v1/calls", `{"tool": "${CANARY}`)
    await expect.poll(() => lines().filter(({ route }) => route === "none").length).toBeGreaterThan(0)
    await expect.poll(() => lines().filter(({ status }) => status === 401).length).toBeGreaterThan(0)
    expect(readFileSync(log, "utf8")).not.toContain(CANARY)
    const operator = await tokenOf(world, ["caller", "operator"])
    expect(await textOf(world, operator)).not.toContain(CANARY)
    const known = ["level", "time", "msg", "method", "route", "status", "user", "tenant", "actor", "call", "code", "ms"]
    const told = new Set(lines().flatMap((line) => Object.keys(line)))
    expect([...told].filter((field) => !known.includes(field))).toEqual([])
  })

  it("counts calls by reason, class and kind, denials by layer and reason, requests by route; promtool finds no fault", async () => {
    const operator = await tokenOf(world, ["caller", "operator"])
    await alice("POST", "/v1/calls", act({ verb: "write", args: ["secret.txt", "x"] }))
    await alice("POST", "/v1/calls", { tool: "no.such.tool", workspace: world.workspace })
    const text = await textOf(world, operator)
    expect(text).toMatch(/caisson_calls_total\{code="ok",class="ok",kind="cli"\} [1-9]/)
    expect(text).toMatch(/caisson_calls_total\{code="undeclared_write",class="violation",kind="cli"\} [1-9]/)
    expect(text).toMatch(/caisson_calls_total\{code="not_found",class="invalid",kind="none"\} [1-9]/)
    expect(text).toMatch(/caisson_call_duration_seconds_count\{class="ok"\} [1-9]/)
    expect(text).toMatch(/caisson_http_requests_total\{method="POST",route="\/v1\/calls",status="200"\} [1-9]/)
    expect(text).toMatch(/^caisson_calls_under_way 0$/m)
    expect(text).toMatch(/^caisson_calls_held 0$/m)
    expect(text).toMatch(/^process_resident_memory_bytes \d+$/m)
    expect(text).not.toContain("alice")
    expect(text).not.toContain(world.folder)
    const checked = spawnSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" })
    if (checked.error === undefined) expect(checked).toMatchObject({ status: 0, stdout: "" })
  })

  it("tells metrics over TCP to operators alone, and to the data folder's owner over the socket", async () => {
    expect((await world.raw("GET", "/metrics")).status).toBe(401)
    expect((await alice("GET", "/metrics")).status).toBe(403)
    const local = await fetchLocal(world)
    expect(local).toContain("caisson_calls_total")
  })

  it("goes on where its log cannot be written, and a file that was moved away is written anew", async () => {
    rmSync(log)
    expect((await alice("GET", "/v1/tools/none")).status).toBe(404)
    expect((await alice("POST", "/v1/calls", act({ verb: "print", args: ["5"] }))).status).toBe(200)
  })

  it("tells metrics to anybody where the operator opened them", async () => {
    await using open = await openDaemonWorld("serve: { metrics: open, log: none }\n")
    expect(await textOf(open, {})).toContain("caisson_ready 1")
    expect((await open.raw("GET", "/v1/tools")).status).toBe(401)
  })
})

const fetchLocal = ({ daemon: { socket: socketPath } }: DaemonWorld): Promise<string> =>
  new Promise((resolve, reject) => {
    get({ socketPath, path: "/metrics" }, (response) => {
      let said = ""
      response.setEncoding("utf8").on("data", (piece: string) => (said += piece))
      response.on("end", () => resolve(said))
    }).on("error", reject)
  })
