import { chmodSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { holdUsers, inotifyShare, Users, usersPerBlock } from "../../src/sandbox/identities.ts"
import { removeFolder, temporaryFolder } from "../support/sealed.ts"

let folder = ""
beforeEach(() => {
  folder = temporaryFolder("users")
})
afterEach(() => removeFolder(folder))

test("hosts that are there at the same time hold different users, and those of one that is gone are free again", () => {
  const [one, two] = [holdUsers(folder), holdUsers(folder)]
  expect([one.own, two.own, one.count]).toEqual([true, true, usersPerBlock])
  expect(two.first).toBeGreaterThanOrEqual(one.first + one.count)
  one.release()
  const three = holdUsers(folder)
  expect(three.first).toBe(one.first)
  two.release()
  three.release()
})

test("where users cannot be held, all share one, and it is told", () => {
  const open = join(folder, "open")
  mkdirSync(open)
  chmodSync(open, 0o777)
  writeFileSync(join(folder, "file"), "")
  for (const unusable of [open, join(folder, "file"), join(folder, "no/where")])
    expect(holdUsers(unusable)).toMatchObject({ own: false, count: 1, first: 1_879_048_191 })
})

test("a user is given to one sandbox at a time, the lowest free one, and the last is shared by the rest", () => {
  const users = new Users({ first: 100, count: 3 })
  const [a, b] = [users.take(), users.take()]
  expect([a, b].map(({ identity }) => identity.uid)).toEqual([100, 101])
  expect([users.take(), users.take()].map(({ identity }) => identity.uid)).toEqual([102, 102])
  a.release()
  expect(users.take().identity).toEqual({ uid: 100, gid: 100 })
})

test("an ordinary user's calls have half of its inotify instances together", () => {
  expect([inotifyShare("128\n"), inotifyShare("4\n")]).toEqual(["64", "8"])
})
