import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { homesFolder } from "../../src/data-folder/paths.ts"
import type { OpenedHome, SealedHomes } from "../../src/host/homes/sealed-homes.ts"
import type { HomeContent } from "../../src/sandbox/backend.ts"
import { heldOnDisk } from "../support/on-disk.ts"
import { homeFile as file, makeSealedHomes, openedIn, textsOf } from "../support/sealed-homes.ts"

let data: string
let at: string
let homes: SealedHomes
beforeEach(() => {
  const made = makeSealedHomes()
  data = made.data
  at = made.at
  homes = made.homes
})
afterEach(() => rmSync(data, { recursive: true, force: true }))

const opened = (place = at): Promise<OpenedHome> => openedIn(homes, place)
const texts = async (place = at): Promise<Record<string, string>> => textsOf(await opened(place))
const keep = async (...content: HomeContent) => (await opened()).keep({ ok: true, content })

/** Every step that a write has, in its order. */
const STEPS = ["keyed", "begin", "written", "synced", "renamed", "kept"] as const

describe("a host that is killed", () => {
  const writer = join(import.meta.dirname, "fixtures/dying-writer.ts")
  const dies = (...args: string[]): void => {
    const { signal, stderr } = spawnSync(process.execPath, [writer, data, at, ...args], { encoding: "utf8" })
    expect([signal, stderr]).toEqual(["SIGKILL", ""])
  }
  it.each(STEPS)(
    "at the step `%s` of keeping a home leaves the one before or the one after, and nothing to read",
    async (step) => {
      await keep(file("token", "canary-before-0123456789"))
      dies("keep", step)
      const isAfter = ["renamed", "kept"].includes(step)
      expect(await texts()).toEqual({ token: isAfter ? "canary-after-0123456789" : "canary-before-0123456789" })
      expect(["canary-before", "canary-after"].flatMap((value) => heldOnDisk(value, [data]))).toEqual([])
      expect(await keep(file("token", "next"))).toEqual({ ok: true })
      expect(existsSync(`${at}.sealed.new`)).toBe(false)
    },
  )
  it.each(STEPS)("at the step `%s` of keeping the first one leaves none or all of it", async (step) => {
    dies("keep", step)
    const isAfter = ["renamed", "kept"].includes(step)
    expect(await texts()).toEqual(isAfter ? { token: "canary-after-0123456789" } : {})
    expect(await keep(file("token", "next"))).toEqual({ ok: true })
  })
  it.each(STEPS)("at the step `%s` of taking over a home in the clear has lost nothing of it", async (step) => {
    mkdirSync(at)
    writeFileSync(join(at, "token"), "canary-before-0123456789")
    dies("open", step)
    expect(await texts()).toEqual({ token: "canary-before-0123456789" })
    expect(heldOnDisk("canary-before", [data])).toEqual([])
  })
  it.each([1, 2].flatMap((nth) => STEPS.slice(1).map((step) => [step, nth] as const)))(
    "at the step `%s` of the home number %i of a rotation can read all, and finishes it with the next",
    async (step, nth) => {
      await keep(file("token", "1"))
      const other = join(homesFolder(data), "f".repeat(32))
      expect(await (await opened(other)).keep({ ok: true, content: [file("token", "2")] })).toEqual({ ok: true })
      dies("rotate", step, String(nth))
      expect([await texts(), await texts(other)]).toEqual([{ token: "1" }, { token: "2" }])
      expect(await homes.rotate()).toMatchObject({ ok: true })
      expect([await texts(), await texts(other)]).toEqual([{ token: "1" }, { token: "2" }])
    },
  )
  it.each(STEPS.slice(1))("at the step `%s` of a logout has the login or has none", async (step) => {
    await keep(file("token", "1"))
    dies("wipe", step)
    expect(await texts()).toEqual(["renamed", "kept"].includes(step) ? {} : { token: "1" })
    expect(await homes.wipe(at, "all")).toMatchObject({ ok: true })
    expect(await texts()).toEqual({})
  })
})
