/**
 * Many that find the same login old at the same moment, in one process and in several, against services that give a refresh
 * token once and end the login when one is used twice.
 */
import { expect, it } from "vitest"
import { openLoginWorld } from "../e2e/login-world.ts"
import { readReceipts } from "../../src/host/index.ts"
import { openDesk, placeOf, startUser } from "./login-users.ts"

const CALLS = 50
const PROCESSES = 4

/** As many calls as there are, over as many processes, all at once. */
const allAtOnce = async (place: Parameters<typeof startUser>[0], tool: string): Promise<readonly unknown[]> => {
  await using users = new AsyncDisposableStack()
  const share = (at: number): number => Math.ceil((CALLS - at) / PROCESSES)
  const ready = await Promise.all(
    Array.from({ length: PROCESSES }, (_, at) => startUser(place, tool, "call", share(at))),
  )
  for (const user of ready) users.use(user)
  return (await Promise.all(ready.map((user) => user.act()))).flat()
}

it("fifty calls of four processes at the moment of expiry make one refresh at the provider, and all are served", async () => {
  await using desk = await openDesk()
  expect(await allAtOnce(desk.place, "desk.who")).toEqual(Array.from({ length: CALLS }, () => "ok"))
  expect(desk.server.grants).toEqual([{ type: "refresh_token", status: 200 }])
  expect(readReceipts(desk.world.data).filter(({ action }) => action === "login.refreshed")).toHaveLength(1)
})

it("a dozen calls of one process at the moment of expiry have the program refresh once, and all are served", async () => {
  await using world = await openLoginWorld()
  await world.login()
  world.service.expire()
  const ended = await Promise.all(Array.from({ length: 12 }, () => world.call("signer.get", {})))
  expect(ended.filter(({ ok }) => !ok)).toEqual([])
  expect(world.service.asked.filter((line) => line.startsWith("/refresh"))).toEqual(["/refresh 200"])
})

it("fifty calls of four processes have the program refresh once, and all are served", async () => {
  await using world = await openLoginWorld()
  await world.login()
  world.service.expire()
  expect(await allAtOnce(placeOf(world), "signer.get")).toEqual(Array.from({ length: CALLS }, () => "ok"))
  expect(world.service.asked.filter((line) => line.startsWith("/refresh"))).toEqual(["/refresh 200"])
})
