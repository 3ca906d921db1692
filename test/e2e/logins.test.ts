import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { processCaller, readReceipts } from "../../src/host/index.ts"
import { openLoginWorld, type LoginWorld, typist } from "./login-world.ts"

let world: LoginWorld
beforeEach(async () => {
  world = await openLoginWorld()
})
afterEach(() => world[Symbol.asyncDispose]())

const actions = (): readonly string[] => readReceipts(world.data).map(({ action }) => action)
const state = async (): Promise<unknown> => {
  const report = await world.host.auth({ caller: processCaller("alice"), workspace: world.workspace })
  return report.ok ? report.logins[0] : report.error
}
const edit = (change: (text: string) => string): void => {
  const file = join(world.manifests, "signer/DRIVER.md")
  writeFileSync(file, change(readFileSync(file, "utf8")))
}

/** Those that were not wiped: what a home holds is encrypted, that it holds something is not. */
const homesThatHold = (data: string): string[] =>
  readdirSync(join(data, "homes")).filter(
    (name) =>
      name.endsWith(".sealed") &&
      readFileSync(join(data, "homes", name), "latin1")
        .split("\n", 1)[0]
        ?.includes('"sealed"'),
  )

describe("a login", () => {
  it("is asked for with the command that does it, and nothing is run", async () => {
    const envelope = await world.call("signer.get", {})
    expect(envelope).toMatchObject({
      ok: false,
      error: { code: "auth_required", details: { driver: "signer@1", login: { cmd: "./sign.pl login" } } },
    })
    expect(world.service.asked).toEqual([])
    expect(await state()).toMatchObject({ driver: "signer@1", state: "unauthed", next: "caisson login signer@1" })
  })

  it("runs at a terminal in the sandbox, is proven, tells whose it is, and calls work from then on", async () => {
    const { person, screen } = typist("WXYZ-1234")
    const pages: unknown[] = []
    const told: unknown[] = []
    const report = await world.host.login("signer", {
      caller: processCaller("alice"),
      workspace: world.workspace,
      person: { ...person, open: (page) => void pages.push(page) },
      onProgress: (progress) => told.push(progress),
    })
    expect(report).toMatchObject({
      ok: true,
      driver: "signer@1",
      state: "authed",
      account: "alice@auth.test",
      method: "command",
    })
    expect(screen()).toContain("Code: ")
    expect(pages).toEqual([{ url: "http://auth.test/device", code: "WXYZ-1234", from: "program" }])
    expect(told).toContainEqual({ at: "proof", by: "cmd" })
    expect(await world.call("signer.get", {})).toMatchObject({ ok: true, value: "the data" })
    expect(await state()).toMatchObject({ state: "authed", account: "alice@auth.test" })
    expect(actions()).toEqual(expect.arrayContaining(["login.started", "login.completed"]))
  })

  it("whose command says yes and whose proof says no signs nobody in", async () => {
    await world[Symbol.asyncDispose]()
    world = await openLoginWorld((manifests) => {
      const file = join(manifests, "signer/DRIVER.md")
      writeFileSync(file, readFileSync(file, "utf8").replace("./sign.pl login", "./sign.pl fake"))
    })
    expect(await world.login()).toMatchObject({
      ok: false,
      error: { code: "auth_failed", message: expect.stringContaining("not proven") as unknown },
    })
    expect(await world.call("signer.get", {})).toMatchObject({ ok: false, error: { code: "auth_required" } })
    expect(actions()).toContain("login.failed")
  })

  it("that is refused leaves nobody signed in and nothing in the home", async () => {
    expect(await world.login("wrong")).toMatchObject({ ok: false, error: { code: "auth_failed" } })
    expect(await state()).toMatchObject({ state: "unauthed", why: expect.stringContaining("not taken") as unknown })
    expect(await world.login()).toMatchObject({ ok: true })
  })

  it("without anybody there is not begun", async () => {
    const caller = processCaller("alice")
    expect(await world.host.login("signer", { caller, workspace: world.workspace })).toMatchObject({
      ok: false,
      error: { code: "auth_required", details: { why: "needs-person" } },
    })
    expect(actions()).not.toContain("login.started")
  })

  it("is cancelled, and ends when its time is over; both leave nobody signed in", async () => {
    const caller = processCaller("alice")
    const stop = new AbortController()
    const { person } = typist("never")
    const quiet = { ...person, terminal: person.terminal && { ...person.terminal, show: () => stop.abort() } }
    const cancelled = await world.host.login("signer", {
      caller,
      workspace: world.workspace,
      person: quiet as typeof person,
      signal: stop.signal,
    })
    expect(cancelled).toMatchObject({ ok: false, error: { code: "auth_failed", details: { why: "cancelled" } } })
    const mute = { ...person, terminal: person.terminal && { ...person.terminal, show: () => undefined } }
    const late = await world.host.login("signer", {
      caller,
      workspace: world.workspace,
      person: mute as typeof person,
      timeoutMs: 3_000,
    })
    expect(late).toMatchObject({ ok: false, error: { code: "auth_failed", details: { why: "timed-out" } } })
    expect(await state()).toMatchObject({ state: "unauthed" })
    expect(actions()).toEqual(expect.arrayContaining(["login.cancelled", "login.timed_out"]))
  })

  it("is ended by a logout, which wipes what it left", async () => {
    await world.login()
    expect(await world.call("signer.get", {})).toMatchObject({ ok: true })
    const caller = processCaller("alice")
    expect(await world.host.logout("signer", { caller, workspace: world.workspace })).toMatchObject({
      ok: true,
      was: "authed",
    })
    expect(await world.call("signer.get", {})).toMatchObject({ ok: false, error: { code: "auth_required" } })
    expect(homesThatHold(world.data)).toEqual([])
    expect(actions()).toContain("login.ended")
  })
})

describe("tokens that expired", () => {
  it("are refreshed, and the call is done", async () => {
    await world.login()
    world.service.expire()
    expect(await world.call("signer.get", {})).toMatchObject({ ok: true, value: "the data" })
    expect(world.service.asked.filter((line) => line.startsWith("/refresh"))).toEqual(["/refresh 200"])
    expect(actions()).toContain("login.refreshed")
  })

  it("of a call that may have changed something elsewhere are refreshed, and the call is not repeated", async () => {
    await world.login()
    world.service.expire()
    expect(await world.call("signer.post", {})).toMatchObject({
      ok: false,
      error: { code: "upstream_error", message: expect.stringContaining("was refreshed") as unknown },
    })
    expect(await world.call("signer.post", {})).toMatchObject({ ok: true })
  })

  it("and are refused at the refresh sign out, with what to do", async () => {
    await world.login()
    world.service.revoke()
    expect(await world.call("signer.get", {})).toMatchObject({
      ok: false,
      error: { code: "auth_required", hint: expect.stringContaining("caisson login signer@1") as unknown },
    })
    expect(await state()).toMatchObject({ state: "unauthed" })
    expect(actions()).toContain("login.refresh_refused")
  })

  it("and are not taken once they were refreshed either sign out, so that there is a way on", async () => {
    await world.login()
    world.service.refuse(false)
    expect(await world.call("signer.get", {})).toMatchObject({
      ok: false,
      error: { code: "auth_required", hint: expect.stringContaining("caisson login signer@1") as unknown },
    })
    expect(world.service.asked.filter((line) => line.startsWith("/refresh"))).toEqual(["/refresh 200"])
    expect(await state()).toMatchObject({ state: "unauthed", next: "caisson login signer@1" })
  })

  it("and are good, but for the call, sign nobody out: what it takes is told", async () => {
    await world.login()
    world.service.refuse(true)
    expect(await world.call("signer.get", {})).toMatchObject({
      ok: false,
      error: {
        code: "upstream_error",
        message: expect.stringContaining("as its own proof says") as unknown,
        hint: expect.stringContaining("caisson logout signer@1") as unknown,
      },
    })
    expect(world.service.asked.filter((line) => line.startsWith("/refresh"))).toEqual(["/refresh 200"])
    expect(await state()).toMatchObject({ state: "authed" })
  })

  it("that cannot be refreshed because of the network sign nobody out", async () => {
    await world.login()
    world.service.expire()
    world.service.before = async (path) => {
      // The call is answered, and whoever comes after it finds nobody.
      if (path === "/data") world.service.close()
    }
    expect(await world.call("signer.get", {})).toMatchObject({
      ok: false,
      error: {
        code: "upstream_error",
        retryable: true,
        message: expect.stringContaining("nobody was signed out") as unknown,
      },
    })
    expect(await state()).toMatchObject({ state: "authed" })
    expect(actions()).toContain("login.refresh_failed")
  })
})

describe("of one owner, a login is nothing to", () => {
  it("another user", async () => {
    await world.login()
    const bob = processCaller("bob")
    expect(await world.call("signer.get", {}, { caller: bob })).toMatchObject({
      ok: false,
      error: { code: "auth_required" },
    })
    expect(await world.call("signer.get", {})).toMatchObject({ ok: true })
  })

  it("a manifest that was changed since, until it is proven again; what was left is gone by then", async () => {
    await world.login()
    await world.host.close()
    edit((text) => text.replace("A fixture whose", "Another fixture whose"))
    const { createHost } = await import("../../src/host/index.ts")
    await using host = await createHost({
      data: world.data,
      manifests: [world.manifests],
      config: join(world.folder, "caisson.yaml"),
    })
    const caller = processCaller("alice")
    const asked = world.service.asked.length
    const call = () => host.call({ tool: "signer.get", input: {}, workspace: world.workspace }, { caller })
    expect(await call()).toMatchObject({ ok: false, error: { code: "auth_required" } })
    expect(world.service.asked).toHaveLength(asked)
    const { person } = typist("wrong")
    expect(await host.login("signer", { caller, workspace: world.workspace, person })).toMatchObject({ ok: false })
    expect(homesThatHold(world.data)).toEqual([])
  })
})
