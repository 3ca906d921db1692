import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, it } from "vitest"
import { openWholeCore } from "../../support/open-core.ts"
import { defaultConfig } from "../../../src/host/config/types.ts"

let data = ""
beforeEach(() => {
  data = realpathSync(mkdtempSync(join(tmpdir(), "caisson-core-")))
})
afterEach(() => rmSync(data, { recursive: true, force: true }))

/** A core whose backend cannot be made so many times: what it is made from is not to be had. */
const failing = (times: number) => {
  let asked = 0
  const docker = {
    ...defaultConfig.docker,
    get rootfs() {
      asked += 1
      if (asked <= times) throw new Error("not yet")
      return "host" as const
    },
  }
  const open = (warm: boolean) =>
    openWholeCore({
      record: async () => undefined,
      data,
      config: { ...defaultConfig, docker },
      catalogue: join(import.meta.dirname, "../../../manifests"),
      manifests: [],
      backend: "docker",
      warm,
      closing: new AbortController().signal,
    })
  return { open, asked: () => asked }
}

it("a backend that could not be made is made anew when it is asked for again, and then kept", async () => {
  const { open, asked } = failing(2)
  await using core = await open(false)
  await expect(core.backend()).rejects.toThrow("not yet")
  await expect(Promise.all([core.backend(), core.backend()])).rejects.toThrow("not yet")
  expect(asked()).toBe(2)
  const made = await core.backend()
  expect(made.name).toBe("docker")
  expect(await core.backend()).toBe(made)
  expect(asked()).toBe(3)
})

it("a core whose backend could not be made as it opened can be opened again", async () => {
  const { open } = failing(1)
  await expect(open(true)).rejects.toThrow("not yet")
  await using core = await open(true)
  expect((await core.backend()).name).toBe("docker")
})
