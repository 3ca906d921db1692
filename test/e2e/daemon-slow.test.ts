import { once } from "node:events"
import { writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { expect, it } from "vitest"
import { openDaemon } from "../../src/daemon/daemon.ts"
import { tellEvents } from "../../src/daemon/events/stream.ts"
import { Tape } from "../../src/daemon/events/tape.ts"
import { daemonLimits } from "../../src/daemon/limits.ts"
import type { CallEvent } from "../../src/host/events.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { openDaemonWorld } from "./daemon-world.ts"
import { openWire, requestOf, statusesIn } from "./daemon-wire.ts"
import { openFolder } from "./host-world.ts"

it("a reader of events that has left by the time it may be told is not waited for", async () => {
  const tape = new Tape("01J", { user: "alice", tenant: "local", workspace: "" })
  const over = Promise.withResolvers<void>()
  await using server = createServer((request, response) => {
    request.socket.once("close", () => void tellEvents(tape, response, undefined).then(over.resolve))
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  using wire = openWire(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  wire.say(requestOf("GET", "/"))
  await once(server, "request")
  wire.socket.destroy()
  await over.promise
  expect(tape.hasEnded).toBe(false)
})

it("a reader that takes nothing is told no more than its connection holds", async () => {
  const tape = new Tape("01J", { user: "alice", tenant: "local", workspace: "" })
  const bytes = Buffer.alloc(32 * 1024, "x")
  for (let seq = 0; seq < 48; seq += 1)
    tape.hear({ call: "01J", seq, at: Date.now(), type: "output", stream: "stdout", bytes } as CallEvent)
  const told = Promise.withResolvers<number>()
  await using server = createServer((_request, response) => {
    void tellEvents(tape, response, undefined)
    told.resolve(response.writableLength)
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  using wire = openWire(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  wire.socket.pause()
  wire.say(requestOf("GET", "/"))
  const held = await told.promise
  expect(held).toBeGreaterThan(0)
  expect(held).toBeLessThan(daemonLimits.streamBytes.value + 64 * 1024)
  wire.socket.destroy()
})

it("clients that are slow with what they ask are left, and keep nobody else from being answered", async () => {
  await using world = await openDaemonWorld()
  const alice = await world.as()
  const slow = Number(process.env["CAISSON_SLOW_CLIENTS"] ?? 200)
  const wires = Array.from({ length: slow }, () => openWire(world.address))
  try {
    for (const [nth, wire] of wires.entries())
      if (nth % 2 === 0) wire.say("POST /v1/calls HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ")
    for (let nth = 0; nth < 20; nth += 1) expect((await alice("GET", "/v1/tools")).status).toBe(200)
    await Promise.all(wires.map(({ closed }) => closed))
    const said = new Set(wires.flatMap(({ heard }) => statusesIn(heard)))
    expect([...said]).toEqual([408])
  } finally {
    for (const wire of wires) wire.socket.destroy()
  }
})

it("a certificate that is none, or is not there, is said before anybody is let in", async () => {
  const folder = openFolder()
  try {
    const cert = join(folder, "cert.pem")
    writeFileSync(cert, "no certificate\n")
    const tls = (key: string) => openDaemon({ data: join(folder, "data"), listen: "127.0.0.1:0", tls: { cert, key } })
    await expect(tls(join(folder, "absent.pem"))).rejects.toThrow(/key .*absent\.pem cannot be read/)
    await expect(tls(cert)).rejects.toThrow(/are no certificate and its key/)
  } finally {
    removeFolder(folder)
  }
})
