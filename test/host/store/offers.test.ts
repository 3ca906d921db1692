import { mkdtempSync, realpathSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { openSqliteStore } from "../../../src/host/store/sqlite.ts"
import type { NewOffer } from "../../../src/host/store/store.ts"
import { removeFolder } from "../../support/remove-folder.ts"

const folders: string[] = []
const fileOf = (): string => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-offers-")))
  folders.push(folder)
  return join(folder, "store.sqlite")
}
afterEach(() => folders.splice(0).forEach(removeFolder))

const offer = (digest: string, change: Partial<NewOffer> = {}): NewOffer => ({
  tenant: "local",
  subject: "driver",
  name: "tool",
  word: { digest, text: `"${digest}"` },
  atMs: 1,
  ...change,
})
const acceptance = (digest: string, tenant = "local") => ({ tenant, subject: "driver", digest, by: "op", atMs: 2 })

describe("offers", () => {
  it("have their first word accepted, and any other waiting, across processes", async () => {
    const file = fileOf()
    {
      await using store = await openSqliteStore(file)
      expect(await store.offered(offer("a"))).toMatchObject({ first: true, offer: { accepted: { digest: "a" } } })
      expect(await store.offered(offer("a"))).toMatchObject({ first: false })
    }
    await using store = await openSqliteStore(file)
    const heard = await store.offered(offer("b"))
    expect(heard).toMatchObject({ first: false, offer: { accepted: { digest: "a" }, waiting: { digest: "b" } } })
    expect(await store.offered(offer("a"))).toMatchObject({ offer: { accepted: { digest: "a" } } })
  })
  it("are accepted by the digest that waits, and no other", async () => {
    await using store = await openSqliteStore(fileOf())
    await store.offered(offer("a"))
    await store.offered(offer("b"))
    await store.offered(offer("c"))
    expect(await store.acceptOffer(acceptance("b"))).toBeUndefined()
    expect(await store.acceptOffer(acceptance("c", "another"))).toBeUndefined()
    expect(await store.acceptOffer(acceptance("c"))).toEqual({
      name: "tool",
      accepted: { digest: "c", text: '"c"', atMs: 2, by: "op" },
    })
    expect(await store.acceptOffer(acceptance("c"))).toBeUndefined()
    expect((await store.offered(offer("a"))).offer).toMatchObject({ waiting: { digest: "a" } })
  })
  it("of one subject, tenant and name are nobody else's", async () => {
    await using store = await openSqliteStore(fileOf())
    await store.offered(offer("a"))
    for (const other of [{ tenant: "t" }, { subject: "s" }, { name: "n" }])
      expect(await store.offered(offer("b", other))).toMatchObject({ first: true })
    expect(await store.offers("local", "driver")).toMatchObject([{ name: "n" }, { name: "tool" }])
  })
  it("that come at once have one first", async () => {
    const file = fileOf()
    await using one = await openSqliteStore(file)
    await using two = await openSqliteStore(file)
    const heard = await Promise.all([one, two, one, two].map((store, i) => store.offered(offer(`d${i}`))))
    expect(heard.filter(({ first }) => first)).toHaveLength(1)
    const accepted = new Set(heard.map((each) => each.offer.accepted.digest))
    expect(accepted.size).toBe(1)
  })
})
