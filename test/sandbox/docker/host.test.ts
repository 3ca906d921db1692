/** Whole calls through the host with the docker backend: what lands, what is undone, what is stopped, what is recorded. */
import { existsSync, readFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { Readable } from "node:stream"
import { afterAll, beforeAll, expect, it } from "vitest"
import { mirrorsOf } from "../../../src/host/assemble/docker.ts"
import { processCaller, readReceipts, verifyChain } from "../../../src/host/index.ts"
import type { Envelope } from "../../../src/host/types.ts"
import { openEngine } from "../../../src/sandbox/docker/engine/engine.ts"
import { digestOfFolder, openWorld, type World } from "../../e2e/host-world.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"
import { localBase, localRepository } from "./local-base.ts"
import { containersOf } from "./support.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""
const api = openEngine({ origin: "given", socketPath: socket })
const settings = (more = "", docker = ""): string => `docker: { engine: "unix://${socket}"${docker} }\n${more}`

engineSuite("a host with the docker backend", engine, () => {
  let server: Server
  let port: number
  beforeAll(async () => {
    server = createServer((_request, response) => response.end("served"))
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    port = (server.address() as AddressInfo).port
  })
  afterAll(async () => {
    await new Promise((resolve) => server.close(resolve))
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })
  const open = (more = "", docker = ""): Promise<World> => openWorld(settings(more, docker), { backend: "docker" })

  it("commits a declared write, undoes an undeclared one, and both receipts name the backend", async () => {
    await using world = await open()
    const written = await world.call("fixture.act", { verb: "write", args: ["notes/new.txt", "hello"] })
    expect(written).toMatchObject({
      ok: true,
      value: "write done",
      effects: [{ kind: "create", path: "notes/new.txt", declared: true, committed: true }],
    })
    expect(readFileSync(join(world.workspace, "notes/new.txt"), "utf8")).toBe("hello")
    const before = digestOfFolder(world.workspace)
    const stray = await world.call("fixture.act", { verb: "write", args: ["stray.txt", "x"] })
    expect(stray).toMatchObject({
      ok: false,
      error: { code: "undeclared_write", class: "violation" },
      effects: [{ path: "stray.txt", declared: false, committed: false }],
    })
    expect(existsSync(join(world.workspace, "stray.txt"))).toBe(false)
    expect(digestOfFolder(world.workspace)).toBe(before)
    for (const { call } of [written, stray])
      expect(readReceipts(world.data, { call })[0]?.metadata).toMatchObject({ backend: "docker" })
    expect(await verifyChain(world.data)).toMatchObject({ ok: true })
  })

  it("reaches a declared host that the operator maps, and stops and names every other dial", async () => {
    await using world = await open(`egress: { services: { service.test: "127.0.0.1:${port}" } }\n`)
    for (const how of ["proxy", "direct"]) {
      expect(await world.call("fixture.dial", { how, host: "service.test", port: 80 }), how).toMatchObject({
        ok: true,
        value: "status 200: served",
        denied: [],
      })
      expect(await world.call("fixture.dial", { how, host: "evil.test", port: 80 }), how).toMatchObject({
        ok: true,
        denied: [{ layer: "egress", target: expect.stringContaining("evil.test") as string }],
      })
    }
  })

  it("gives the same envelopes as a host with the namespace backend", async () => {
    const calls: readonly (readonly [string, object])[] = [
      ["fixture.act", { verb: "append", args: ["notes/old.txt", "more"] }],
      ["fixture.act", { verb: "delete", args: ["README.md"] }],
      ["fixture.act", { verb: "setuid", args: ["notes/su"] }],
      ["fixture.act", { verb: "fail", args: ["notes/half.txt"] }],
      ["fixture.act", { verb: "fork" }],
      ["fixture.act", { verb: "flood" }],
      ["fixture.act", { verb: "env" }],
      ["fixture.cat", {}],
      ["fixture.id", {}],
      ["fixture.risky", { verb: "write", args: ["notes/risky.txt", "x"] }],
      ["fixture.dial", { how: "direct", host: "127.0.0.1", port }],
      ["fixture.dial", { how: "direct", host: "169.254.169.254", port: 80 }],
    ]
    await using docker = await open()
    await using namespace = await openWorld("", { backend: "namespace" })
    const plain = ({ call: _call, receipt: _receipt, ...rest }: Envelope): unknown =>
      JSON.parse(
        JSON.stringify(rest, (key, value) => (key === "timings" || key === "duration_ms" ? 0 : value) as unknown),
      )
    // Under one key, which a program sees what stands for: the same on both.
    const callOn = ({ host, workspace }: World, tool: string, input: object, key: string): Promise<Envelope> =>
      host.call({ tool, input: input as never, workspace }, { caller: processCaller("alice"), approved: true, key })
    for (const [at, [tool, input]] of calls.entries()) {
      const here = await callOn(namespace, tool, input, `same-${at}`)
      const there = await callOn(docker, tool, input, `same-${at}`)
      // Whether a refused connection is seen as closed or as reset is a matter of timing.
      if (tool === "fixture.dial") expect(there.denied).toEqual(here.denied)
      else expect(plain(there), `${tool} ${JSON.stringify(input)}`).toEqual(plain(here))
    }
  })

  it("keeps containers ready where the config says so, each for one call", async () => {
    await using world = await open("", ", pool: 1")
    for (const name of ["a", "b", "c"]) {
      const envelope = await world.call("fixture.act", { verb: "write", args: [`notes/${name}.txt`, name] })
      expect(envelope).toMatchObject({ ok: true })
    }
    await world.host.close()
    expect(await containersOf(socket)).toEqual([])
  })

  it("takes programs from an image, with the driver's packages fetched from the machine's mirror", async (context) => {
    const mirror = mirrorsOf().find(({ ports }) => ports[0] === 80)
    if (mirror === undefined) return context.skip("this machine's apt has no mirror over HTTP to stand in for")
    if (!engine.ok || !engine.owned) return context.skip("the engine is not ours to load a base image into")
    const repository = localRepository("coreutils")
    const requests: string[] = []
    const registry = createServer((request, response) => {
      const { host, pathname } = new URL(request.url ?? "/", `http://${request.headers.host}`)
      requests.push(`${host} ${pathname}`)
      const content = repository.get(pathname)
      response.writeHead(content === undefined ? 404 : 200, { "content-length": content?.length ?? 0 }).end(content)
    })
    await new Promise<void>((resolve) => registry.listen(0, "127.0.0.1", resolve))
    const sources = `deb [trusted=yes] http://${mirror.host}/ ./\n`
    const base = await localBase(`h${process.pid}`, sources, "caisson/base")
    expect(await api.load(Readable.from([base.bytes]))).toMatchObject({ ok: true })
    try {
      const mapped = `127.0.0.1:${(registry.address() as AddressInfo).port}`
      const egress = `egress: { services: { ${mirror.host}: "${mapped}" } }\n`
      await using world = await open(egress, ", rootfs: image")
      const envelope = await world.call("file.read", { path: "README.md" })
      expect(envelope.ok ? "ok" : envelope.error.message).toBe("ok")
      expect(envelope).toMatchObject({ driver: "cat@1" })
      expect(requests.some((line) => line.endsWith(".deb"))).toBe(true)
      expect(requests.filter((line) => !line.startsWith(mirror.host))).toEqual([])
    } finally {
      registry.closeAllConnections()
      await new Promise((resolve) => registry.close(resolve))
      await api.removeImage("caisson/base:bookworm")
    }
  }, 180_000)
})
