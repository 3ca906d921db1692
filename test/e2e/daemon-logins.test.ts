/** A login driven over the API, as a platform does for a person: by its owner, and tried by everybody else. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { auditLogFile } from "../../src/data-folder/paths.ts"
import { type Ask, type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"
import { type AuthService, configFor, openAuthService } from "./login-world.ts"

const manifests = [join(import.meta.dirname, "../../fixtures/logins")]

describe("logins over the API", () => {
  let service: AuthService
  let world: DaemonWorld
  let alice: Ask
  let bob: Ask
  beforeEach(async () => {
    service = await openAuthService()
    world = await openDaemonWorld(configFor(service), { manifests })
    alice = await world.as()
    bob = await world.as({ user: "bob" })
  })
  afterEach(async () => {
    await world[Symbol.asyncDispose]()
    await service[Symbol.asyncDispose]()
  })
  const begin = async (who = alice): Promise<string> => {
    const begun = await who("POST", "/v1/logins", { driver: "signer", workspace: world.workspace })
    expect([begun.status, begun.headers.get("location"), begun.body["state"]]).toEqual([
      202,
      `/v1/logins/${String(begun.body["id"])}`,
      "running",
    ])
    return begun.headers.get("location") ?? ""
  }
  const asked = (at: string): Promise<unknown> =>
    expect.poll(async () => (await alice("GET", at)).body["terminal"], { timeout: 60_000 }).toContain("Code: ")
  const ended = (at: string) =>
    expect.poll(async () => (await alice("GET", at)).body, { timeout: 60_000 }).toMatchObject({ state: "ended" })
  const state = async (who = alice): Promise<unknown> => {
    const listed = await who("GET", `/v1/logins?workspace=${encodeURIComponent(world.workspace)}`)
    expect(listed.status).toBe(200)
    return (listed.body["logins"] as { driver: string; state: string }[]).find(({ driver }) => driver === "signer@1")
      ?.state
  }
  const get = (who = alice) => who("POST", "/v1/calls", { tool: "signer.get", input: {}, workspace: world.workspace })

  it("tells what the program asks, takes what the person types, and calls work from then on; nothing typed is on record", async () => {
    expect((await get()).body).toMatchObject({ error: { code: "auth_required" } })
    expect(await state()).toBe("unauthed")
    const at = await begin()
    await asked(at)
    expect((await alice("POST", at, { terminal: "WXYZ-1234\r" })).status).toBe(200)
    await ended(at)
    expect((await alice("GET", at)).body).toMatchObject({
      signed_in: true,
      login: { account: "alice@auth.test", state: "authed" },
    })
    expect(await state()).toBe("authed")
    expect((await get()).body).toMatchObject({ ok: true })
    expect(await state(bob)).toBe("unauthed")
    expect((await get(bob)).body).toMatchObject({ error: { code: "auth_required" } })
    const told = JSON.stringify((await alice("GET", at)).body)
    for (const secret of [...service.given, "WXYZ-1234"]) {
      expect(told).not.toContain(secret)
      expect(readFileSync(auditLogFile(world.data), "utf8")).not.toContain(secret)
    }
    const out = await alice("DELETE", `/v1/logins?driver=signer&workspace=${encodeURIComponent(world.workspace)}`)
    expect(out).toMatchObject({ status: 200, body: { driver: "signer@1", was: "authed" } })
    expect((await get()).body).toMatchObject({ error: { code: "auth_required" } })
  })

  it("is there for who began it alone: by id, nobody else looks, answers or ends it", async () => {
    const at = await begin()
    const operator = await world.as({ user: "olga", agent: false, roles: ["caller", "operator", "act-for"] })
    const stranger = await world.as({ tenant: "other" })
    for (const who of [bob, operator, stranger]) {
      expect((await who("GET", at)).status).toBe(404)
      expect((await who("POST", at, { terminal: "WXYZ-1234\r" })).status).toBe(404)
      expect((await who("DELETE", at)).status).toBe(404)
    }
    expect((await alice("GET", at)).body).toMatchObject({ state: "running" })
    for (const [method, path, body] of [
      ["POST", "/v1/logins", { driver: "signer", workspace: world.workspace }],
      ["GET", `/v1/logins?workspace=${encodeURIComponent(world.workspace)}`, undefined],
      ["DELETE", `/v1/logins?driver=signer&workspace=${encodeURIComponent(world.workspace)}`, undefined],
    ] as const)
      expect((await stranger(method, path, body)).status).toBe(403)
    expect((await alice("DELETE", at)).status).toBe(202)
    await ended(at)
  })

  it("ends when it is cancelled, with nobody signed in, and takes no answer after that", async () => {
    const at = await begin()
    await asked(at)
    expect((await alice("DELETE", at)).status).toBe(202)
    await ended(at)
    expect((await alice("GET", at)).body).toMatchObject({ signed_in: false, error: { code: expect.any(String) } })
    expect((await alice("POST", at, { terminal: "WXYZ-1234\r" })).status).toBe(409)
    expect(await state()).toBe("unauthed")
    expect(service.given).toEqual([])
  })

  it("holds up nobody else's, and the daemon ends without waiting for a person", async () => {
    const begun = (who: Ask) => who("POST", "/v1/logins", { driver: "signer", workspace: world.workspace })
    const first = await begin()
    await asked(first)
    // Others of the same login wait for nothing: they end as a conflict, or are the one under way.
    const statuses: number[] = []
    for (let n = 0; n < 12; n += 1) statuses.push((await begun(alice)).status)
    expect(statuses.every((status) => [202, 503].includes(status))).toBe(true)
    expect((await begun(bob)).status).toBe(202)
    await world.daemon.close()
  })

  it("refuses what is no driver, no folder of the caller's, and no answer", async () => {
    expect((await alice("POST", "/v1/logins", { driver: "signer", workspace: "here" })).status).toBe(400)
    expect((await alice("POST", "/v1/logins", { driver: "signer" })).status).toBe(400)
    for (const asked of [
      { driver: "no-such", workspace: world.workspace },
      { driver: "signer", workspace: "/etc" },
    ]) {
      expect(await alice("POST", "/v1/logins", asked)).toMatchObject({ status: 404, body: { code: "not_found" } })
    }
    const at = await begin()
    expect((await alice("POST", at, { answer: "x" })).status).toBe(400)
    const many = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`q${n}`, "x"]))
    expect((await alice("POST", at, { answers: many })).status).toBe(200)
    expect(
      (
        await alice("POST", at, {
          answers: Object.fromEntries([
            ["r1", "x"],
            ["r2", "x"],
            ["r3", "x"],
            ["r4", "x"],
            ["r5", "x"],
          ]),
        })
      ).status,
    ).toBe(400)
    await alice("DELETE", at)
    await ended(at)
  })
})
