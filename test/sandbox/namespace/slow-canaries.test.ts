import { afterAll, expect, test } from "vitest"
import type { SandboxBackend } from "../../../src/sandbox/backend.ts"
import { examine } from "../../../src/sandbox/doctor/examine.ts"
import { createNamespaceBackend } from "../../../src/sandbox/namespace/backend.ts"
import { removeFolder, temporaryFolder } from "../../support/sealed.ts"

const data = temporaryFolder("data")
const backend = createNamespaceBackend({ data })
afterAll(async () => {
  await backend[Symbol.asyncDispose]()
  removeFolder(data)
})

test("a canary that a slow machine did not get to its end shows nothing: its control is not called enforced", async () => {
  let made = 0
  const slow: SandboxBackend = {
    ...backend,
    // The first sandbox tries what is not a limit; from then on no program gets anywhere in its time.
    async prepare(shape) {
      made += 1
      const prepared = await backend.prepare(shape)
      if (made === 1 || !prepared.ok) return prepared
      return {
        ok: true,
        channel: prepared.channel,
        start: (job, cancel) => prepared.start({ ...job, limits: { ...job.limits, wallMs: 1 } }, cancel),
        [Symbol.asyncDispose]: () => prepared[Symbol.asyncDispose](),
      }
    },
  }
  const found = new Map((await examine(slow)).map((report) => [report.control, report]))
  for (const control of [
    "children-forbidden",
    "memory-limit",
    "process-limit",
    "disk-limit",
    "output-limit",
    "terminal",
  ])
    expect(found.get(control), control).toMatchObject({
      state: "absent",
      evidence: expect.stringContaining("nothing was shown"),
      fix: expect.stringContaining("less busy"),
    })
  expect(found.get("deadline")).toMatchObject({ state: "enforced" })
})
