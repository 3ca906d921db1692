/**
 * One contract, served by a driver of each kind: `fixtures/five` has a program that is a command line, an MCP server and a
 * module, a service elsewhere, and a function of the program that embeds the host. The same on each backend.
 */
import { existsSync, readFileSync } from "node:fs"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { processCaller, readReceipts } from "../../src/host/index.ts"
import type { BuiltinFunction } from "../../src/host/builtin-function.ts"
import type { CallEvent } from "../../src/host/events.ts"
import type { Envelope, WhyReport } from "../../src/host/types.ts"
import { digestOfFolder, openWorld, type World } from "./host-world.ts"

const manifests = join(import.meta.dirname, "../../fixtures/five")
const kinds = ["cli", "sdk", "http", "mcp", "builtin"] as const
type Kind = (typeof kinds)[number]

/** What the service was asked for since the test began, and what a test waits for. */
interface Service {
  readonly asked: string[]
  ill: boolean
  onWait: () => void
}

const answer = (service: Service, request: IncomingMessage, response: ServerResponse): void => {
  const asked = `${request.headers.host} ${request.method} ${request.url}`
  if (request.url === "/health") return void response.writeHead(service.ill ? 503 : 200).end()
  service.asked.push(asked)
  if (request.url === "/wait") return service.onWait()
  if (request.url === "/crash") return void request.socket.destroy()
  if (request.url === "/dial") return void response.writeHead(303, { location: "http://elsewhere.test/" }).end()
  response.end(JSON.stringify({ said: `${request.url?.slice(1)} by http` }))
}

/** The builtin: a function of this process, with the call's own files and no way out but its own. */
const builtin =
  (service: Service): BuiltinFunction =>
  async ({ input: { verb, path }, files, signal }) => {
    if (verb !== "dial") await files.write(path as string, Buffer.from(verb === "keep" ? "by builtin\n" : "half\n"))
    if (verb === "crash") throw new RangeError("going down")
    if (verb === "wait") {
      service.onWait()
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }))
    }
    return { said: `${verb as string} by builtin` }
  }

/** `config`: what the backend needs of it. */
export const fiveSuite = (backend: "namespace" | "docker", config: () => string): void => {
  let world: World
  let server: Server
  const service: Service = { asked: [], ill: false, onWait: () => undefined }
  const settings = (more = ""): string => {
    const { port } = server.address() as AddressInfo
    const services = ["notes", "elsewhere"].map((name) => `${name}.test: "127.0.0.1:${port}"`).join(", ")
    return `${config()}manifests: ["${manifests}"]\nread_only_http: enforce\negress: { services: { ${services} } }\n${more}`
  }
  const open = (more = ""): Promise<World> =>
    openWorld(settings(more), { manifests: [], backend, builtins: { five: builtin(service) } })
  beforeAll(async () => {
    server = createServer((request, response) => {
      request.resume().once("end", () => answer(service, request, response))
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    world = await open()
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  beforeEach(() => {
    service.asked.length = 0
    service.ill = false
  })

  describe("is routed", () => {
    interface Asked {
      readonly driver?: string
      readonly context?: { readonly regionConstraint: string[] }
    }
    /** The driver that served, and of every driver the phase it came to and why, which `why` says before and after alike. */
    const routed = async (at: World, more: Asked = {}): Promise<Record<string, string>> => {
      const input = { verb: "keep" }
      const envelope = await at.call("five.keep", input, more)
      const why: WhyReport = await at.host.why({ tool: "five.keep", input, workspace: at.workspace, ...more })
      expect(why.rows).toHaveLength(kinds.length)
      expect(envelope.driver).toBe(why.selected)
      expect(envelope).toMatchObject({ ok: true, value: { said: `keep by ${envelope.driver?.slice(5, -2)}` } })
      return Object.fromEntries(
        why.rows.map(({ driver, phase, reason }) => [driver.slice(5, -2), `${phase}: ${reason}`]),
      )
    }
    const behind = (winner: string, reason: string): string => `rank: five-${winner}@1 was preferred: ${reason}`
    const denied = "policy: the policy denies its tag `local`"

    it("by cost class, where nothing else decides", async () => {
      const dearer = behind("cli", "it costs 0 a call, this one an undeclared amount")
      expect(await routed(world)).toEqual({
        cli: "selected: first of 5 by cost, kind, health and id",
        sdk: dearer,
        http: dearer,
        mcp: dearer,
        builtin: dearer,
      })
    })
    it("by region", async () => {
      const outside = "policy: its region is `eu`, and the call must stay in `us`"
      expect(await routed(world, { context: { regionConstraint: ["us"] } })).toEqual({
        sdk: "selected: first of 3 by cost, kind, health and id",
        http: behind("sdk", "kind sdk comes before http"),
        mcp: behind("sdk", "its cost class is metered, that of this one expensive"),
        cli: outside,
        builtin: outside,
      })
    })
    it("by pin", async () => {
      const away = "pin: the call pins five-mcp"
      expect(await routed(world, { driver: "five-mcp" })).toEqual({
        mcp: "selected: the call pins it",
        cli: away,
        sdk: away,
        http: away,
        builtin: away,
      })
    })
    it("by tag, and by health where the service that was left is ill", async () => {
      const tags = "policy_tags: { deny: [local] }\n"
      await using well = await open(tags)
      expect(await routed(well)).toEqual({
        http: "selected: first of 2 by cost, kind, health and id",
        builtin: behind("http", "its cost class is metered, that of this one expensive"),
        cli: denied,
        sdk: denied,
        mcp: denied,
      })
      service.ill = true
      await using ill = await open(tags)
      expect(await routed(ill)).toEqual({
        builtin: "selected: the only driver left",
        http: expect.stringMatching(/^capability: its last health check failed: .*503/) as string,
        cli: denied,
        sdk: denied,
        mcp: denied,
      })
    })
    it("by a tag that the operator asks for", async () => {
      await using inside = await open("policy_tags: { allow: [in-process] }\n")
      const without = "policy: the policy asks for one of the tags `in-process`"
      const others = { cli: without, sdk: without, http: without, mcp: without }
      expect(await routed(inside)).toEqual({ builtin: "selected: the only driver left", ...others })
    })
  })

  describe.each(kinds)("by kind %s", (kind: Kind) => {
    const pin = { driver: `five-${kind}` }
    const elsewhere = kind === "http"
    const metadata = ({ call }: Envelope): Record<string, unknown> =>
      readReceipts(world.data, { call })[0]?.metadata ?? {}
    /** A call of which nothing may stay. */
    const undone = async (tool: string, input: object): Promise<Envelope> => {
      const before = digestOfFolder(world.workspace)
      const envelope = await world.call(tool, input, pin)
      expect(digestOfFolder(world.workspace)).toBe(before)
      expect(metadata(envelope)).toMatchObject({ effects_committed: false, driver: { kind } })
      return envelope
    }

    it("does what its contract declares", async () => {
      const path = `notes/${kind}.txt`
      const envelope = await world.call("five.keep", { verb: "keep", path }, pin)
      expect(envelope).toMatchObject({
        ok: true,
        driver: `five-${kind}@1`,
        value: { said: `keep by ${kind}` },
        denied: [],
      })
      if (elsewhere) expect(service.asked).toEqual(["notes.test POST /keep"])
      else {
        expect(envelope.effects).toMatchObject([{ kind: "create", path, declared: true, committed: true }])
        expect(readFileSync(join(world.workspace, path), "utf8")).toBe(`by ${kind}\n`)
      }
      const sandboxed = kind === "cli" || kind === "sdk" || kind === "mcp"
      expect(metadata(envelope)).toMatchObject({ driver: { kind }, backend: sandboxed ? backend : "none" })
      expect(metadata(envelope)["sealed"]).toBe(kind === "builtin" ? false : undefined)
    })
    it("has what its contract does not declare refused and undone", async () => {
      const stray = elsewhere
        ? await undone("five.look", { verb: "keep" })
        : await undone("five.keep", { verb: "keep", path: "stray.txt" })
      if (elsewhere) {
        expect(stray).toMatchObject({ ok: false, error: { code: "egress_denied", details: { reason: "read_only" } } })
        expect(service.asked).toEqual([])
        return
      }
      const effects = [{ path: "stray.txt", declared: false, committed: false }]
      expect(stray).toMatchObject({ ok: false, error: { code: "undeclared_write" }, effects })
      expect(await undone("five.look", { verb: "keep" })).toMatchObject({
        ok: false,
        error: { code: "undeclared_write" },
      })
    })
    it("reaches no host that its driver does not declare", async () => {
      const envelope = await world.call("five.keep", { verb: "dial" }, pin)
      expect(service.asked.filter((asked) => asked.startsWith("elsewhere"))).toEqual([])
      if (kind === "builtin") {
        // It is given no network, and a driver of its kind that names hosts is not loaded; what its process dials is its own.
        const why = await world.host.why({
          tool: "five.keep",
          input: { verb: "dial" },
          workspace: world.workspace,
          ...pin,
        })
        return expect(why).toMatchObject({ egress: [], profile: { network: "none" } })
      }
      const target = expect.stringContaining("elsewhere.test") as string
      expect(envelope.denied).toMatchObject([{ layer: "egress", reason: "host_not_allowed", target }])
      expect(metadata(envelope)).toMatchObject({ denied: [{ target }] })
    })
    it("ends when it is cancelled, with nothing kept", async () => {
      const cancel = new AbortController()
      service.onWait = () => cancel.abort()
      const before = digestOfFolder(world.workspace)
      const onEvent = (event: CallEvent): void => {
        if (event.type === "output" && Buffer.from(event.bytes).includes("started")) cancel.abort()
      }
      const envelope = await world.host.call(
        { tool: "five.keep", input: { verb: "wait" }, workspace: world.workspace, ...pin },
        { caller: processCaller("alice"), approved: true, signal: cancel.signal, onEvent },
      )
      expect(envelope).toMatchObject({ ok: false, error: { code: "cancelled" } })
      expect(digestOfFolder(world.workspace)).toBe(before)
      expect(metadata(envelope)).toMatchObject({ verdict: "cancelled" })
    })
    it("crashes alone, with nothing kept", async () => {
      const crashed = await undone("five.keep", { verb: "crash", path: "notes/half.txt" })
      expect(crashed).toMatchObject({ ok: false, error: { code: "upstream_error" } })
      expect(existsSync(join(world.workspace, "notes/half.txt"))).toBe(false)
      expect(await world.call("five.keep", { verb: "keep" }, pin)).toMatchObject({ ok: true })
    })
  })
}
