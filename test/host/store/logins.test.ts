import { spawn } from "node:child_process"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { openSqliteStore, schema } from "../../../src/host/store/sqlite.ts"
import type { LoginFacts, LoginKey } from "../../../src/host/store/store.ts"
import { removeFolder } from "../../support/remove-folder.ts"

const key: LoginKey = { tenant: "local", driver: "gh@1 file:/a", workspace: "w-1", user: "alice" }
const facts: LoginFacts = { name: "gh@1", manifest: "sha256:a", freshness: 1, setup: {}, account: "ä 😀 \u0000 '" }

let folder = ""
let file = ""
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "caisson-logins-"))
  file = join(folder, "store.db")
})
afterEach(() => removeFolder(folder))

describe("logins in the store", () => {
  it("whose text was damaged count as nothing known, and can be written anew", async () => {
    {
      await using store = await openSqliteStore(file)
      await store.changeLogin(key, 0, { state: "authed", facts })
    }
    for (const text of ["{", "null", '{"name":1}', "[]"]) {
      const db = new DatabaseSync(file)
      db.prepare("UPDATE logins SET facts = ?").run(text)
      db.close()
      await using store = await openSqliteStore(file)
      const found = await store.login(key)
      expect(found).toMatchObject({ state: "unknown", facts: { manifest: "", setup: {} } })
      const again = await store.changeLogin(key, found?.generation ?? 0, { state: "authed", facts })
      expect(again).toMatchObject({ state: "authed" })
    }
  })

  it("are added to a store of the version before", async () => {
    const db = new DatabaseSync(file)
    const before = schema.steps.slice(0, -1)
    for (const step of before) db.exec(step)
    db.exec(`PRAGMA application_id=${schema.applicationId}; PRAGMA user_version=${before.length}`)
    db.close()
    await using store = await openSqliteStore(file)
    expect(await store.changeLogin(key, 0, { state: "authed", facts })).toMatchObject({ generation: 1 })
  })

  it("of processes that change the same one at once, each generation has one author", async () => {
    const writers = ["one", "two", "three"].map((name) => {
      const child = spawn(process.execPath, [join(import.meta.dirname, "login-changer.ts"), file, name, "40"])
      let said = ""
      child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text))
      return new Promise<string[]>((resolve) => child.once("close", () => resolve(said.trim().split("\n"))))
    })
    const generations = (await Promise.all(writers)).flat().map(Number)
    expect(generations).toHaveLength(120)
    expect(generations.sort((a, b) => a - b)).toEqual(Array.from({ length: 120 }, (_, n) => n + 1))
  })
})
