import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest"
import { createNamespaceBackend } from "../../../src/sandbox/namespace/backend.ts"
import { finish, prepared, removeFolder, temporaryFolder } from "../../support/sealed.ts"

const data = temporaryFolder("data")
const backend = createNamespaceBackend({ data })
let workspace = ""

beforeAll(() => backend.start())
beforeEach(() => {
  workspace = temporaryFolder("workspace")
})
afterEach(() => removeFolder(workspace))
afterAll(async () => {
  await backend[Symbol.asyncDispose]()
  removeFolder(data)
})

const python = async (source: string, limits: Parameters<typeof prepared>[1] = {}) =>
  finish(await prepared(backend, { program: "/usr/bin/python3", ...limits }), {
    argv: ["/usr/bin/python3", "-c", source],
    workspace,
  })

describe("a CPU limit", () => {
  test.each([1000, 300])("of %d ms ends as that limit, and the denial names it", async (cpuMs) => {
    const { exited } = await python("while True: pass", { limits: { cpuMs } })
    expect(exited.ending).toEqual({ by: "limit", limit: "cpu" })
    expect(exited.denied).toEqual([{ layer: "limit", reason: "cpu", target: `${cpuMs} ms of CPU`, count: 1 }])
  })
  test("counts children that came and went below it each", async () => {
    const source = `
import os, time
for _ in range(4):
    if os.fork() == 0:
        end = time.process_time() + 0.4
        while time.process_time() < end: pass
        os._exit(0)
    os.wait()`
    const { exited } = await python(source, { limits: { cpuMs: 1000 } })
    expect(exited.ending).toEqual({ by: "limit", limit: "cpu" })
  })
  test("that was not reached ends nothing", async () => {
    const { exited } = await python("pass", { limits: { cpuMs: 5000 } })
    expect(exited.ending).toEqual({ by: "exit", code: 0 })
    expect(exited.denied).toEqual([])
  })
})
