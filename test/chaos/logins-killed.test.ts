/**
 * Hosts that are killed at random moments of a refresh, a login and a logout. After each: the login is in a state of the
 * table, the next call of another host is served or says what to do, and what it says to do works.
 *
 * `CAISSON_CHAOS_KILLS` of each kind (50 is what a release is held to); a few without it.
 */
import { setTimeout as pause } from "node:timers/promises"
import { expect, it } from "vitest"
import { processCaller } from "../../src/host/index.ts"
import { everyState } from "../../src/host/login/states.ts"
import { openLoginWorld } from "../e2e/login-world.ts"
import type { World } from "../e2e/host-world.ts"
import { openDesk, placeOf, startUser } from "./login-users.ts"

const kills = Number(process.env["CAISSON_CHAOS_KILLS"]) || 3
const timeout = 60_000 + kills * 30_000
const caller = processCaller("alice")

const stateOf = async (world: World, driver: string): Promise<unknown> => {
  const report = await world.host.auth({ caller, workspace: world.workspace })
  return report.ok ? report.logins.find((login) => login.driver.startsWith(driver))?.state : report.error
}

interface Tally {
  served: number
  told: number
  readonly states: Record<string, number>
}
const newTally = (): Tally => ({ served: 0, told: 0, states: {} })

/** Whether the call was served; where not, it said what to do, and that is what was done. */
const nextCall = async (
  world: World,
  tool: string,
  login: () => Promise<{ readonly ok: boolean }>,
  tally: Tally,
): Promise<void> => {
  const state = await stateOf(world, tool.split(".")[0] ?? "")
  expect(everyState).toContain(state)
  tally.states[String(state)] = (tally.states[String(state)] ?? 0) + 1
  const next = await world.call(tool, {})
  if (next.ok) {
    tally.served += 1
    return
  }
  expect(next.error).toMatchObject({
    code: "auth_required",
    hint: expect.stringContaining(`caisson login ${tool.split(".")[0]}`) as string,
  })
  tally.told += 1
  const report = await login()
  expect(report, JSON.stringify(report)).toMatchObject({ ok: true })
  expect(await world.call(tool, {})).toMatchObject({ ok: true })
}

/** A moment: some time after it began, or some time after the service was asked, or had given new tokens out. */
const moments = (at: number): { readonly on: "begun" | "asked" | "given"; readonly afterMs: number } => {
  const on = (["given", "begun", "asked"] as const)[at % 3] ?? "begun"
  return { on, afterMs: Math.random() * (on === "begun" ? 400 : 25) }
}

it("a host that is killed while it refreshes at the provider leaves a login that works, or is done anew", {
  timeout,
}, async () => {
  await using desk = await openDesk()
  const { server, world, place, login } = desk
  const tally = newTally()
  for (let at = 0; at < kills; at += 1) {
    // Due again at once: each call has to refresh.
    server.accessTokenSeconds = 20
    await using user = await startUser(place, "desk.who", "call", 5)
    const { on, afterMs } = moments(at)
    const moment = Promise.withResolvers<void>()
    server.onToken = (which) => {
      if (which === on) moment.resolve()
    }
    const acted = user.act()
    await Promise.race([on === "begun" ? undefined : moment.promise, acted])
    if (afterMs >= 1) await pause(afterMs)
    user.kill()
    await acted
    server.onToken = () => undefined
    server.grants.length = 0
    await nextCall(world, "desk.who", login, tally)
  }
  if (kills > 10) console.log("oauth refresh", JSON.stringify(tally))
  expect(tally.served + tally.told).toBe(kills)
})

it("a host that is killed while its driver's program refreshes leaves a login that works, or is done anew", {
  timeout,
}, async () => {
  await using world = await openLoginWorld()
  const { service } = world
  await world.login()
  const tally = newTally()
  for (let at = 0; at < kills; at += 1) {
    service.expire()
    await using user = await startUser(placeOf(world), "signer.get", "call", 3)
    const { on, afterMs } = moments(at)
    const moment = Promise.withResolvers<void>()
    const before = service.asked.length
    service.before = async (path) => {
      if (path === "/refresh" && on === "asked") moment.resolve()
      // What was given is on its way once the next thing is asked of the loop.
      if (path === "/refresh" && on === "given") setImmediate(() => moment.resolve())
    }
    const acted = user.act()
    await Promise.race([on === "begun" ? undefined : moment.promise, acted])
    if (afterMs >= 1) await pause(on === "begun" ? afterMs * 4 : afterMs)
    user.kill()
    await acted
    service.before = async () => undefined
    await nextCall(world, "signer.get", () => world.login(), tally)
    expect(service.asked.length).toBeGreaterThan(before)
  }
  if (kills > 10) console.log("own refresh", JSON.stringify(tally))
  expect(tally.served + tally.told).toBe(kills)
})

it.each(["login", "logout"] as const)(
  "a host that is killed in the middle of a %s leaves nobody half signed in",
  { timeout },
  async (does) => {
    await using world = await openLoginWorld()
    const tally = newTally()
    for (let at = 0; at < kills; at += 1) {
      if (does === "logout") await world.login()
      await using user = await startUser(placeOf(world), "signer.get", does)
      // A login is killed at its start, when its code is handed in, and when it is proven.
      const step = (["begun", "/token?code=WXYZ-1234", "/whoami"] as const)[at % 3]
      const moment = Promise.withResolvers<void>()
      world.service.before = async (path) => {
        if (path === step) moment.resolve()
      }
      const acted = user.act()
      await Promise.race([does === "logout" || step === "begun" ? undefined : moment.promise, acted])
      await pause(Math.random() * (does === "login" && step !== "begun" ? 150 : 300))
      user.kill()
      await acted
      world.service.before = async () => undefined
      // Whoever is told that somebody is signed in is so by a token that the service takes.
      await nextCall(world, "signer.get", () => world.login(), tally)
      await world.host.logout("signer", { caller, workspace: world.workspace })
    }
    if (kills > 10) console.log(does, JSON.stringify(tally))
    expect(tally.served + tally.told).toBe(kills)
  },
)
