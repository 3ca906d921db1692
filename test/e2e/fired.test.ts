/** What an action stands for comes about when its effects are committed, and not before; and why a person said what they said. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { readReceipts } from "../../src/host/index.ts"
import { caisson } from "../cli/run-caisson.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { type Ask, type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"
import { openFolder } from "./host-world.ts"

const action = `---
schema: action/v1
id: shelf:put
version: 1.0.0
description: Something is put on the shelf.
mutates: ["workspace:/notes/**"]
approval: on-mutate
risk_level: 1
fires_events: [shelf.filled]
implementations: [{ kind: tool, ref: shelf.put }]
---
`
const tool = `---
name: shelf.put
id: shelf.put
description: Puts something on the shelf.
version: 1.0.0
implements: shelf:put
inputs: { type: object, additionalProperties: false, properties: {} }
outputs: { type: string }
idempotent: false
---
`
const driver = `---
name: Toucher
id: toucher
description: Makes a file.
version: 1.0.0
kind: cli
bin: touch
version_check: { cmd: touch --version, parse: '(\\d+\\.\\d+)', range: '>=1.0' }
sandbox:
  network: { egress: [], ingress: [] }
  fs: { read: ["**"], write: ["notes/**"] }
  exec: { allow: false }
  env: { pass: [] }
output: { default_format: text }
implements:
  - { tool: shelf.put, version: ^1.0.0, metadata: { cli: { argv: [notes/on-the-shelf.txt] } } }
---
`

describe("an action's events", () => {
  const outside = openFolder()
  let world: DaemonWorld
  let agent: Ask
  let person: Ask
  beforeAll(async () => {
    const files = { "shelf/ACTION.md": action, "put/TOOL.md": tool, "put/driver/DRIVER.md": driver }
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(join(outside, "m", name, ".."), { recursive: true })
      writeFileSync(join(outside, "m", name), text)
    }
    world = await openDaemonWorld(`manifests: [${join(outside, "m")}]\n`)
    agent = await world.as()
    person = await world.as({ agent: false, roles: ["caller", "approver"] })
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
    removeFolder(outside)
  })
  const put = (ask: Ask, more: object = {}, headers = {}) =>
    ask("POST", "/v1/calls", { tool: "shelf.put", input: {}, workspace: world.workspace, ...more }, headers)
  const receipts = (call: unknown) =>
    readReceipts(world.data, { call: String(call) }).map(({ action: what, metadata }) => [what, metadata?.["fired"]])

  it("are told when what it did is committed: not by a plan, not by what is held or denied, once by an approval", async () => {
    const planned = await put(person, { plan: true }, { "caisson-approved": "yes" })
    expect(planned).toMatchObject({ status: 200 })
    expect(receipts(planned.body["call"])).toEqual([["tool.invoked", undefined]])
    const denied = await put(agent)
    expect(denied).toMatchObject({ status: 428 })
    const id = String(denied.body["call"])
    expect((await person("POST", `/v1/approvals/${id}`, { decision: "deny", reason: "not on a Friday" })).status).toBe(
      200,
    )
    expect(receipts(id)).toEqual([
      ["tool.invoked", undefined],
      ["approval.decided", undefined],
    ])
    expect(readReceipts(world.data, { call: id }).at(-1)?.metadata).toMatchObject({
      decision: { answer: "deny", reason: "not on a Friday" },
    })
    const held = await put(agent)
    expect((await person("POST", `/v1/approvals/${held.body["call"]}`, { decision: "approve" })).status).toBe(200)
    expect(receipts(held.body["call"])).toEqual([
      ["tool.invoked", undefined],
      ["approval.decided", ["shelf.filled"]],
    ])
    const heard: string[] = []
    const made = await world.daemon.host.call(
      { tool: "shelf.put", input: {}, workspace: world.workspace },
      { approved: true, onEvent: ({ type }) => heard.push(type) },
    )
    expect(made).toMatchObject({ ok: true })
    expect(receipts(made.call)).toEqual([["tool.invoked", ["shelf.filled"]]])
    expect(heard.slice(-2)).toEqual(["fired", "settled"])
  })

  it("are denied from the command line with a reason that the receipt has", async () => {
    const held = await put(agent)
    const id = String(held.body["call"])
    const ran = await caisson(["approvals", "deny", id, "--reason", "a second thought"], {
      env: { CAISSON_DATA: world.data },
    })
    expect(ran.code).toBe(0)
    expect(readReceipts(world.data, { call: id }).at(-1)?.metadata).toMatchObject({
      decision: { answer: "deny", reason: "a second thought" },
    })
  })
})
