import { PassThrough } from "node:stream"
import { expect, it } from "vitest"
import type { LentTerminal, PageToOpen } from "../../../src/host/person.ts"
import { commandMethod as commandMethodWith } from "../../../src/host/login/methods/command.ts"
import type { RanInHome } from "../../../src/host/login/run-in-home.ts"
import { deskWith, driverWith, ranWell } from "./desk.ts"

const commandMethod = commandMethodWith({ refused: () => undefined })

const login = { cmd: "gh auth login", interactive: false, requiresCallbackUrl: false, completesWhen: [] }
const state = { paths: ["~/.config/gh"], env: [] }
const terminal: LentTerminal = {
  columns: 80,
  rows: 24,
  input: new PassThrough(),
  show: () => undefined,
  onResize: () => ({ [Symbol.dispose]: () => undefined }),
}

const flowOf = (interactive = false) => {
  const flow = commandMethod.loginOf(driverWith({ state, login: { ...login, interactive } }))
  if (flow === undefined) throw new Error("no flow")
  return flow
}

it("serves drivers that name a command, for login and refresh apart", () => {
  expect(commandMethod.loginOf(driverWith({ state }))).toBeUndefined()
  expect(commandMethod.refreshOf(driverWith({ state, login }))).toBeUndefined()
  expect(commandMethod.refreshOf(driverWith({ state, refresh: { via: "url", url: "https://a.test" } }))).toBeUndefined()
  expect(commandMethod.refreshOf(driverWith({ state, refresh: { via: "cmd", cmd: "gh r" } }))).toBeDefined()
})

it("runs nothing where a person is asked at a terminal and none is there", async () => {
  const { desk, ran } = deskWith(() => ranWell)
  expect(flowOf(true).needs).toEqual(["terminal"])
  expect(await flowOf(true).run(desk)).toMatchObject({ ok: false, why: "needs-person" })
  expect(ran).toEqual([])
})

it("lends the terminal, and offers the pages that the program prints", async () => {
  const pages: PageToOpen[] = []
  const { desk, ran } = deskWith(
    ({ heard }) => {
      heard?.(new TextEncoder().encode("go to https://a.test/device"))
      return ranWell
    },
    { person: { terminal, open: (page) => void pages.push(page) } },
  )
  expect(await flowOf(true).run(desk)).toEqual({ ok: true })
  expect(ran).toMatchObject([{ cmd: "gh auth login", terminal }])
  expect(pages).toEqual([{ url: "https://a.test/device", from: "program" }])
})

const ends: readonly (readonly [string, RanInHome, string])[] = [
  ["exited badly", { ...ranWell, exit: 1, stderr: "bad code" }, "refused"],
  ["was ended by a signal", { ...ranWell, exit: null }, "refused"],
  ["could not reach a host", { ...ranWell, exit: 1, unreachable: ["a.test:443"] }, "unreachable"],
  ["ran out of time", { ...ranWell, exit: null, timedOut: true }, "timed-out"],
  ["could not be sealed", { ran: false, why: "unsealed", message: "m", fix: "f" }, "broken"],
  ["lost its state", { ran: false, why: "lost", message: "m", fix: "f" }, "broken"],
  ["was cancelled", { ran: false, why: "cancelled", message: "m", fix: "f" }, "cancelled"],
]
it.each(ends)("tells apart why it came to nothing: it %s", async (_what, ran, why) => {
  expect(await flowOf().run(deskWith(() => ran).desk)).toMatchObject({ ok: false, why })
  const refresh = commandMethod.refreshOf(driverWith({ state, refresh: { via: "cmd", cmd: "gh r" } }))
  expect(await refresh?.run(deskWith(() => ran).desk)).toMatchObject({ ok: false, why })
})

it("tells a cancel from a deadline that is over", async () => {
  const gone: RanInHome = { ...ranWell, exit: null }
  const signal = AbortSignal.abort()
  const late = deskWith(() => gone, { signal, deadlineMs: Date.now() - 1 })
  expect(await flowOf().run(late.desk)).toMatchObject({ why: "timed-out" })
  const early = deskWith(() => gone, { signal, deadlineMs: Date.now() + 60_000 })
  expect(await flowOf().run(early.desk)).toMatchObject({ why: "cancelled" })
})

it("says what its driver does not declare, and the end of what the program said", async () => {
  const ran = { ...ranWell, exit: 3, denied: ["evil.test:443"], stderr: `${"x".repeat(900)}THE END` }
  const end = await flowOf().run(deskWith(() => ran).desk)
  expect(end).toMatchObject({ message: expect.stringMatching(/exited with 3; .*evil\.test:443.*THE END$/s) as unknown })
  expect(end.ok ? "" : end.message.length).toBeLessThan(600)
})
