import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { homesFolder } from "../../../src/data-folder/paths.ts"
import { openFileVault } from "../../../src/host/secrets/file-vault.ts"
import type { OpenedHome, SealedHomes } from "../../../src/host/homes/sealed-homes.ts"
import type { HomeContent } from "../../../src/sandbox/backend.ts"
import { heldOnDisk } from "../../support/on-disk.ts"
import { homeFile as file, makeSealedHomes, openedIn, textsOf } from "../../support/sealed-homes.ts"

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

const folder = (path: string): HomeContent[number] => ({ path, kind: "folder", mode: 0o700 })

const opened = (keep?: readonly string[]): Promise<OpenedHome> => openedIn(homes, at, keep)
const texts = async (): Promise<Record<string, string>> => textsOf(await opened())
const keep = async (...content: HomeContent) => (await opened()).keep({ ok: true, content })
const sealed = (): string => `${at}.sealed`

describe("a home that is kept", () => {
  it("is what was kept, names, modes, times, links and bytes alike", async () => {
    const content: HomeContent = [
      folder(".config"),
      file(".config/\\xff name", "\0\xff", 0o640),
      { path: ".config/link", kind: "link", mode: 0o777, target: "../elsewhere" },
      file("empty", ""),
    ]
    expect(await keep(...content)).toEqual({ ok: true })
    expect((await opened()).content).toEqual(content)
  })
  it("shows nobody its names, its values or that they are the same as before", async () => {
    await keep(file("a-name-of-it", "canary-0123456789"))
    const first = readFileSync(sealed())
    await keep(file("a-name-of-it", "canary-0123456789"))
    expect(heldOnDisk("a-name-of-it", [data])).toEqual([])
    expect(heldOnDisk("canary-0123456789", [data])).toEqual([])
    const second = readFileSync(sealed())
    expect(second.subarray(second.indexOf("\n"))).not.toEqual(first.subarray(first.indexOf("\n")))
  })
  it("keeps of a call only what that may change, and the rest as it was", async () => {
    await keep(folder("a"), file("a/mine", "1"), file("other", "2"))
    const narrow = await opened(["a/**"])
    expect(await narrow.keep({ ok: true, content: [folder("a"), file("a/mine", "3")] })).toEqual({ ok: true })
    expect(await texts()).toEqual({ "a/mine": "3", other: "2" })
    expect(await narrow.keep({ ok: true, content: [] })).toMatchObject({ ok: false, reason: "conflict" })
  })
  it("is never made into what nobody could open again", async () => {
    await keep(file("a", "1"))
    const narrow = await opened(["a/mine"])
    expect(await narrow.keep({ ok: true, content: [folder("a"), file("a/mine", "2")] })).toMatchObject({ ok: false })
    expect(await texts()).toEqual({ a: "1" })
  })
  it("has what each of two calls changed, and refuses the later of the same path", async () => {
    await keep(file("base", "0"), file("gone", "0"))
    const [one, two, three] = [await opened(), await opened(), await opened()]
    expect(await one.keep({ ok: true, content: [file("base", "0"), file("one", "1")] })).toEqual({ ok: true })
    expect(await two.keep({ ok: true, content: [file("base", "2"), file("gone", "0")] })).toEqual({ ok: true })
    expect(await three.keep({ ok: true, content: [file("base", "3"), file("gone", "0")] })).toEqual({
      ok: false,
      reason: "conflict",
      paths: ["base"],
    })
    expect(await texts()).toEqual({ base: "2", one: "1" })
  })
  it("of two that began with nothing has both", async () => {
    const [one, two] = [await opened(), await opened()]
    expect(await one.keep({ ok: true, content: [file("one", "1")] })).toEqual({ ok: true })
    expect(await two.keep({ ok: true, content: [file("two", "2")] })).toEqual({ ok: true })
    expect(await texts()).toEqual({ one: "1", two: "2" })
  })
  it("does not take what would lie in a folder that another call removed", async () => {
    await keep(folder("a"), file("a/old", "0"))
    const [one, two] = [await opened(), await opened()]
    expect(await one.keep({ ok: true, content: [] })).toEqual({ ok: true })
    const more = [folder("a"), file("a/new", "1"), file("a/old", "0")]
    expect(await two.keep({ ok: true, content: more })).toMatchObject({ ok: false, reason: "conflict" })
    expect(await texts()).toEqual({})
  })
})

describe("a home that is not what was written", () => {
  const refused = { ok: false, code: "internal", details: { home: "unreadable" } }
  it.each([
    ["in its body", (bytes: Buffer) => bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1)],
    ["in its generation", (bytes: Buffer) => bytes.write("1".repeat(32), bytes.indexOf('"generation":"') + 14)],
    ["in its format", (bytes: Buffer) => bytes.write("x", 3)],
  ])("%s is refused and left", async (_where, change) => {
    await keep(file("token", "1"))
    const bytes = readFileSync(sealed())
    change(bytes)
    writeFileSync(sealed(), bytes)
    expect(await homes.open(at, ["**"])).toMatchObject(refused)
    expect(readFileSync(sealed())).toEqual(bytes)
  })
  it("is refused where it is cut, and in another owner's place", async () => {
    await keep(file("token", "1"))
    const bytes = readFileSync(sealed())
    const theirs = join(homesFolder(data), "f".repeat(32))
    writeFileSync(`${theirs}.sealed`, bytes)
    expect(await homes.open(theirs, ["**"])).toMatchObject(refused)
    for (const length of [0, 10, bytes.indexOf("\n") + 1, bytes.length - 1]) {
      writeFileSync(sealed(), bytes.subarray(0, length))
      expect(await homes.open(at, ["**"])).toMatchObject(refused)
    }
  })
  it("is refused where its key is not in the vault, and no new one is made for it", async () => {
    await keep(file("token", "1"))
    rmSync(join(data, "secrets"), { recursive: true })
    expect(await homes.open(at, ["**"])).toMatchObject(refused)
    expect(existsSync(join(data, "secrets/vault.json"))).toBe(false)
  })
})

describe("after a logout", () => {
  it("nothing is kept of what began before it, whether there was a home by then or not", async () => {
    const early = await opened()
    expect(await homes.wipe(at, "all")).toMatchObject({ ok: true })
    expect(await early.keep({ ok: true, content: [file("token", "1")] })).toMatchObject({ reason: "logged-out" })
    await keep(file("token", "2"))
    const late = await opened()
    await homes.wipe(at, "all")
    // Nor where somebody logged in anew meanwhile.
    await keep(file("token", "3"))
    expect(await late.keep({ ok: true, content: [file("token", "2b")] })).toMatchObject({ reason: "logged-out" })
    expect(await texts()).toEqual({ token: "3" })
  })
  it("what is not the login's is still there, and a link on the way to it is not", async () => {
    const link = { path: "b", kind: "link", mode: 0o777, target: "a" } as const
    await keep(folder("a"), file("a/token", "1"), file("ab", "2"), link)
    expect(await homes.wipe(at, ["a/**", "b/token"])).toMatchObject({ ok: true })
    expect((await opened()).content.map(({ path }) => path)).toEqual(["ab"])
  })
  it("a home whose key is gone is wiped all the same", async () => {
    await keep(file("token", "1"))
    rmSync(join(data, "secrets"), { recursive: true })
    expect(await homes.wipe(at, ["token"])).toMatchObject({ ok: true })
    expect(await texts()).toEqual({})
  })
})

describe("other keys", () => {
  it("are what all homes are under after a rotation, and the old ones are nowhere", async () => {
    await keep(file("token", "1"))
    const before = readFileSync(sealed())
    const kept = await opened()
    expect(await homes.rotate()).toEqual({ ok: true, value: undefined })
    expect(await texts()).toEqual({ token: "1" })
    // A call that was under way keeps under the new one.
    expect(await kept.keep({ ok: true, content: [file("token", "2")] })).toEqual({ ok: true })
    expect(await texts()).toEqual({ token: "2" })
    const listed = await openFileVault(data).list()
    expect(listed.ok && listed.value).toHaveLength(1)
    writeFileSync(sealed(), before)
    expect(await homes.open(at, ["**"])).toMatchObject({ ok: false })
  })
})

describe("a home in the clear", () => {
  it("is taken over, and gone then; one that is left beside an encrypted one counts for nothing", async () => {
    mkdirSync(join(at, "a"), { recursive: true })
    writeFileSync(join(at, "a/token"), "canary-0123456789")
    expect(await texts()).toEqual({ "a/token": "canary-0123456789" })
    expect(heldOnDisk("canary-0123456789", [data])).toEqual([])
    mkdirSync(at)
    writeFileSync(join(at, "token"), "stale")
    expect(await texts()).toEqual({ "a/token": "canary-0123456789" })
    expect(existsSync(at)).toBe(false)
  })
})
