import { createServer, type Server, type Socket } from "node:net"
import { once } from "node:events"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { createDockerBackend } from "../../../src/sandbox/docker/backend.ts"
import { shapeOf } from "../../../src/sandbox/profile.ts"
import { describeNeeding, noRoot } from "../../support/needing.ts"
import { profileOf, removeFolder, temporaryFolder, until } from "../../support/sealed.ts"

describeNeeding("an engine that takes questions and never answers", noRoot, () => {
  let data = ""
  let engine: Server
  const asked: Socket[] = []
  beforeEach(async () => {
    data = temporaryFolder("data")
    engine = createServer((socket) => {
      socket.on("error", () => undefined)
      asked.push(socket)
    })
    engine.listen(join(data, "engine.sock"))
    await once(engine, "listening")
  })
  afterEach(() => {
    for (const socket of asked.splice(0)) socket.destroy()
    engine.close()
    removeFolder(data)
  })

  test("keeps no call that was cancelled", async () => {
    await using backend = createDockerBackend({ data, engine: `unix://${join(data, "engine.sock")}` })
    const cancel = new AbortController()
    const preparing = backend.prepare(shapeOf(profileOf()), cancel.signal)
    await until(() => asked.length > 0, "the engine was asked")
    cancel.abort()
    expect(await preparing).toMatchObject({ ok: false, control: "cancelled" })
  })
})
