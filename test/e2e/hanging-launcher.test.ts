import { readFileSync } from "node:fs"
import { afterEach, beforeEach, expect, it } from "vitest"
import { processCaller } from "../../src/host/index.ts"
import { descendants, stillAlive, until } from "../support/sealed.ts"
import { digestOfFolder, openWorld, type World } from "./host-world.ts"

let world: World
let before = ""
beforeEach(async () => {
  world = await openWorld()
  // Version checks and the launcher's start are behind it.
  expect(await world.call("fixture.act", { verb: "read", args: ["README.md"] })).toMatchObject({ ok: true })
  before = digestOfFolder(world.workspace)
})
afterEach(() => world[Symbol.asyncDispose]())

const launchers = (): number[] =>
  descendants(process.pid)
    .map(({ pid }) => pid)
    .filter((pid) => readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(`launcher.ts\0${world.data}`))
const hang = (): void => launchers().forEach((pid) => process.kill(pid, "SIGSTOP"))
const goOn = (): void => launchers().forEach((pid) => process.kill(pid, "SIGCONT"))

it("a cancelled call does not wait for a launcher that hangs before it has a sandbox", async () => {
  hang()
  const cancel = new AbortController()
  const request = { tool: "fixture.act", input: { verb: "write", args: ["notes/a", "a"] }, workspace: world.workspace }
  const called = world.host.call(request, {
    caller: processCaller("alice"),
    signal: cancel.signal,
    // Told just before a sandbox is asked for.
    onEvent: ({ type }) => (type === "started" ? cancel.abort() : undefined),
  })
  expect(await called).toMatchObject({ ok: false, error: { code: "cancelled" }, effects: [] })
  expect(digestOfFolder(world.workspace)).toBe(before)
  goOn()
  expect(await world.call("fixture.act", { verb: "write", args: ["notes/b", "b"] })).toMatchObject({ ok: true })
})

it("a cancelled call does not wait for a launcher that hangs while its program runs, and nothing of that is written", async () => {
  const cancel = new AbortController()
  const sleepers = (): { pid: number; started: string }[] =>
    descendants(process.pid).filter(({ pid }) => readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("notes/slow"))
  const called = world.call("fixture.act", { verb: "sleep", args: ["notes/slow"] }, { signal: cancel.signal })
  await until(() => sleepers().length > 0, "the program runs")
  const ours = sleepers()
  hang()
  cancel.abort()
  expect(await called).toMatchObject({ ok: false, error: { code: "cancelled" }, effects: [] })
  expect(digestOfFolder(world.workspace)).toBe(before)
  goOn()
  await until(() => stillAlive(ours).length === 0, "the program was stopped when the launcher went on")
  expect(await world.call("fixture.act", { verb: "write", args: ["notes/b", "b"] })).toMatchObject({ ok: true })
})
