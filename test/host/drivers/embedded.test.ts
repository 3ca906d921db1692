/** Builtins of a program that embeds the host, called through a host of their own; none of it needs a sandbox. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, it } from "vitest"
import { createHost, defineDriver, defineTool, readReceipts } from "../../../src/host/index.ts"
import type { BuiltinFunction, Envelope, Host } from "../../../src/host/index.ts"

let folder: string
let host: Host
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-embedded-")))
  mkdirSync(join(folder, "work"))
})
afterEach(async () => {
  await host.close()
  rmSync(folder, { recursive: true, force: true })
})

const tool = defineTool({
  id: "own.upper",
  description: "d",
  inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  outputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  timeoutMs: 60_000,
})
const driver = (metadata: Record<string, unknown> = {}): ReturnType<typeof defineDriver> =>
  defineDriver({
    id: "own-builtin",
    name: "B",
    description: "d",
    kind: "builtin",
    implements: [{ tool: "own.upper", version: "^1.0.0", metadata }],
  })
const call = async (
  builtins: Readonly<Record<string, BuiltinFunction>>,
  handle = driver(),
  signal?: AbortSignal,
): Promise<Envelope> => {
  host = await createHost({ data: join(folder, "data"), manifests: [tool, handle], builtins })
  const request = { tool: "own.upper", input: { text: "a" }, workspace: join(folder, "work") }
  return host.call(request, signal === undefined ? {} : { signal })
}
const upper: BuiltinFunction = ({ input }) => ({ text: String(input["text"]).toUpperCase() })

it("a function that the program handed over serves a tool, and envelope and receipt say that it ran unsealed", async () => {
  const envelope = await call({ "own.upper": upper })
  expect(envelope).toMatchObject({ ok: true, value: { text: "A" }, effects: [], driver: "own-builtin@1" })
  expect(envelope.notes).toEqual([expect.stringContaining("unsealed") as string])
  const [receipt] = readReceipts(join(folder, "data"), { call: envelope.call })
  expect(JSON.stringify(receipt)).toContain('"sealed":false')
})
it("is found by the name that its driver has for it", async () => {
  expect(await call({ shout: upper }, driver({ builtin: { host_id: "shout" } }))).toMatchObject({ ok: true })
})
it.each([
  ["another name", { other: upper }],
  ["none", {}],
])("a driver whose function was not handed over is not available: %s", async (_, builtins) => {
  expect(await call(builtins)).toMatchObject({
    ok: false,
    error: { code: "tool_unavailable", message: expect.stringContaining("own.upper") as string },
  })
})
it.each<[string, BuiltinFunction, object]>([
  [
    "throws",
    () => Promise.reject(new RangeError("not today")),
    { code: "upstream_error", details: { exception: "RangeError" } },
  ],
  ["returns what is no JSON", () => ({ text: () => 1 }), { code: "output_parse_failed" }],
  ["returns what the contract does not have", () => ({ other: 1 }), { code: "output_invalid" }],
])("one that %s fails its call and nothing else", async (_, fn, error) => {
  expect(await call({ "own.upper": fn })).toMatchObject({ ok: false, error })
})
it("one that is cancelled hears it, and is not waited for", async () => {
  const cancel = new AbortController()
  let heard = false
  const envelope = await call(
    {
      "own.upper": ({ signal }) => {
        signal.addEventListener("abort", () => (heard = true))
        cancel.abort()
        return new Promise(() => undefined)
      },
    },
    driver(),
    cancel.signal,
  )
  expect(envelope).toMatchObject({ ok: false, error: { code: "cancelled" } })
  expect(heard).toBe(true)
})
it("gets a copy of its input, and cannot change what the host has", async () => {
  const envelope = await call({
    "own.upper": ({ input }) => {
      Object.assign(input, { text: 7 })
      return { text: "ok" }
    },
  })
  expect(envelope).toMatchObject({ ok: true, value: { text: "ok" } })
})
it.each([[{ "own.upper": 7 }], [{ "a b": upper }], [7], [{ "": upper }]])(
  "createHost refuses %j as builtins",
  async (odd) => {
    await expect(createHost({ data: join(folder, "data"), builtins: odd as never })).rejects.toMatchObject({
      code: "input_invalid",
    })
    host = await createHost({ data: join(folder, "data") })
  },
)
