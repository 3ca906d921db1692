/** What functions of a driver's own may do and may not, in real sandboxes, the same on each backend. */
import { createHash } from "node:crypto"
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { defineDriver, defineTool } from "../../src/define/index.ts"
import { processCaller, readReceipts } from "../../src/host/index.ts"
import type { Envelope } from "../../src/host/types.ts"
import { temporaryFolder } from "../support/sealed.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { digestOfFolder, openWorld, type World } from "./host-world.ts"

const fixtures = join(import.meta.dirname, "../../fixtures/own-functions")
const notes = defineTool({
  id: "own.notes",
  description: "Does what a verb says; may write below notes/ and nowhere else.",
  inputSchema: {
    type: "object",
    properties: { verb: { type: "string" }, path: { type: "string" }, text: { type: "string" } },
  },
  outputSchema: { type: "object", properties: { said: { type: "string" } }, required: ["said"] },
  contextSchema: { type: "object", properties: { tenant: { type: "string" } } },
  mutates: ["workspace:/notes/"],
  riskLevel: 1,
  timeoutMs: 60_000,
})
const driver = (id: string, module: string, name = "default", more: object = {}): ReturnType<typeof defineDriver> =>
  defineDriver(
    {
      id,
      name: "Own functions",
      description: "d",
      kind: "http",
      network: { egress: ["declared.test:80"] },
      implements: [{ tool: "own.notes", version: "^1.0.0" }],
      // The closures of this process are never called: those of the module are.
      execute: { "own.notes": async () => ({ said: "in the host's own process" }) },
      ...more,
    },
    { module, export: name },
  )
const module = join(fixtures, "notes.ts")
const manifests = [
  join(fixtures, "cli"),
  join(fixtures, "slow"),
  join(fixtures, "transforms"),
  notes,
  driver("own-notes", module),
  driver("own-secret", module, "default", { auth: { state: { env: ["OWN_KEY"] } } }),
  driver("own-broken", module, "broken"),
  driver("own-empty", module, "empty"),
  driver("own-odd", module, "odd"),
  driver("own-none", module, "none"),
  driver("own-unloadable", join(fixtures, "unloadable.ts")),
]

/** `config`: what the backend needs of it. */
export const ownFunctionsSuite = (backend: "namespace" | "docker", config: () => string): void => {
  const folder = temporaryFolder("own-functions")
  const changing = join(folder, "notes.ts")
  let world: World
  let server: Server
  beforeAll(async () => {
    server = createServer((_request, response) => void response.end("ok"))
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const { port } = server.address() as AddressInfo
    copyFileSync(module, changing)
    mkdirSync(join(folder, "helped"))
    copyFileSync(module, join(folder, "helped", "notes.ts"))
    writeFileSync(join(folder, "helped", "driver.ts"), 'export { default } from "./notes.ts"\n')
    // The sandbox's user is not this one.
    chmodSync(folder, 0o755)
    const services = `egress: { services: { declared.test: "127.0.0.1:${port}", other.test: "127.0.0.1:${port}" } }\n`
    world = await openWorld(`${config()}${services}`, {
      manifests: [
        ...manifests,
        driver("own-changing", changing),
        driver("own-helped", join(folder, "helped", "driver.ts")),
      ],
      backend,
    })
    mkdirSync(join(world.workspace, "notes"), { recursive: true })
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
    server.close()
    removeFolder(folder)
  })

  const call = (verb: string, more: object = {}, id = "own-notes"): Promise<Envelope> =>
    world.call("own.notes", { verb, ...more }, { driver: id })
  const undone = async (work: () => Promise<Envelope>): Promise<Envelope> => {
    const before = digestOfFolder(world.workspace)
    const envelope = await work()
    expect(digestOfFolder(world.workspace)).toBe(before)
    return envelope
  }

  describe("`execute` of a module that a definition names", () => {
    it("runs the call in its sandbox, commits what is declared, and is told in the receipt by its digest", async () => {
      const envelope = await call("write", { path: "notes/a.txt", text: "hello" })
      expect(envelope).toMatchObject({
        ok: true,
        value: { said: "wrote notes/a.txt by own-notes" },
        effects: [{ kind: "create", path: "notes/a.txt", declared: true, committed: true }],
      })
      expect(readFileSync(join(world.workspace, "notes/a.txt"), "utf8")).toBe("hello")
      const [receipt] = readReceipts(world.data, { call: envelope.call })
      expect(JSON.stringify(receipt)).toMatch(/"module":\{"digest":"sha256:[0-9a-f]{64}","functions":\["execute"\]\}/)
      expect(JSON.stringify(receipt)).not.toContain("hello")
    })
    it("is held by its manifest's word, and a contradiction is noted", async () => {
      const envelope = await call("context")
      expect(envelope.notes).toEqual([expect.stringContaining("`name: Another name`") as string])
    })
    it("gets its context and no secrets", async () => {
      const envelope = await world.host.call(
        {
          tool: "own.notes",
          input: { verb: "context" },
          workspace: world.workspace,
          context: { tenant: "a" },
          driver: "own-notes",
        },
        { caller: processCaller("alice"), approved: true },
      )
      expect(envelope).toMatchObject({ ok: true, value: { said: '[{"tenant":"a"},[]]' } })
    })
    it("gets the secret that its driver names, and no receipt has it", async () => {
      expect(await call("secret", {}, "own-secret")).toMatchObject({ ok: false })
      const canary = "tok_live-7c2e9d5b1f"
      await world.host.secrets.set("own-key", canary, { user: "alice", driver: "own-secret" })
      const said = createHash("sha256").update(canary).digest("hex")
      const envelope = await call("secret", {}, "own-secret")
      expect(envelope).toMatchObject({ ok: true, value: { said } })
      expect(JSON.stringify(readReceipts(world.data, { call: envelope.call }))).not.toContain(canary)
    })
    it("has an undeclared write undone", async () => {
      const envelope = await undone(() => call("write", { path: "stray.txt", text: "x" }))
      expect(envelope).toMatchObject({ ok: false, error: { code: "undeclared_write" } })
    })
    it("reaches a declared host and no other", async () => {
      expect(await call("dial", { text: "http://declared.test/" })).toMatchObject({ ok: true, value: { said: "200" } })
      const denied = await call("dial", { text: "http://other.test/" })
      expect(denied.denied).toMatchObject([{ target: expect.stringContaining("other.test") as string }])
    })
    it("sees nothing of the host", async () => {
      expect(await call("look", { text: import.meta.filename })).toMatchObject({
        ok: true,
        value: { said: expect.stringMatching(/,false,null\]$/) as string },
      })
    })
    it("fails by what it throws", async () => {
      expect(await call("throw", { text: "ada" })).toMatchObject({
        ok: false,
        error: { code: "upstream_error", retryable: true, details: { exception: "RangeError", status: 503 } },
      })
    })
    it("commits nothing where it crashes its process", async () => {
      expect(await undone(() => call("crash"))).toMatchObject({ ok: false, error: { code: "upstream_error" } })
    })
    it("is judged by the contract's output", async () => {
      expect(await call("odd")).toMatchObject({ ok: false, error: { code: "output_invalid" } })
    })
    it("hears the signal when it is cancelled", async () => {
      const cancel = new AbortController()
      let said = ""
      const envelope = await world.host.call(
        { tool: "own.notes", input: { verb: "wait" }, workspace: world.workspace, driver: "own-notes" },
        {
          caller: processCaller("alice"),
          approved: true,
          signal: cancel.signal,
          onEvent: (event) => {
            if (event.type !== "output") return
            said += Buffer.from(event.bytes).toString("utf8")
            if (said.includes("started")) cancel.abort()
          },
        },
      )
      expect(envelope).toMatchObject({ ok: false, error: { code: "cancelled" } })
      expect(said).toContain("stopped early true")
    })
  })

  describe("a driver whose module is not what it says is not available:", () => {
    it.each([
      ["other tools in `execute`", "own-broken", "execute_binding_mismatch", /own\.other/],
      ["no `execute`", "own-empty", "function_ref_unresolvable", /no `execute`/],
      ["no such export", "own-none", "function_ref_unresolvable", /no definition/],
      ["a function that nobody calls", "own-odd", "tool_unavailable", /buildRequest/],
      ["a module that cannot be loaded", "own-unloadable", "tool_unavailable", /cannot be loaded.*ENOENT/],
    ])("%s", async (_, id, code, reason) => {
      const listed = (await world.host.drivers()).find((each) => each.contract.id === id)
      expect(listed?.availability).toMatchObject({
        available: false,
        code,
        reason: expect.stringMatching(reason) as string,
      })
    })
    it("one that changed since it was registered", async () => {
      expect(await call("context", {}, "own-changing")).toMatchObject({ ok: true })
      writeFileSync(changing, `${readFileSync(changing, "utf8")}\n`)
      const refused = await call("context", {}, "own-changing")
      expect(refused).toMatchObject({ ok: false, error: { code: "pinned_provider_unavailable" } })
      expect(JSON.stringify(refused)).toContain("changed since it was registered")
    })
    it("one whose helper changed since it was registered", async () => {
      expect(await call("context", {}, "own-helped")).toMatchObject({ ok: true })
      writeFileSync(join(folder, "helped", "notes.ts"), `${readFileSync(module, "utf8")}\n`)
      const refused = await call("context", {}, "own-helped")
      expect(refused).toMatchObject({ ok: false, error: { code: "pinned_provider_unavailable" } })
      expect(JSON.stringify(refused)).toContain("a file that it names did")
    })
  })

  describe("a module beside its manifest", () => {
    const rows = async (text: string, id = "own-rows"): Promise<Envelope> => {
      writeFileSync(join(world.workspace, "rows.txt"), text)
      return world.call("own.rows", { path: "rows.txt" }, { driver: id })
    }
    it("reads the program's output", async () => {
      const envelope = await rows("a|b\nc|d\n")
      expect(envelope).toMatchObject({
        ok: true,
        value: [
          ["a", "b"],
          ["c", "d"],
        ],
      })
      expect(envelope.notes).toEqual([expect.stringContaining("`name: Rows by another name`") as string])
    })
    it.each([
      ["claims a code that a program may", "", "not_found", "nowhere.txt"],
      ["gives a code of its own", "stale\n", "own-rows:stale_rows", "rows.txt"],
      ["cannot claim a code that is the host's", "policy\n", "own-rows:policy_violation", "rows.txt"],
      ["fails the call where it throws", "throw\n", "output_parse_failed", "rows.txt"],
      ["fails the call where it gives no result", "odd\n", "output_parse_failed", "rows.txt"],
      ["reaches no host, whatever the driver may", "dial\n", "output_parse_failed", "rows.txt"],
      ["says that the login is gone", "signed out\n", "auth_required", "rows.txt"],
    ])("%s", async (_, text, code, path) => {
      writeFileSync(join(world.workspace, "rows.txt"), text)
      const envelope = await world.call("own.rows", { path }, { driver: "own-rows" })
      expect(envelope).toMatchObject({ ok: false, error: { code } })
    })
    it("has no more time than its call, and its program's time counts", async () => {
      const late = await rows("a|b\n", "own-slow")
      expect(late).toMatchObject({ ok: false, error: { code: "timeout", details: { limit: "wall" } } })
    })
    it("does not see the workspace", async () => {
      expect(await rows("peek\n")).toMatchObject({ ok: true, value: [["workspace", "false"]] })
    })
  })

  describe("transforms of a module beside its manifest", () => {
    const told = (words: string, id = "own-shout"): Promise<Envelope> =>
      world.call("own.shout", { words }, { driver: id })
    it("make of an input what the program gets, after the host's own", async () => {
      const envelope = await world.call("own.shout", { words: "Many Words", name: "Ada" }, { driver: "own-shout" })
      expect(envelope).toMatchObject({ ok: true, value: "-- many-words ADA\n" })
      const [receipt] = readReceipts(world.data, { call: envelope.call })
      expect(JSON.stringify(receipt)).toMatch(/"functions":\["transforms"\]/)
    })
    it("make of a contract's default what they make of a value", async () => {
      expect(await world.call("own.shout", {}, { driver: "own-shout" })).toMatchObject({
        ok: true,
        value: "-- by-default \n",
      })
    })
    it("see neither workspace nor network, and no secret", async () => {
      writeFileSync(join(world.workspace, "rows.txt"), "x")
      expect(await told("peek")).toMatchObject({ ok: true, value: "-- workspace false \n" })
      expect(await told("dial")).toMatchObject({
        ok: false,
        error: { code: "upstream_error", details: { exception: "TypeError" } },
      })
    })
    it.each(["throw", "nothing"])("that fail on %j end the call before anything is run", async (words) => {
      const envelope = await told(words)
      expect(envelope).toMatchObject({
        ok: false,
        error: { code: "upstream_error", details: { transforms: ["kebab"] } },
      })
      expect(!envelope.ok && envelope.error.message).toMatch(/nothing was run$/)
      expect(!envelope.ok && envelope.error.message).not.toContain(words === "throw" ? "bad throw" : "\u0000")
    })
    it("that the module does not have make the driver unavailable, by name", async () => {
      const listed = (await world.host.drivers()).find((each) => each.contract.id === "own-shout-missing")
      expect(listed?.availability).toMatchObject({
        available: false,
        code: "function_ref_unresolvable",
        reason: expect.stringContaining("transforms.absent") as string,
      })
    })
  })
}
