import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, it } from "vitest"
import { createHost } from "../../../src/host/index.ts"
import { removeFolder } from "../../support/remove-folder.ts"

let folder = ""
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "caisson-secrets-"))
  mkdirSync(join(folder, "data"), { mode: 0o700 })
})
afterEach(() => removeFolder(folder))

const set = async (at: string): Promise<string> => {
  const manifests = join(folder, at)
  cpSync(join(import.meta.dirname, "../../../fixtures/tools"), manifests, { recursive: true })
  await using host = await createHost({ data: join(folder, "data"), manifests: [manifests] })
  expect(await host.secrets.set("a-key", "value", { driver: "actor" })).toMatchObject({ ok: true })
  return manifests
}
const remove = async (driver: string, manifests: readonly string[] = []): Promise<unknown> => {
  await using host = await createHost({ data: join(folder, "data"), manifests })
  const removed = await host.secrets.remove("a-key", { driver })
  return removed.ok ? removed.value : removed.error.code
}

it("a secret that was set for a driver is removed by the driver's name, also when the driver is gone", async () => {
  rmSync(await set("m"), { recursive: true })
  expect(await remove("acto")).toBe("not_found")
  expect(await remove("actor")).toBe(true)
  expect(await remove("actor")).toBe("not_found")
})

it("of drivers of one name that lie in several places the one that is meant is named by its folder", async () => {
  const [one] = [await set("one"), await set("two")]
  expect(await remove("actor@1")).toBe("input_invalid")
  expect(await remove("actor@1", [one])).toBe(true)
  // What is left was set for the other, which is not registered here.
  expect(await remove("actor@2", [one])).toBe("not_found")
  expect(await remove("actor@1", [one])).toBe(true)
  await using host = await createHost({ data: join(folder, "data") })
  expect(await host.secrets.list()).toEqual({ ok: true, value: [] })
})

it("one that belongs to another user or to one workspace is not removed with it", async () => {
  const manifests = await set("m")
  await using host = await createHost({ data: join(folder, "data"), manifests: [manifests] })
  expect(await host.secrets.remove("a-key", { driver: "actor", shared: true })).toEqual({ ok: true, value: false })
  expect(await host.secrets.remove("a-key", { driver: "actor", workspace: folder })).toEqual({ ok: true, value: false })
  expect(await host.secrets.list()).toMatchObject({ value: [{ slug: "a-key" }] })
})
