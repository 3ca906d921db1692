import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { processCaller } from "../../../src/host/access/caller.ts"
import { hostLimits } from "../../../src/host/limits.ts"
import { admitted, type Place, toolOf, value, type World, worldOf } from "./values.ts"

const made: Place[] = []
const place = (world: World = {}): Place => {
  const one = worldOf(world)
  made.push(one)
  return one
}
afterEach(() => {
  for (const { folder } of made.splice(0)) rmSync(folder, { recursive: true, force: true })
})

describe("admit", () => {
  it("takes a call that fits the contract and freezes a copy of its input", () => {
    const input = { text: "hello" }
    const call = value(admitted(place(), { input }))
    input.text = "changed"
    expect(call.input).toEqual({ text: "hello" })
    expect(Object.isFrozen(call.input)).toBe(true)
    expect(call).toMatchObject({ user: "alice", plan: false })
  })

  it("finds a tool by id and by id@major, and no other major", () => {
    expect(admitted(place(), { tool: "notes.append@1" }).ok).toBe(true)
    expect(admitted(place(), { tool: "notes.append@2" })).toMatchObject({
      code: "not_found",
      message: expect.stringContaining("notes.append@1"),
    })
  })

  it("names the nearest tool for a misspelt one", () => {
    expect(admitted(place(), { tool: "notes.apend" })).toMatchObject({
      code: "not_found",
      message: expect.stringContaining("did you mean notes.append"),
    })
  })

  it("says that a manifest is invalid when the tool's own did not load", () => {
    const failed = [
      {
        file: "/m/broken-tool/TOOL.md",
        kind: "tool" as const,
        claims: { id: "some.tool", tools: [] },
        diagnostics: [
          {
            severity: "error" as const,
            rule: "r",
            file: "/m/broken-tool/TOOL.md",
            path: "inputs",
            message: "is missing",
            fix: "add it",
          },
        ],
      },
    ]
    for (const tool of ["broken.tool", "some.tool", "some.tool@1"])
      expect(admitted(place({ registry: { failed } }), { tool })).toMatchObject({
        code: "manifest_invalid",
        message: expect.stringContaining("inputs: is missing"),
        hint: "add it",
      })
  })

  it.each([
    ["a missing input", {}, "text"],
    ["an input of the wrong type", { text: 5 }, "text"],
    ["an unknown input", { text: "a", colour: "red" }, "colour"],
    ["a path that leaves the workspace", { text: "a", file: "../x" }, "input.file"],
  ])("refuses %s and names the field", (_what, input, field) => {
    expect(admitted(place(), { input })).toMatchObject({ ok: false, code: "input_invalid", details: { field } })
  })

  it("names every problem of an input, the key that was meant, and shows an input that would do", () => {
    const refused = admitted(place(), { input: { txt: "a", fille: "b", colour: "c" } })
    expect(refused).toMatchObject({
      code: "input_invalid",
      message:
        "input `text` is missing; `txt` is not a known property; did you mean `text`?; `fille` is not a known property; did you mean `file`?; `colour` is not a known property; known are `text`, `file`",
      hint: 'pass, for example, {"text":"…"}',
      details: { errors: [{ path: "text" }, { path: "txt" }, { path: "fille" }, { path: "colour" }] },
    })
    const tool = toolOf({ examples: [{ name: "one", input: { text: "buy milk" } }] })
    expect(admitted(place({ tool }), { input: {} })).toMatchObject({ hint: 'pass, for example, {"text":"buy milk"}' })
  })

  it.each([
    [{ plann: true }, "plann", "did you mean `plan`?"],
    [{ user: "bob" }, "user", "is not known"],
    [{ approve: true }, "approve", "is not known"],
    [{ secrets: {} }, "secrets", "is not known"],
  ])("refuses a request with a key that it does not know: %j", (more, field, said) => {
    expect(admitted(place(), more as never)).toMatchObject({
      code: "input_invalid",
      message: expect.stringContaining(said),
      hint: expect.stringContaining("`plan`"),
      details: { field },
    })
  })

  it("refuses a plan that is neither true nor false", () => {
    const refused = admitted(place(), { plan: "yes" } as never)
    expect(refused).toMatchObject({ code: "input_invalid", details: { field: "plan" } })
  })

  it("never repeats a value of the input in its message", () => {
    const refused = admitted(place(), { input: { text: "a", file: "/secret-value" } })
    expect(JSON.stringify(refused)).not.toContain("secret-value")
  })

  it.each([
    ["a list", [1]],
    ["a text", "x"],
    ["null", null],
  ])("refuses %s as the input", (_what, input) => {
    expect(admitted(place(), { input: input as never })).toMatchObject({
      code: input === null ? "input_invalid" : "input_invalid",
    })
  })

  it("validates the context without the host's own keys", () => {
    const tool = toolOf({
      contextSchema: {
        type: "object",
        properties: { tenant: { type: "string" } },
        required: ["tenant"],
        additionalProperties: false,
      },
    })
    const call = value(
      admitted(place({ tool }), { context: { tenant: "t1", pinnedProvider: "scribe", regionConstraint: "eu" } }),
    )
    expect(call).toMatchObject({ context: { tenant: "t1" }, pin: "scribe", regions: ["eu"] })
    expect(admitted(place({ tool }), { context: {} })).toMatchObject({
      code: "input_invalid",
      details: { field: "tenant" },
    })
    expect(admitted(place({ tool }), { context: { tenant: "t1", pinnedProvider: 5 } })).toMatchObject({
      code: "input_invalid",
    })
  })

  it("refuses two different pins", () => {
    expect(admitted(place(), { driver: "a", context: { pinnedProvider: "b" } })).toMatchObject({
      code: "input_invalid",
    })
    expect(value(admitted(place(), { driver: "a", context: { pinnedProvider: "a" } })).pin).toBe("a")
  })

  it.each([
    ["one byte below", -1, true],
    ["at", 0, true],
    ["one byte above", 1, false],
  ])("takes a context %s its limit: %s → %s", (_where, more, ok) => {
    const around = JSON.stringify({ pad: "" }).length
    const context = { pad: "x".repeat(hostLimits.contextBytes.value - around + more) }
    expect(admitted(place(), { context }).ok).toBe(ok)
  })

  it.each([
    ["one byte below", -1, true],
    ["at", 0, true],
    ["one byte above", 1, false],
  ])("takes an input %s its limit: %s → %s", (_where, more, ok) => {
    const around = JSON.stringify({ text: "" }).length
    const input = { text: "x".repeat(hostLimits.inputBytes.value - around + more) }
    expect(admitted(place(), { input }).ok).toBe(ok)
  })

  it("refuses a tool that is no text", () => {
    expect(admitted(place(), { tool: 5 as never })).toMatchObject({ code: "input_invalid", details: { field: "tool" } })
  })

  it.each(["workspace", "driver"])("refuses a %s that is no text", (field) => {
    expect(admitted(place(), { [field]: 7 as never })).toMatchObject({ code: "input_invalid", details: { field } })
  })

  it.each(["tool", "workspace", "driver"])(
    "refuses a %s so long that none is called so, and does not repeat it",
    (field) => {
      const refused = admitted(place(), { [field]: "x".repeat(4_097) })
      expect(refused).toMatchObject({ code: "input_invalid", details: { field, limit: 4_096 } })
      expect(JSON.stringify(refused).length).toBeLessThan(400)
      expect(admitted(place(), { [field]: "x".repeat(4_096) })).not.toMatchObject({ details: { limit: 4_096 } })
    },
  )

  it("refuses what could not be read as JSON, in the caller's own words", () => {
    expect(admitted(place(), { unreadable: "stdin is not JSON" })).toMatchObject({
      code: "input_invalid",
      message: "stdin is not JSON",
    })
  })

  it("refuses null for an input, and takes none as an empty one", () => {
    const tool = toolOf({ inputs: { type: "object" } })
    expect(admitted(place({ tool }), { input: null })).toMatchObject({
      code: "input_invalid",
      message: "the input is not an object",
    })
    expect(value(admitted(place({ tool }), { input: undefined as never })).input).toEqual({})
  })

  it("refuses a user that is no id", () => {
    expect(admitted(place(), { caller: processCaller("../root") })).toMatchObject({
      code: "input_invalid",
      details: { field: "user" },
    })
  })
})

describe("the workspace of a call", () => {
  it("is the real folder behind a link", () => {
    const here = place()
    symlinkSync(here.workspace, join(here.folder, "link"))
    expect(value(admitted(here, { workspace: join(here.folder, "link") })).workspace).toBe(here.workspace)
  })

  it("must be a folder that exists", () => {
    const here = place()
    writeFileSync(join(here.folder, "file"), "")
    expect(admitted(here, { workspace: join(here.folder, "file") })).toMatchObject({ code: "not_found" })
    expect(admitted(here, { workspace: join(here.folder, "none") })).toMatchObject({ code: "not_found" })
  })

  it("must be open to this user", ({ skip }) => {
    if (process.getuid?.() === 0) skip("root may read everything")
    const here = place()
    chmodSync(here.workspace, 0o000)
    const result = admitted(here, {})
    chmodSync(here.workspace, 0o700)
    expect(result).toMatchObject({ code: "not_found", message: expect.stringContaining("closed to this user") })
  })

  it("may neither hold the data folder nor lie in it, also through a link", () => {
    const here = place()
    symlinkSync(here.folder, join(here.workspace, "up"))
    for (const workspace of [here.folder, here.core.data, join(here.core.data, "homes"), join(here.workspace, "up")]) {
      expect(admitted(here, { workspace }), workspace).toMatchObject({ code: "policy_violation" })
    }
  })

  it("may not hold the config", () => {
    const here = place({ config: {} })
    const core = { ...here.core, config: { ...here.core.config, file: join(here.workspace, "caisson.yaml") } }
    expect(admitted({ ...here, core })).toMatchObject({ code: "policy_violation" })
  })

  it("must lie in one of the operator's folders where they are named", () => {
    const here = place()
    const limited = (root: string): Place => ({
      ...here,
      core: { ...here.core, config: { ...here.core.config, workspaces: [root] } },
    })
    mkdirSync(join(here.folder, "wo"))
    expect(admitted(limited(here.workspace)).ok).toBe(true)
    expect(admitted(limited(join(here.folder, "wo")))).toMatchObject({ code: "unauthorised" })
  })
})
