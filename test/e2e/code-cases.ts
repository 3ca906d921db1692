/** What a driver that is composed of code (AIP-26) may do and may not, the same on each backend. */
import { cpSync, readFileSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { readReceipts } from "../../src/host/index.ts"
import type { Envelope } from "../../src/host/types.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { digestOfFolder, openFolder, openWorld, type World } from "./host-world.ts"

const fixtures = join(import.meta.dirname, "../../fixtures/code")

/** `config`: what the backend needs of it. */
export const codeSuite = (backend: "namespace" | "docker", config: () => string): void => {
  let manifests: string
  let world: World
  let server: Server
  beforeAll(async () => {
    manifests = openFolder()
    cpSync(fixtures, manifests, { recursive: true })
    server = createServer((_request, response) => void response.end("ok"))
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const { port } = server.address() as AddressInfo
    const names = ["declared", "another", "third", "other"].map((name) => `${name}.test: "127.0.0.1:${port}"`)
    world = await openWorld(`${config()}egress: { services: { ${names.join(", ")} } }\n`, {
      manifests: [manifests],
      backend,
    })
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
    server.close()
    removeFolder(manifests)
  })
  const notes = (verb: string, more: object = {}, driver?: string): Promise<Envelope> =>
    world.call("code.notes", { verb, ...more }, driver === undefined ? {} : { driver })
  const saidBy = (envelope: Envelope): string =>
    envelope.ok ? (envelope.value as { said: string }).said : envelope.error.message
  const undone = async (work: () => Promise<Envelope>): Promise<Envelope> => {
    const before = digestOfFolder(world.workspace)
    const envelope = await work()
    expect(digestOfFolder(world.workspace)).toBe(before)
    return envelope
  }

  it("a CODE.md that a tool names serves it by default, and the receipt has the bundle's digest", async () => {
    const envelope = await notes("write", { path: "notes/node.txt", text: "hello" })
    expect(envelope).toMatchObject({
      ok: true,
      driver: "notes-code@1",
      value: { said: "node: wrote notes/node.txt" },
      effects: [{ kind: "create", path: "notes/node.txt", declared: true, committed: true }],
    })
    expect(readFileSync(join(world.workspace, "notes/node.txt"), "utf8")).toBe("hello")
    expect(JSON.stringify(readReceipts(world.data, { call: envelope.call }))).toMatch(/"bundle":"sha256:[0-9a-f]{64}"/)
  })
  it("sees its bundle and nothing of the folder that it was taken from, nor of the host", async () => {
    const said = JSON.parse(saidBy(await notes("look", { text: manifests }))) as {
      bundle: string[]
      host: boolean
      env: string[]
    }
    expect(said).toMatchObject({ bundle: ["notes.ts"], host: false })
    expect(said.env.filter((name) => /TOKEN|SECRET|VITEST|CAISSON/.test(name))).toEqual(["CAISSON_OPERATION_KEY"])
  })
  it("has an undeclared write undone, and cannot write to its bundle", async () => {
    expect(await undone(() => notes("write", { path: "stray.txt", text: "x" }))).toMatchObject({
      ok: false,
      error: { code: "undeclared_write" },
    })
    expect(await undone(() => notes("keep"))).toMatchObject({ ok: false, error: { details: { exception: "Error" } } })
  })
  it("reaches the hosts that its CODE.md declares, and no other", async () => {
    expect(saidBy(await notes("dial", { text: "http://declared.test/" }))).toBe("node: 200")
    const denied = await notes("dial", { text: "http://other.test/" })
    expect(denied.denied).toMatchObject([{ target: expect.stringContaining("other.test") as string }])
  })
  it("fails by what it throws, and commits nothing where it crashes", async () => {
    expect(await undone(() => notes("throw", { text: "x" }))).toMatchObject({
      ok: false,
      error: { code: "upstream_error", details: { exception: "RangeError" } },
    })
    expect(await undone(() => notes("crash"))).toMatchObject({ ok: false, error: { code: "upstream_error" } })
  })
  it("a driver of Python is put together of an inline file and of what a CODE.md shares", async () => {
    expect(saidBy(await notes("greet", { text: "Ada" }, "notes-py"))).toBe("hello Ada")
    expect(await notes("write", { path: "notes/py.txt", text: "x" }, "notes-py")).toMatchObject({
      ok: true,
      value: { said: "python: wrote notes/py.txt" },
    })
  })
  it("gets of the hosts of both, driver and CODE.md, those that both declare", async () => {
    expect(saidBy(await notes("dial", { text: "http://declared.test/" }, "notes-py"))).toBe("python: 200")
    for (const host of ["another.test", "third.test"])
      expect((await notes("dial", { text: `http://${host}/` }, "notes-py")).denied).toMatchObject([
        { target: expect.stringContaining(host) as string },
      ])
  })
  it("a later source stands in the place of an earlier one", async () => {
    expect(saidBy(await notes("greet", { text: "Ada" }, "notes-layered"))).toBe("good day, Ada")
  })
  it("a file that changed is in the next call", async () => {
    const file = join(manifests, "shared/greeting/lib/words.py")
    writeFileSync(file, 'def greet(name):\n    return "good evening " + name\n')
    expect(saidBy(await notes("greet", { text: "Ada" }, "notes-py"))).toBe("good evening Ada")
  })
  it("what this host does not fetch never serves, by name", async () => {
    const listed = (await world.host.drivers()).find(({ contract }) => contract.id === "notes-fetched")
    expect(listed?.availability).toMatchObject({
      available: false,
      reason: expect.stringContaining("fetches no code from GitHub") as string,
    })
  })
}
