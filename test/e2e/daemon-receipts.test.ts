/** What is on record of real calls, asked for over the API and with the command, by those whose it is and by others. */
import { chmodSync, cpSync, readFileSync } from "node:fs"
import { createServer, request, type Server } from "node:http"
import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { auditLogFile } from "../../src/data-folder/paths.ts"
import { caisson } from "../cli/run-caisson.ts"
import { type Answer, type Ask, type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"

interface Entry {
  readonly seq: number
  readonly action: string
  readonly hash: string
  readonly metadata: {
    readonly call?: string
    readonly user_id?: string
    readonly driver?: { readonly version: string }
  }
}
const entriesOf = ({ body }: Answer): readonly Entry[] => body["receipts"] as Entry[]
const callsIn = (entries: readonly Entry[]): readonly (string | undefined)[] =>
  entries.map(({ metadata }) => metadata.call)

describe("receipts over the API", () => {
  let service: Server
  let world: DaemonWorld
  let alice: Ask
  let bob: Ask
  let person: Ask
  let operator: Ask
  const act = (...args: readonly string[]): object => ({
    tool: "fixture.act",
    input: { verb: args[0], args: args.slice(1) },
    workspace: world.workspace,
  })
  const dial = (host: string): object => ({
    tool: "fixture.dial",
    input: { how: "proxy", host, port: 80 },
    workspace: world.workspace,
  })
  const made: Record<string, string> = {}
  const make = async (name: string, who: Ask, body: object, headers = {}): Promise<void> => {
    made[name] = String((await who("POST", "/v1/calls", body, headers)).body["call"])
  }
  beforeAll(async () => {
    service = createServer((_request, response) => response.end("here")).listen(0, "127.0.0.1")
    await once(service, "listening")
    const { port } = service.address() as AddressInfo
    world = await openDaemonWorld(`egress: { services: { service.test: "127.0.0.1:${port}" } }\n`)
    alice = await world.as()
    bob = await world.as({ user: "bob" })
    person = await world.as({ agent: false, roles: ["caller", "approver"] })
    operator = await world.as({ user: "olga", agent: false, roles: ["caller", "operator"] })
    await make("write", person, act("write", "notes/deep/a.txt", "a"), { "caisson-approved": "yes" })
    await make("sibling", person, act("write", "notes/deeper.txt", "b"), { "caisson-approved": "yes" })
    await make("violates", person, act("write", "elsewhere.txt", "x"), { "caisson-approved": "yes" })
    await make("bobs", bob, act("print", "3"))
    await make("dials", alice, dial("service.test"))
    await make("stopped", alice, dial("evil.test"))
    await make("held", alice, act("write", "notes/deep/held.txt"))
    await person("POST", `/v1/approvals/${made["held"]}`, { decision: "approve" })
    await make("unknown", bob, { tool: "no.such", input: {} })
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
    service.close()
  })
  const ask = async (who: Ask, query: Readonly<Record<string, string>>): Promise<readonly Entry[]> => {
    const answer = await who("GET", `/v1/receipts?${new URLSearchParams(query).toString()}`)
    expect([answer.status, JSON.stringify(answer.body).slice(0, 300)]).toEqual([200, expect.any(String)])
    return entriesOf(answer)
  }

  it("tells everybody of their own calls, an operator of all of the tenant's, and nobody of anything else", async () => {
    const own = await ask(bob, {})
    expect(callsIn(own)).toEqual([made["unknown"], made["bobs"]])
    expect(new Set((await ask(alice, {})).map(({ metadata }) => metadata.user_id))).toEqual(new Set(["alice"]))
    const all = await ask(operator, { limit: "200" })
    expect(new Set(all.map(({ metadata }) => metadata.user_id))).toEqual(new Set(["alice", "bob", undefined]))
    // By id, by user and by tool alike.
    expect(await ask(bob, { call: made["write"] ?? "" })).toEqual([])
    expect(await ask(bob, { user: "alice" })).toEqual([])
    expect(await ask(bob, { host: "service.test" })).toEqual([])
    expect((await bob("GET", `/v1/calls/${made["write"]}/receipts`)).status).toBe(404)
    expect((await alice("GET", "/v1/receipts/export")).status).toBe(403)
    const stranger = await world.as({ user: "alice", tenant: "other", agent: false, roles: ["caller", "approver"] })
    expect(await ask(stranger, {})).toEqual([])
    expect((await stranger("GET", `/v1/calls/${made["write"]}/receipts`)).status).toBe(404)
  })

  it("keeps two tenants' users of one name apart, in answers and exports", async () => {
    const other = await world.as({ user: "alice", tenant: "other", workspaces: [world.workspace] })
    const refused = await other("POST", "/v1/calls", { tool: "no.such", input: {} })
    const call = String(refused.body["call"])
    expect(callsIn(await ask(other, {}))).toEqual([call])
    expect(callsIn(await ask(alice, {}))).not.toContain(call)
    expect(callsIn(await ask(operator, { limit: "200" }))).not.toContain(call)
    const { token } = await tokenOf({ user: "olga", agent: false, roles: ["caller", "operator"] })
    expect((await exportedBy(token)).filter((line) => line.includes(call))).toEqual([])
  })

  it("tells which calls wrote below a path: committed alone, those that a person committed later, and no sibling's", async () => {
    const below = await ask(alice, { wrote: join(world.workspace, "notes/deep/") })
    expect(below.map(({ action, metadata }) => [action, metadata.call])).toEqual([
      ["approval.decided", made["held"]],
      ["tool.invoked", made["write"]],
    ])
    expect(callsIn(await ask(alice, { wrote: join(world.workspace, "notes/deep/held.txt") }))).toEqual([made["held"]])
    expect(callsIn(await ask(alice, { wrote: world.workspace }))).toEqual([
      made["held"],
      made["sibling"],
      made["write"],
    ])
    expect(await ask(alice, { wrote: join(world.workspace, "elsewhere.txt") })).toEqual([])
    expect((await alice("GET", "/v1/receipts?wrote=notes")).body).toMatchObject({ code: "input_invalid" })
  })

  it("tells which driver versions contacted a host, and not which were stopped on the way to one", async () => {
    const reached = await ask(operator, { host: "service.test" })
    expect(reached.map(({ metadata }) => [metadata.call, metadata.driver?.version])).toEqual([[made["dials"], "1.0.0"]])
    expect(callsIn(await ask(operator, { host: "service.test:80" }))).toEqual([made["dials"]])
    expect(await ask(operator, { host: "service.test:443" })).toEqual([])
    expect(await ask(operator, { host: "evil.test" })).toEqual([])
  })

  it("tells what a user was denied: what was stopped, and calls that broke their contract", async () => {
    expect(callsIn(await ask(operator, { denied: "true", user: "alice" }))).toEqual([made["stopped"], made["violates"]])
    expect(await ask(operator, { denied: "true", user: "bob" })).toEqual([])
    expect(callsIn(await ask(operator, { verdict: "undeclared_write" }))).toEqual([made["violates"]])
  })

  it("tells all that is on record of one call, its receipt and what was decided about it", async () => {
    const told = await alice("GET", `/v1/calls/${made["held"]}/receipts`)
    expect(entriesOf(told).map(({ action }) => action)).toEqual(["approval.decided", "tool.invoked"])
  })

  it("gives pages that together are the whole, each entry once, also while more is written", async () => {
    const whole = await ask(operator, { tool: "fixture.act", limit: "200" })
    expect(whole.length).toBeGreaterThan(3)
    const seen: number[] = []
    let cursor: string | undefined
    do {
      const page = await operator(
        "GET",
        `/v1/receipts?tool=fixture.act&limit=2${cursor === undefined ? "" : `&cursor=${cursor}`}`,
      )
      seen.push(...entriesOf(page).map(({ seq }) => seq))
      cursor = page.body["next"] as string | undefined
      if (seen.length === 2) await make("later", alice, act("print", "1"))
    } while (cursor !== undefined)
    expect(seen).toEqual(whole.map(({ seq }) => seq))
    const since = new Date().toISOString()
    await make("last", alice, act("print", "1"))
    expect(callsIn(await ask(alice, { since }))).toEqual([made["last"]])
    expect(callsIn(await ask(alice, { until: since }))).not.toContain(made["last"])
  })

  it("refuses what is no question", async () => {
    for (const query of ["limit=0", "limit=999", "cursor=x", "since=yesterday00", "denied=maybe", "other=1", "wrote="])
      expect([query, (await alice("GET", `/v1/receipts?${query}`)).status]).toEqual([query, 400])
  })

  const tokenOf = async (options: object): Promise<{ token: string }> => {
    const issued = await world.daemon.host.tokens.issue({ workspaces: [world.workspace], ...options })
    if (!issued.ok) throw new Error(issued.error.message)
    return issued.value
  }
  const exportedBy = async (token: string): Promise<readonly string[]> => {
    const response = await fetch(`${world.address}/v1/receipts/export`, {
      headers: { authorization: `Bearer ${token}` },
    })
    expect([response.status, response.headers.get("content-type")]).toEqual([
      200,
      "application/x-ndjson; charset=utf-8",
    ])
    return (await response.text()).split("\n").slice(0, -1)
  }

  const overSocket = (path: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const asked = request({ socketPath: world.daemon.socket, path }, (response) => {
        response.setEncoding("utf8")
        let told = ""
        response.on("data", (piece: string) => (told += piece))
        response.on("end", () => resolve(told))
      })
      asked.on("error", reject)
      asked.end()
    })

  it("exports the log whole to the folder's owner, by the command as well, and it verifies as a chain", async () => {
    const exported = await caisson(["receipts", "export"], { env: { CAISSON_DATA: world.data } })
    expect(exported.code).toBe(0)
    expect(exported.stdout).toBe(readFileSync(auditLogFile(world.data), "utf8"))
    expect(await overSocket("/v1/receipts/export")).toBe(exported.stdout)
    const { token } = await tokenOf({ user: "olga", agent: false, roles: ["caller", "operator"] })
    const own = await exportedBy(token)
    expect(own.length).toBeGreaterThan(5)
    const whole = readFileSync(auditLogFile(world.data), "utf8")
    expect(own.every((line) => whole.includes(`${line}\n`))).toBe(true)
  })

  it("answers the same questions by the command, on a copy that nobody may write", async () => {
    const copy = join(world.folder, "copy")
    cpSync(join(world.data, "audit"), join(copy, "audit"), { recursive: true })
    chmodSync(join(copy, "audit"), 0o555)
    chmodSync(copy, 0o555)
    const told = async (...flags: readonly string[]): Promise<readonly (string | undefined)[]> => {
      const { stdout, code, stderr } = await caisson(["receipts", ...flags], { env: { CAISSON_DATA: copy } })
      expect([code, stderr]).toEqual([0, ""])
      return callsIn(JSON.parse(stdout) as Entry[])
    }
    expect(await told("--wrote", join(world.workspace, "notes/deep"))).toEqual([made["write"], made["held"]])
    expect(await told("--host", "service.test")).toEqual([made["dials"]])
    expect(await told("--denied", "--user", "alice")).toEqual([made["violates"], made["stopped"]])
    expect(await told("--user", "bob", "--limit", "1")).toEqual([made["unknown"]])
    const lines = await caisson(["receipts", "export", "--host", "service.test"], { env: { CAISSON_DATA: copy } })
    expect(lines.stdout.split("\n").map((line) => line && (JSON.parse(line) as Entry).metadata.call)).toEqual([
      made["dials"],
      "",
    ])
    expect((await caisson(["receipts", "--since", "soon"], { env: { CAISSON_DATA: copy } })).code).toBe(2)
  })
})
