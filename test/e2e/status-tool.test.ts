/** A call of which nobody knows whether it was done: its contract's status tool is asked before anything else. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { readReceipts } from "../../src/host/index.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { openFolder, openWorld, type World } from "./host-world.ts"

const sealed = `sandbox:
  network: { egress: [], ingress: [] }
  fs: { read: ["**"], write: [] }
  exec: { allow: false }
  env: { pass: [] }
output: { default_format: text }`

const order = (id: string, status: string): string => `---
name: ${id}
id: ${id}
description: Orders something, and is not heard of again.
version: 1.0.0
inputs: { type: object, additionalProperties: false, required: [item], properties: { item: { type: string } } }
outputs: { type: string }
idempotent: false
mutates: ["external:orders"]
approval: always
risk_level: 2
timeout_ms: 1500
retry: { max_attempts: 2, backoff: fixed, initial_ms: 0 }
metadata: { operation: { status_tool: ${status} } }
---
`
const asked = (id: string, mutates: string): string => `---
name: ${id}
id: ${id}
description: Says what became of an order.
version: 1.0.0
inputs:
  type: object
  additionalProperties: false
  required: [item, operation_key]
  properties: { item: { type: string }, operation_key: { type: string, pattern: '^[0-9a-f-]{36}$' } }
outputs: { type: string }
idempotent: true
mutates: [${mutates}]
approval: ${mutates === "" ? "auto" : "always"}
risk_level: ${mutates === "" ? 0 : 2}
---
`
const driver = (id: string, bin: string, tools: readonly string[], argv: string): string => `---
name: ${id}
id: ${id}
description: A driver of a test.
version: 1.0.0
kind: cli
bin: ${bin}
version_check: { cmd: ${bin} --version, parse: '(\\d+\\.\\d+)', range: '>=1.0' }
${sealed}
implements:
${tools.map((tool) => `  - { tool: ${tool}, version: ^1.0.0, metadata: { cli: { argv: [${argv}] } } }`).join("\n")}
---
`

describe("the status tool of a call that ran out of time", () => {
  const outside = openFolder()
  let world: World
  beforeAll(async () => {
    const words = ["done", "not_done", "perhaps"] as const
    const files: Record<string, string> = {
      "slow/DRIVER.md": driver(
        "slow",
        "sleep",
        [...words, "writes"].map((word) => `order.${word.replace("_", "-")}`),
        '"60"',
      ),
      "order-writes/TOOL.md": order("order.writes", "status.writes"),
      "status-writes/TOOL.md": asked("status.writes", '"external:orders"'),
      "status-writes/driver/DRIVER.md": driver("status-writes", "echo", ["status.writes"], "done"),
    }
    for (const word of words) {
      const name = word.replace("_", "-")
      files[`order-${name}/TOOL.md`] = order(`order.${name}`, `status.${name}`)
      files[`status-${name}/TOOL.md`] = asked(`status.${name}`, "")
      files[`status-${name}/driver/DRIVER.md`] = driver(`status-${name}`, "echo", [`status.${name}`], word)
    }
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(join(outside, name, ".."), { recursive: true })
      writeFileSync(join(outside, name), text)
    }
    world = await openWorld(`manifests: [${outside}]\n`)
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
    removeFolder(outside)
  })
  const make = async (name: string) => {
    const made = await world.call(`order.${name}`, { item: "bolt" })
    const [receipt] = readReceipts(world.data, { call: made.call })
    return { made, calls: receipt?.metadata?.["calls"] as { tool: string; ok: boolean }[] | undefined }
  }

  it("is asked once where it says that it was done, and the call is not run again", async () => {
    const { made, calls } = await make("done")
    expect(made).toMatchObject({
      error: { code: "timeout", retryable: false, details: { commit: "committed", status: "done" } },
    })
    expect(calls).toMatchObject([{ tool: "status.done", ok: true }])
  })

  it("lets the call be tried again where it says that it was not done, as often as the contract's retries say", async () => {
    const { made, calls } = await make("not-done")
    expect(made).toMatchObject({
      error: { code: "timeout", retryable: true, details: { commit: "none", status: "not_done" } },
    })
    expect(calls).toHaveLength(2)
  })

  it("leaves it unknown where it says anything else, or would change something itself, and nothing is run again", async () => {
    const perhaps = await make("perhaps")
    expect(perhaps.made).toMatchObject({
      error: { code: "timeout", retryable: false, details: { commit: "unknown", status: "unknown" } },
    })
    expect(perhaps.calls).toHaveLength(1)
    const writes = await make("writes")
    expect(writes.made).toMatchObject({ error: { details: { commit: "unknown" } } })
    expect(writes.calls).toBeUndefined()
  })
})
