import { createHash } from "node:crypto"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { contextHost, discoverEngine, parseHost } from "../../../../src/sandbox/docker/engine/discovery.ts"

let home: string
let servers: Server[] = []
const engineAt = async (socket: string): Promise<string> => {
  const server = createServer((_, response) => response.end("OK")).listen(socket)
  servers.push(server)
  await once(server, "listening")
  return socket
}
const writeContext = (name: string, host: string): void => {
  const meta = join(home, ".docker/contexts/meta", createHash("sha256").update(name).digest("hex"))
  mkdirSync(meta, { recursive: true })
  writeFileSync(join(meta, "meta.json"), JSON.stringify({ Name: name, Endpoints: { docker: { Host: host } } }))
  writeFileSync(join(home, ".docker/config.json"), JSON.stringify({ currentContext: name }))
}
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "caisson-home-"))
})
afterEach(() => {
  for (const server of servers) server.close()
  servers = []
  rmSync(home, { recursive: true, force: true })
})

describe("where the engine is", () => {
  it.each([
    ["unix:///run/x.sock", { origin: "given", socketPath: "/run/x.sock" }],
    ["tcp://127.0.0.1:2375", { origin: "given", tcp: { host: "127.0.0.1", port: 2375 } }],
    ["tcp://engine.test", { origin: "given", tcp: { host: "engine.test", port: 2375 } }],
    ["unix://relative", undefined],
    ["tcp://user@engine.test:1", undefined],
    ["tcp://engine.test:1/path", undefined],
    ["ssh://engine.test", undefined],
    ["npipe:////./pipe/x", undefined],
    ["", undefined],
  ])("reads %j", (text, endpoint) => {
    expect(parseHost(text, "given")).toEqual(endpoint)
  })

  it("takes DOCKER_HOST before everything else", async () => {
    const socket = await engineAt(join(home, "a.sock"))
    writeContext("other", `unix://${await engineAt(join(home, "b.sock"))}`)
    expect(await discoverEngine({ DOCKER_HOST: `unix://${socket}` }, home)).toEqual({
      ok: true,
      endpoint: { origin: "DOCKER_HOST", socketPath: socket },
    })
  })

  it("never replaces an explicit choice that does not answer", async () => {
    await engineAt(join(home, "docker.sock"))
    const found = await discoverEngine(
      { DOCKER_HOST: `unix://${join(home, "gone.sock")}`, XDG_RUNTIME_DIR: home },
      home,
    )
    expect(found).toMatchObject({ ok: false, message: expect.stringContaining("DOCKER_HOST") as string })
  })

  it("takes the chosen context, and none for the default one", async () => {
    const socket = await engineAt(join(home, "c.sock"))
    writeContext("mine", `unix://${socket}`)
    expect(await discoverEngine({}, home)).toEqual({ ok: true, endpoint: { origin: "context", socketPath: socket } })
    expect(contextHost({ DOCKER_CONTEXT: "default" }, home)).toBeUndefined()
    expect(await discoverEngine({ DOCKER_CONTEXT: "unknown" }, home)).toMatchObject({ ok: false })
  })

  it("finds the sockets of an ordinary user's engines", async () => {
    mkdirSync(join(home, "podman"))
    const socket = await engineAt(join(home, "podman/podman.sock"))
    const found = await discoverEngine({ XDG_RUNTIME_DIR: home }, home)
    // A machine-wide engine, where there is one, is named first.
    if (
      found.ok &&
      !found.endpoint.socketPath?.startsWith("/var/run") &&
      !found.endpoint.socketPath?.startsWith("/run/")
    )
      expect(found.endpoint.socketPath).toBe(socket)
    expect(found.ok).toBe(true)
  })
})
