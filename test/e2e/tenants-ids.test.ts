/**
 * Ids and places of the one tenant's, guessed right by the other's: logins and installs under way, questions that wait, entries
 * of the log. Each is answered as one that there is not, to the letter, and nothing comes of it.
 */
import { cpSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { readReceipts } from "../../src/host/index.ts"
import { type Ask, type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"
import { fixtureTools, openFolder } from "./host-world.ts"
import { type AuthService, configFor, openAuthService } from "./login-world.ts"
import { removeFolder } from "../support/remove-folder.ts"

const fixtures = join(import.meta.dirname, "../../fixtures")
type Attempt = readonly [method: string, path: string, body?: unknown]

describe("who guesses what is another tenant's", () => {
  let service: AuthService
  let world: DaemonWorld
  const folder = openFolder()
  /** of this host's own tenant: it alone has logins and installs */
  let own: Ask
  let ownOperator: Ask
  /** of a tenant of its own */
  let acme: Ask
  let acmePerson: Ask
  /** of another, under the names of those */
  let strangers: readonly Ask[]
  beforeAll(async () => {
    service = await openAuthService()
    cpSync(join(fixtures, "formats/aml"), folder, { recursive: true })
    world = await openDaemonWorld(configFor(service), { manifests: [fixtureTools, join(fixtures, "logins"), folder] })
    const roles = ["caller", "approver", "act-for"]
    own = await world.as()
    ownOperator = await world.as({ user: "olga", agent: false, roles: [...roles, "operator"] })
    acme = await world.as({ tenant: "acme" })
    acmePerson = await world.as({ tenant: "acme", user: "bea", agent: false, roles })
    strangers = [
      await world.as({ tenant: "globex" }),
      await world.as({ tenant: "globex", user: "bea", agent: false, roles: [...roles, "pin"] }),
    ]
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
    await service[Symbol.asyncDispose]()
    removeFolder(folder)
  })

  /** By who it is not for: 404, and word for word what an id that nobody has is answered. */
  const areLikeNone = async (asks: readonly Ask[], id: string, none: string, attempts: readonly Attempt[]) => {
    expect(none).not.toBe(id)
    for (const ask of asks)
      for (const [method, path, body] of attempts) {
        const guessed = await ask(method, path.replace(":id", id), body)
        expect([method, path, guessed.status]).toEqual([method, path, 404])
        const absent = await ask(method, path.replace(":id", none), body)
        expect(absent.status).toBe(404)
        expect(JSON.stringify(guessed.body).replaceAll(id, none)).toBe(JSON.stringify(absent.body))
      }
  }
  const reversed = (id: string): string => id.split("").toReversed().join("")

  it("the id of a login under way: is not told of it, and can neither answer nor end it", async () => {
    const begun = await own("POST", "/v1/logins", { driver: "signer", workspace: world.workspace })
    expect(begun).toMatchObject({ status: 202, body: { state: "running" } })
    const id = String(begun.body["id"])
    const at = `/v1/logins/${id}`
    await expect.poll(async () => (await own("GET", at)).body["terminal"], { timeout: 60_000 }).toContain("Code: ")
    await areLikeNone([...strangers, acme, acmePerson], id, reversed(id), [
      ["GET", "/v1/logins/:id"],
      ["POST", "/v1/logins/:id", { terminal: "WXYZ-1234\r" }],
      ["POST", "/v1/logins/:id", { answers: { code: "WXYZ-1234" } }],
      ["DELETE", "/v1/logins/:id"],
    ])
    expect((await own("GET", at)).body).toMatchObject({ state: "running" })
    expect(service.given).toEqual([])
    expect((await own("DELETE", at)).status).toBe(202)
    await expect
      .poll(async () => (await own("GET", at)).body, { timeout: 60_000 })
      .toMatchObject({ state: "ended", signed_in: false })
    // Nor of how it ended.
    await areLikeNone(strangers, id, reversed(id), [["GET", "/v1/logins/:id"]])
  })

  it("the id of an install: is not told of it, cannot end it, and begins none", async () => {
    const begun = await ownOperator("POST", "/v1/installs", { driver: "no-such" })
    expect(begun.status).toBe(202)
    const id = String(begun.body["id"])
    await areLikeNone([...strangers, acme, acmePerson, own], id, reversed(id), [
      ["GET", "/v1/installs/:id"],
      ["DELETE", "/v1/installs/:id"],
    ])
    await expect
      .poll(async () => (await ownOperator("GET", `/v1/installs/${id}`)).body)
      .toMatchObject({ state: "ended", error: { code: "not_found" } })
    await areLikeNone(strangers, id, reversed(id), [
      ["GET", "/v1/installs/:id"],
      ["DELETE", "/v1/installs/:id"],
    ])
    for (const ask of strangers) expect((await ask("POST", "/v1/installs", { driver: "no-such" })).status).toBe(403)
  })

  it("the id of a question that waits: is not asked it, and an answer of its is none", async () => {
    const body = { tool: "refund-approve", input: { order: "7" }, workspace: world.workspace }
    const call = await acme("POST", "/v1/calls", body, { prefer: "respond-async" })
    expect(call.status).toBe(202)
    const asked = async (who: Ask) => (await who("GET", "/v1/questions")).body["questions"] as { id: string }[]
    await expect.poll(() => asked(acmePerson), { timeout: 60_000 }).toHaveLength(1)
    const id = (await asked(acmePerson))[0]?.id ?? ""
    const answer = { answer: { approved: true } }
    const others = [...strangers, own, ownOperator]
    for (const ask of others) expect(await asked(ask)).toEqual([])
    await areLikeNone(others, id, reversed(id), [["POST", "/v1/questions/:id", answer]])
    // A form that does not fit is not told of either.
    await areLikeNone(others, id, reversed(id), [["POST", "/v1/questions/:id", { answer: "no form" }]])
    expect(await asked(acmePerson)).toMatchObject([{ id }])
    expect((await acmePerson("POST", `/v1/questions/${id}`, { answer: { approved: false } })).status).toBe(204)
    await expect
      .poll(async () => (await acme("GET", `/v1/calls/${String(call.body["call"])}`)).body, { timeout: 60_000 })
      .toMatchObject({ state: "settled", envelope: { ok: true, value: { approved: false } } })
  })

  it("places in the log, calls and what was written there: is told of its own entries alone, from any place on, by any filter", async () => {
    const act = (ask: Ask, file: string) =>
      ask(
        "POST",
        "/v1/calls",
        { tool: "fixture.act", input: { verb: "write", args: [file, "x"] }, workspace: world.workspace },
        { "caisson-approved": "yes" },
      )
    const theirs = await act(acmePerson, "notes/theirs.txt")
    expect(theirs).toMatchObject({ status: 200, body: { ok: true } })
    const call = String(theirs.body["call"])
    const [stranger, strangerPerson] = strangers as [Ask, Ask]
    const mine = String((await act(strangerPerson, "notes/mine.txt")).body["call"])
    const entries = [...readReceipts(world.data)]
    const last = entries.at(-1)?.seq ?? 0
    expect(last).toBeGreaterThan(2)
    type Entry = { readonly seq: number; readonly metadata: { readonly call?: string; readonly tenant?: string } }
    const told = async (ask: Ask, query: string): Promise<readonly Entry[]> => {
      const { status, body } = await ask("GET", `/v1/receipts?${query}`)
      expect([query, status]).toEqual([query, 200])
      return body["receipts"] as Entry[]
    }
    const wrote = encodeURIComponent(join(world.workspace, "notes"))
    const filters = ["", `wrote=${wrote}&`, "user=bea&", "tool=fixture.act&", "verdict=ok&", "since=2000-01-01&"]
    // What it has is found, so that to be told of nothing else says something.
    expect((await told(strangerPerson, "limit=200")).map(({ metadata }) => metadata.call)).toContain(mine)
    for (const ask of [stranger, strangerPerson, own, ownOperator])
      for (const filter of filters)
        for (const cursor of ["", ...Array.from({ length: last + 2 }, (_, n) => `&cursor=${n}`)])
          for (const { metadata } of await told(ask, `${filter}limit=200${cursor}`))
            expect([filter, cursor, metadata.call === call, metadata.tenant === "acme"]).toEqual([
              filter,
              cursor,
              false,
              false,
            ])
    const none = "01J00000000000000000000000"
    for (const ask of [...strangers, own, ownOperator]) {
      expect(await told(ask, `call=${call}`)).toEqual(await told(ask, `call=${none}`))
      expect(await told(ask, `call=${call}&wrote=${wrote}`)).toEqual([])
    }
    await areLikeNone([...strangers, own, ownOperator], call, none, [
      ["GET", "/v1/calls/:id/receipts"],
      ["GET", "/v1/calls/:id"],
      ["GET", "/v1/calls/:id/diff"],
    ])
    expect((await told(acmePerson, `call=${call}`)).map(({ metadata }) => metadata.call)).toContain(call)
    expect(last).toBe([...readReceipts(world.data)].at(-1)?.seq)
  })
})
