import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { readReceipts } from "../../src/host/index.ts"
import { type KindsWorld, openKinds } from "./logins-kinds-world.ts"

let world: KindsWorld
beforeEach(async () => {
  world = await openKinds()
})
afterEach(() => world[Symbol.asyncDispose]())

const grants = (): readonly string[] => world.desk.asked.filter((line) => /^\/(?:token|renew) /.test(line))
const actions = (): readonly string[] => readReceipts(world.data).map(({ action }) => action)

/** A builtin has no login: its manifest is refused with one. */
describe("a login that expired, of a driver of kind", () => {
  it.each([
    ["cli, told by an exit code", "kinds-cli"],
    ["http, told by a status", "kinds-http"],
    ["http, told by a header", "kinds-header"],
    ["sdk, told by an exception", "kinds-sdk"],
    ["mcp, told by its tool's error", "kinds-mcp"],
    ["http with functions of its own, told by an exception", "kinds-own"],
  ])("%s, is refreshed, and the call done", async (_kind, driver) => {
    expect(await world.read(driver)).toMatchObject({ ok: false, error: { code: "auth_required" } })
    expect(await world.login(driver)).toMatchObject({ ok: true, state: "authed" })
    expect(await world.read(driver)).toMatchObject({ ok: true, value: { said: "data 1" } })
    world.desk.expire()
    expect(await world.read(driver)).toMatchObject({ ok: true, value: { said: "data 2" } })
    expect(grants()).toEqual(["/token 200", "/token 200"])
    expect(actions()).toEqual(expect.arrayContaining(["login.completed", "login.refreshed"]))
    // A refusal of the refresh signs out, and says what to do.
    world.desk.revoke()
    const refused = await world.read(driver)
    expect(refused).toMatchObject({ ok: false, error: { code: "auth_required", details: { driver: `${driver}@1` } } })
    expect(actions()).toContain("login.refresh_refused")
    expect(JSON.stringify([refused, readReceipts(world.data)])).not.toMatch(/(?:access|refresh)-\d/)
  })

  it("http, of a page, is refreshed at its address, and the call done", async () => {
    const typed: string[] = []
    const person = { open: ({ url }: { url: string }) => void typed.push(url), answer: async () => world.desk.token() }
    expect(await world.login("kinds-page", person)).toMatchObject({ ok: true, method: "page", account: "alice" })
    expect(typed).toEqual(["http://id.test/tokens"])
    expect(await world.read("kinds-page")).toMatchObject({ ok: true, value: { said: "data 1" } })
    world.desk.expire()
    expect(await world.read("kinds-page")).toMatchObject({ ok: true, value: { said: "data 2" } })
    expect(grants()).toEqual(["/renew 200"])
    world.desk.revoke()
    expect(await world.read("kinds-page")).toMatchObject({ ok: false, error: { code: "auth_required" } })
    expect(actions()).toContain("login.refresh_refused")
  })
})
