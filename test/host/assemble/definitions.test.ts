import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { createHost, defineDriver, defineTool } from "../../../src/host/index.ts"
import type { Host, HostOptions } from "../../../src/host/index.ts"
import { createRegistry } from "../../../src/host/registry/registry.ts"

let data: string
let host: Host | undefined
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), "caisson-defined-"))
})
afterEach(async () => {
  await host?.close()
  host = undefined
  rmSync(data, { recursive: true, force: true })
})

const open = async (manifests: NonNullable<HostOptions["manifests"]>): Promise<Host> => {
  host = await createHost({ data, manifests })
  return host
}
const echo = defineTool({ id: "echo.back", description: "d", inputSchema: { type: "object" }, outputSchema: {} })
const driver = {
  id: "echo-code",
  name: "Echo",
  description: "d",
  kind: "sdk" as const,
  policyTags: ["vetted"],
  implements: [{ tool: "echo.back", version: "^1.0.0" }],
}
const body = { "echo.back": async () => ({}) }
const availabilityOf = async (of: Host, id: string): Promise<unknown> =>
  (await of.drivers()).find((each) => each.contract.id === id)?.availability

describe("what the define functions return is registered", () => {
  it("beside folders, as tools and drivers like any other", async () => {
    const opened = await open([echo, defineDriver({ ...driver, execute: body }, { module: import.meta.url })])
    expect((await opened.tools()).find((each) => each.contract.id === "echo.back")).toMatchObject({
      drivers: ["echo-code@1"],
    })
    const listed = (await opened.drivers()).find((each) => each.contract.id === "echo-code")
    expect(listed?.contract.code).toMatchObject({
      module: import.meta.filename,
      digest: expect.stringMatching(/^sha256:/) as string,
    })
  })
  it("by its data alone: a copy that went through JSON is the same definition", async () => {
    const opened = await open([JSON.parse(JSON.stringify(echo)) as typeof echo])
    expect((await opened.tools()).some((each) => each.contract.id === "echo.back")).toBe(true)
  })
  it("through the same checks as files: what was changed by hand is refused as a file would be", async () => {
    const opened = await open([{ ...echo, front: { ...echo.front, code: "x" } }])
    expect((await opened.tools()).some((each) => each.contract.id === "echo.back")).toBe(false)
    expect(opened.diagnostics().map((each) => each.rule)).toContain("tool-removed-field")
  })
  it("and never takes over what a folder owns", async () => {
    const mine = defineTool({
      id: "json.query",
      description: "mine",
      inputSchema: { type: "object" },
      outputSchema: {},
    })
    const opened = await open([mine])
    const found = (await opened.tools()).find((each) => each.contract.id === "json.query")
    expect(found?.contract.description).not.toBe("mine")
    expect(opened.diagnostics().map((each) => each.rule)).toContain("duplicate-id")
  })
  it.each(["before", "behind"])(
    "and is not taken over by a folder that nobody vouches for, named %s it",
    async (place) => {
      const folder = join(data, "theirs")
      mkdirSync(folder)
      writeFileSync(
        join(folder, "TOOL.md"),
        "---\nname: E\nid: echo.back\ndescription: theirs\nversion: 1.0.0\ninputs: { type: object }\noutputs: {}\n---\n",
      )
      const opened = await open(place === "before" ? [folder, echo] : [echo, folder])
      const found = (await opened.tools()).find((each) => each.contract.id === "echo.back")
      expect(found?.contract.description).toBe("d")
      expect(opened.diagnostics().map((each) => each.rule)).toContain("duplicate-id")
    },
  )
  it("and two that claim one id are both refused", async () => {
    const other = defineTool({
      ...{ id: "echo.back", description: "other" },
      inputSchema: { type: "object" },
      outputSchema: {},
    })
    const opened = await open([echo, other])
    expect((await opened.tools()).some((each) => each.contract.id === "echo.back")).toBe(false)
  })
  it("and is vouched for by nobody, also where its module lies in a folder of the operator's", () => {
    const module = join(data, "driver.ts")
    writeFileSync(module, "export default {}")
    const defined = [echo, defineDriver({ ...driver, execute: body }, { module })]
    const registry = createRegistry({ dirs: [{ dir: data, trusted: true }], defined, mode: "compat" })
    expect(registry.driver("echo-code")).toMatchObject({ vouched: false, verifiedTags: [] })
  })
})

describe("a driver's functions", () => {
  it("that are closures without a module are refused, with the way to name it", async () => {
    const opened = await open([echo, defineDriver({ ...driver, execute: body })])
    expect((await opened.drivers()).some((each) => each.contract.id === "echo-code")).toBe(false)
    expect(opened.unloaded().find((each) => each.claims.id === "echo-code")?.availability).toMatchObject({
      code: "manifest_invalid",
      reason: expect.stringContaining("closures") as string,
      fix: expect.stringContaining("import.meta.url") as string,
    })
  })
  it.each([
    ["misses one of its tools", {}, /implements `echo.back`/],
    [
      "has one of another tool",
      { ...body, "echo.other": async () => ({}) },
      /`echo.other`, which it does not implement/,
    ],
  ])("refuse the driver as execute_binding_mismatch when `execute` %s", async (_, execute, reason) => {
    const opened = await open([echo, defineDriver({ ...driver, execute }, { module: import.meta.url })])
    expect(await availabilityOf(opened, "echo-code")).toMatchObject({
      available: false,
      code: "execute_binding_mismatch",
      reason: expect.stringMatching(reason) as string,
    })
  })
  it("may be keyed by an id's other spelling (C-35)", async () => {
    const execute = { "echo-back": async () => ({}) }
    const opened = await open([echo, defineDriver({ ...driver, execute }, { module: import.meta.url })])
    expect(await availabilityOf(opened, "echo-code")).not.toMatchObject({ code: "execute_binding_mismatch" })
  })
  it("in a module that is not there refuse the driver", async () => {
    const opened = await open([echo, defineDriver({ ...driver, execute: body }, { module: join(data, "none.ts") })])
    expect(opened.diagnostics().map((each) => each.rule)).toContain("unreadable")
  })
})

it.each([
  [7],
  [null],
  [{}],
  [{ doctype: "tool", file: "x", front: { a: () => 1 } }],
  [{ ...echo, code: { module: "x" } }],
])("createHost refuses %j as a manifest", async (odd) => {
  await expect(createHost({ data, manifests: [odd as never] })).rejects.toMatchObject({ code: "input_invalid" })
})
