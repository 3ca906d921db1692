/** What a driver of kind sdk may do and may not, the same on each backend. */
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { processCaller, readReceipts } from "../../src/host/index.ts"
import type { CallEvent } from "../../src/host/events.ts"
import type { Envelope } from "../../src/host/types.ts"
import { digestOfFolder, openWorld, type World } from "./host-world.ts"

const manifests = [join(import.meta.dirname, "../../fixtures/sdk")]

interface Observed {
  readonly envelope: Envelope
  readonly events: readonly CallEvent[]
}

/** `config`: what the backend needs of it. */
export const sdkSuite = (backend: "namespace" | "docker", config: () => string): void => {
  let world: World
  let server: Server
  beforeAll(async () => {
    server = createServer((_request, response) => void response.end("ok"))
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const { port } = server.address() as AddressInfo
    const services = `egress: { services: { declared.test: "127.0.0.1:${port}", other.test: "127.0.0.1:${port}" } }\n`
    world = await openWorld(`${config()}${services}`, { manifests, backend })
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
    server.close()
  })

  const notes = (driver: string, verb: string, more: object = {}): Promise<Envelope> =>
    world.call("sdk.notes", { verb, ...more }, { driver })
  /** A call whose workspace must stay byte for byte as it was. */
  const undone = async (driver: string, verb: string, more: object = {}): Promise<Envelope> => {
    const before = digestOfFolder(world.workspace)
    const envelope = await notes(driver, verb, more)
    expect(digestOfFolder(world.workspace)).toBe(before)
    return envelope
  }
  const observe = async (
    request: object,
    react: (event: CallEvent, cancel: () => void) => void = () => undefined,
  ): Promise<Observed> => {
    const events: CallEvent[] = []
    const cancel = new AbortController()
    const envelope = await world.host.call({ workspace: world.workspace, ...request } as never, {
      caller: processCaller("alice"),
      approved: true,
      signal: cancel.signal,
      onEvent: (event) => {
        events.push(event)
        react(event, () => cancel.abort())
      },
    })
    return { envelope, events }
  }

  for (const [driver, language] of [
    ["sdk-node", "node"],
    ["sdk-python", "python"],
  ] as const) {
    it(`${driver}: commits a declared write, and the receipt names package and function`, async () => {
      const path = `notes/${language}.txt`
      const envelope = await notes(driver, "write", { path, text: "hello" })
      expect(envelope).toMatchObject({
        ok: true,
        value: { said: `${language}: wrote ${path}` },
        effects: [{ kind: "create", path, declared: true, committed: true }],
      })
      expect(readFileSync(join(world.workspace, path), "utf8")).toBe("hello")
      const [receipt] = readReceipts(world.data, { call: envelope.call })
      expect(JSON.stringify(receipt)).toContain('"function_ref":"Notes.act"')
      expect(JSON.stringify(receipt)).not.toContain("hello")
    })
    it(`${driver}: undoes an undeclared write`, async () => {
      expect(await undone(driver, "write", { path: "stray.txt", text: "x" })).toMatchObject({
        ok: false,
        error: { code: "undeclared_write", hint: expect.not.stringContaining("fs.write") as string },
      })
    })
    it(`${driver}: reaches a declared host and no other`, async () => {
      expect(await notes(driver, "dial", { text: "http://declared.test/" })).toMatchObject({
        ok: true,
        value: { said: `${language}: 200` },
      })
      const denied = await notes(driver, "dial", { text: "http://other.test/" })
      expect(denied.denied).toMatchObject([{ target: expect.stringContaining("other.test") as string }])
    })
    it(`${driver}: reports an exception by the name of its class, and its words in the details alone`, async () => {
      const envelope = await undone(driver, "throw", { text: "ada" })
      expect(envelope).toMatchObject({
        ok: false,
        error: {
          code: "upstream_error",
          message: expect.stringContaining("threw SignedOut") as string,
          details: { exception: "SignedOut", message: "no login for ada" },
        },
      })
      expect(!envelope.ok && envelope.error.message).not.toContain("ada")
    })
    it(`${driver}: commits nothing of a function that crashes its process`, async () => {
      expect(await undone(driver, "crash")).toMatchObject({ ok: false, error: { code: "upstream_error" } })
    })
    it(`${driver}: starts no program`, async () => {
      const envelope = await undone(driver, "spawn")
      expect(envelope.ok ? envelope.value : envelope.error.code).not.toEqual({ said: `${language}: 0` })
      for (const { hint } of envelope.denied.filter(({ layer }) => layer === "exec")) expect(hint).toContain("native")
    })
    it(`${driver}: is not believed when it writes to the private descriptor`, async () => {
      expect(await undone(driver, "forge")).toMatchObject({ ok: false })
    })
    it(`${driver}: sees nothing of the host`, async () => {
      const envelope = await notes(driver, "look")
      const { said } = (envelope.ok ? envelope.value : {}) as { said: string }
      const seen = JSON.parse(said.slice(said.indexOf(" ") + 1)) as { env: string[]; host: boolean }
      expect(seen.host).toBe(false)
      expect(seen.env).toContain("HTTP_PROXY")
      expect(seen.env.filter((name) => /TOKEN|SECRET|VITEST|NODE_ENV/.test(name))).toEqual([])
    })
    it(`${driver}: gets a number as a number, and nothing where nothing was given`, async () => {
      const given = async (more: object): Promise<unknown> => {
        const envelope = await notes(driver, "given", more)
        return envelope.ok ? (envelope.value as { said: string }).said : envelope.error
      }
      expect(await given({ count: 7 })).toMatch(/: (number|int) 7$/)
      expect(await given({})).toMatch(/: (undefined undefined|NoneType None)$/)
    })
    it(`${driver}: a result without what is extracted is no output`, async () => {
      expect(await undone(driver, "nothing")).toMatchObject({ ok: false, error: { code: "output_invalid" } })
    })
    it(`${driver}: tells the parts of a stream as they come, and gives the list of them`, async () => {
      const { envelope, events } = await observe({ tool: "sdk.count", input: { to: 3 }, driver })
      expect(envelope).toMatchObject({ ok: true, value: [1, 2, 3] })
      expect(events.flatMap((event) => (event.type === "progress" ? [event.value] : []))).toEqual([1, 2, 3])
    })
    it.each(["wait", "deaf"])(`${driver}: is asked to stop when it is cancelled, and ended: %s`, async (verb) => {
      const before = digestOfFolder(world.workspace)
      const { envelope, events } = await observe({ tool: "sdk.notes", input: { verb }, driver }, (event, cancel) => {
        if (event.type === "output" && Buffer.from(event.bytes).toString("utf8").includes("started")) cancel()
      })
      expect(envelope).toMatchObject({ ok: false, error: { code: "cancelled" } })
      expect(digestOfFolder(world.workspace)).toBe(before)
      const said = events.map((event) => (event.type === "output" ? Buffer.from(event.bytes).toString("utf8") : ""))
      expect(said.join("").includes("stopped early")).toBe(verb === "wait")
    })
  }

  it("is a driver like any other in the list and in what is said of a route", async () => {
    const tools = await world.host.tools()
    expect(JSON.stringify(tools)).toContain("sdk.notes")
    expect(existsSync(join(world.workspace, "stray.txt"))).toBe(false)
  })
}
