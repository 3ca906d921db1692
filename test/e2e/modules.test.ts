/** Functions of real modules, run by the shims in a real sandbox: what they return, throw, stream and try. */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { createModuleRunner, moduleInFolder } from "../../src/host/call/running/outside/run-in-module.ts"
import type { ModuleAnswer, RunInModule } from "../../src/host/drivers/runner/run-in-module.ts"
import { defaultConfig } from "../../src/host/config/types.ts"
import type { RunnerRequest } from "../../src/host/drivers/runner/request.ts"
import type { JsonValue } from "../../src/manifest/types.ts"
import type { SandboxBackend } from "../../src/sandbox/backend.ts"
import { createNamespaceBackend } from "../../src/sandbox/namespace/backend.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { temporaryFolder } from "../support/sealed.ts"

const fixtures = join(import.meta.dirname, "../../fixtures/modules")
let folder = ""
let backend: SandboxBackend
let run: RunInModule
beforeAll(() => {
  folder = temporaryFolder("modules")
  for (const name of ["data", "data/tmp"]) mkdirSync(join(folder, name))
  backend = createNamespaceBackend({ data: join(folder, "data") })
  run = createModuleRunner(join(folder, "data"), () => Promise.resolve(backend), new AbortController().signal)
})
afterAll(async () => {
  await backend[Symbol.asyncDispose]()
  removeFolder(folder)
})

type Call = Partial<Omit<Extract<RunnerRequest, { do: "call" }>, "do" | "module">> & {
  readonly name?: string
  readonly style?: "esm" | "cjs"
  readonly entry?: string
  readonly timeoutMs?: number
}
const ask = async (
  file: string,
  { ref = ["default"], args = [], name, style, entry, timeoutMs, ...more }: Call,
  signal?: AbortSignal,
): Promise<ModuleAnswer & { readonly events: readonly JsonValue[] }> => {
  const found = moduleInFolder(defaultConfig, join(fixtures, file))
  if (!found.ok) throw new Error(found.reason)
  const events: JsonValue[] = []
  const module = {
    ...(name === undefined ? found.module : { name, from: "/opt/driver", ...(entry === undefined ? {} : { entry }) }),
    ...(style === undefined ? {} : { style }),
  } as typeof found.module
  const answer = await run(
    {
      ...found,
      request: { do: "call", module, ref, args, ...more },
      onEvent: (value) => events.push(value),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    },
    signal,
  )
  return { ...answer, events }
}
const value = async (...asked: Parameters<typeof ask>): Promise<JsonValue> => {
  const answer = await ask(...asked)
  if (!answer.ok) throw new Error(JSON.stringify(answer))
  return answer.value
}

describe("a value without a form in JSON", () => {
  it.each([
    ["map", { a: 1 }],
    ["set", { all: [1, 2] }],
    ["methods", { text: "kept" }],
  ])("has the plain form of its class: %s", async (name, form) => {
    expect(await value("forms.mjs", { ref: [name] })).toEqual(form)
  })
  it.each(["numbered", "nan", "code", "listed"])("fails the call instead of being lost: %s", async (name) => {
    const answer = await ask("forms.mjs", { ref: [name] })
    expect(answer.ok).toBe(false)
    expect(JSON.stringify(answer)).toContain("has no form in JSON")
  })
})

describe("a function of a module", () => {
  it.each([
    ["the default of TypeScript", "tool.ts", { args: [{ name: "x" }] }, { text: "hello x" }],
    ["a name", "tool.ts", { ref: ["greet"], args: [{ name: "x" }] }, { text: "hello x" }],
    ["a dotted name, positions, a promise", "tool.ts", { ref: ["texts", "upper"], args: ["a", "!"] }, "A!"],
    [
      "a client made with options",
      "tool.ts",
      { ref: ["Client", "texts", "join"], args: [{ parts: ["a", "b"] }], client: { with: { separator: "+" } } },
      "a+b",
    ],
    ["a client without any", "tool.ts", { ref: ["Client", "texts", "join"], args: [{ parts: ["a", "b"] }] }, "a-b"],
    ["a static method", "tool.ts", { ref: ["Client", "create"] }, "static"],
    [
      "values that JSON does not have",
      "tool.ts",
      { ref: ["odd"] },
      { bytes: "AQID", big: 7, at: "1970-01-01T00:00:00.000Z" },
    ],
    ["CommonJS", "old.cjs", { ref: ["plus"], args: [1, 2] }, 3],
    ["the default of CommonJS", "old.cjs", {}, "the default"],
    ["a package as a module imports it", "tool.ts", { name: "dual", ref: ["which"], style: "esm" }, "esm"],
    ["a package as it is required", "tool.ts", { name: "dual", ref: ["which"], style: "cjs" }, "cjs"],
    ["a file of a package", "tool.ts", { name: "dual", entry: "inner.mjs", ref: ["inner"], style: "esm" }, "inner"],
    ["Python's main", "tool.py", { args: [{ name: "x" }] }, { text: "hello x" }],
    ["Python by names", "tool.py", { ref: ["greet"], named: { name: "x", mark: "?" } }, { text: "hello x?" }],
    ["Python by positions, static", "tool.py", { ref: ["texts", "upper"], args: ["a", "!"] }, "A!"],
    [
      "a Python client",
      "tool.py",
      { ref: ["Client", "texts", "join"], args: [["a", "b"]], client: { with: { separator: "+" } } },
      "a+b",
    ],
    ["a coroutine", "tool.py", { ref: ["later"], args: ["x"] }, "x"],
    [
      "Python values that JSON does not have",
      "tool.py",
      { ref: ["odd"] },
      { bytes: "AQID", made: { name: "x", at: "1970-01-01" }, set: [1] },
    ],
  ] as [string, string, Call, JsonValue][])("is called: %s", async (_what, file, call, expected) => {
    expect(await value(file, call)).toEqual(expected)
  })

  it.each([
    ["tool.ts", "count", { last: 3 }],
    ["tool.py", "count", null],
    ["tool.py", "plain_count", { last: 3 }],
  ])("streams what it yields: %s %s", async (file, name, last) => {
    const args = file === "tool.ts" ? [{ to: 3 }] : [3]
    const answer = await ask(file, { ref: [name], args, streaming: "async-iterator" })
    expect(answer).toMatchObject({ ok: true, streamed: true, value: last, events: [{ n: 1 }, { n: 2 }, { n: 3 }] })
  })
  it.each(["tool.ts", "tool.py"])("streams what it tells a callback: %s", async (file) => {
    const answer = await ask(file, { ref: ["told"], args: [3], streaming: "callback" })
    expect(answer).toMatchObject({ ok: true, value: "told", events: [1, 2, 3] })
  })

  it.each([
    ["tool.ts", ["Refused", "Error"]],
    ["tool.py", ["Gone", "Refused", "ValueError"]],
  ])("reports what it throws by the names of its classes: %s", async (file, names) => {
    const answer = await ask(file, { ref: ["refuse"] })
    expect(answer).toMatchObject({
      ok: false,
      kind: "thrown",
      thrown: { names: expect.arrayContaining(names), message: "not today", status: 401, where: "call" },
    })
  })
  it.each([
    ["answered", 401, 401],
    ["coded", 401, undefined],
    ["coded", 429, undefined],
    ["left", 403, undefined],
  ])("takes for an answer's status what is one, not any `code` of Python's: %s %i", async (name, code, status) => {
    const answer = await ask("tool.py", { ref: [name], args: [code] })
    expect(answer).toMatchObject({ ok: false, kind: "thrown" })
    expect("thrown" in answer && answer.thrown.status).toBe(status)
  })
  it.each([
    ["tool.ts", "later", { thrown: { names: ["RangeError", "Error"], where: "call" } }],
    ["tool.ts", "cycle", { thrown: { names: ["TypeError", "Error"], where: "result" } }],
    ["tool.py", "strange", { thrown: { where: "result" } }],
    ["tool.ts", "nowhere", { thrown: { where: "resolve" } }],
    ["tool.py", "nowhere", { thrown: { where: "resolve" } }],
    ["tool.ts", "crash", { kind: "silent" }],
    ["tool.ts", "leave", { kind: "silent" }],
    ["tool.py", "leave", { kind: "silent" }],
    ["tool.ts", "never", { kind: "silent" }],
  ])("fails by its kind: %s %s", async (file, name, expected) => {
    expect(await ask(file, { ref: [name] })).toMatchObject({ ok: false, ...expected })
  })
  it.each(["tool.ts", "tool.py"])("reports a result over the limit instead of sending it: %s", async (file) => {
    const answer = await ask(file, { ref: ["large"], args: [9 * 1024 * 1024] })
    expect(answer).toMatchObject({ ok: false, thrown: { names: ["ResultTooLarge"] } })
  })
  it("reports a module that cannot be loaded", async () => {
    expect(await ask("tool.ts", { name: "nothing-of-this-name", ref: ["x"] })).toMatchObject({
      kind: "thrown",
      thrown: { where: "load" },
    })
  })

  it("has no network, starts nothing and is ended in its time", async () => {
    expect(await value("tool.ts", { ref: ["dial"] })).not.toBe("connected")
    for (const file of ["tool.ts", "tool.py"]) expect(await ask(file, { ref: ["spawn"] })).toMatchObject({ ok: false })
    expect(await ask("tool.py", { ref: ["block"], timeoutMs: 500 })).toMatchObject({ kind: "ended" })
  })
  it("is ended when it is cancelled", async () => {
    const cancel = new AbortController()
    const asked = ask("tool.ts", { ref: ["untilAborted"], args: [{}], signals: [[0, "signal"]] }, cancel.signal)
    cancel.abort()
    expect(await asked).toMatchObject({ ok: false, kind: "ended", message: "it was cancelled" })
  })
})

describe("a module that writes to the private descriptor", () => {
  it.each(["garbage", "forge", "half", "close", "large"])(
    "is answered by a fault, in both languages: %s",
    async (act) => {
      for (const file of ["tool.ts", "tool.py"]) {
        const answer = await ask(file, { ref: ["hostile"], args: [act] })
        expect(answer, file).toMatchObject({ ok: false, kind: expect.stringMatching(/protocol|silent|limit/) })
      }
    },
  )
  it("is not heard after it flooded it with frames of its own", async () => {
    expect(await ask("tool.ts", { ref: ["hostile"], args: ["flood"] })).toMatchObject({ ok: false, kind: "protocol" })
  })
})

describe("looking into a module", () => {
  const look = async (file: string, request: object): Promise<JsonValue> => {
    const found = moduleInFolder(defaultConfig, join(fixtures, file))
    if (!found.ok) throw new Error(found.reason)
    const answer = await run({ ...found, request: { module: found.module, ...request } as RunnerRequest })
    if (!answer.ok) throw new Error(JSON.stringify(answer))
    return answer.value
  }
  it.each(["tool.ts", "tool.py"])("tells which functions are there without calling any: %s", async (file) => {
    const refs = [
      ["greet"],
      ["texts", "upper"],
      ["Client", "texts", "join"],
      ["nowhere"],
      ["texts", "nowhere"],
      ["Refused", "x"],
    ]
    expect(await look(file, { do: "resolve", refs })).toEqual([
      null,
      null,
      null,
      expect.stringContaining("nowhere"),
      file === "tool.ts" ? expect.stringContaining("texts.nowhere") : null,
      null,
    ])
  })
  it("tells what an object holds", async () => {
    expect(await look("tool.ts", { do: "inspect", ref: ["texts"] })).toEqual({
      type: "object",
      keys: { upper: "function" },
    })
    expect(await look("tool.py", { do: "inspect", ref: ["texts"] })).toMatchObject({ keys: { upper: "function" } })
  })
})
