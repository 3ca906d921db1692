/** A server that speaks MySQL's protocol and means ill: what a call tells it, and what becomes of the host. */
import { once } from "node:events"
import { writeFileSync } from "node:fs"
import { createServer, type Server, type Socket } from "node:net"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest"
import type { Envelope } from "../../src/host/types.ts"
import { type FormatsWorld, openFormatsWorld } from "./formats-world.ts"

const PASSWORD = "told-to-nobody"
const LOOT = "what lies on this machine"

const packet = (sequence: number, ...parts: readonly (Buffer | string | readonly number[])[]): Buffer => {
  const body = Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from(part))))
  return Buffer.concat([Buffer.from([body.length & 0xff, body.length >> 8, 0, sequence]), body])
}
/** PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH, CONNECT_WITH_DB, LOCAL_FILES; no TLS */
const hello = packet(
  0,
  [10],
  "8.0.36\0",
  [1, 0, 0, 0],
  "12345678\0",
  [0x88, 0xa2, 45, 2, 0, 0x08, 0, 21],
  Buffer.alloc(10),
  "123456789012\0",
  "mysql_native_password\0",
)
const fine = (sequence: number): Buffer => packet(sequence, [0, 0, 0, 2, 0, 0, 0])

let server: Server
let world: FormatsWorld
let said = Buffer.alloc(0)
/** what it answers to the packets of a connection, by their number; the first is what it begins with */
let script: readonly Buffer[] = []
const sockets = new Set<Socket>()

beforeAll(async () => {
  server = createServer((socket) => {
    sockets.add(socket)
    let turn = 0
    const next = (): void => {
      const answer = script[turn++]
      if (answer === undefined) socket.end()
      else socket.write(answer)
    }
    socket.on("error", () => undefined).on("close", () => sockets.delete(socket))
    socket.on("data", (chunk: Buffer) => {
      said = Buffer.concat([said, chunk])
      next()
    })
    next()
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  world = await openFormatsWorld({
    config: `annotations:
  stock-query: { database: { address: "db.test:3306", name: shop, sql_input: part, tls: false } }
  stock-secure: { database: { address: "db.test:3306", name: shop, sql_input: part } }
`,
    edit: (put) => {
      let text = ""
      put("aml/stock-query.tool.md", (found) => (text = found.replace("engine: postgresql", "engine: mysql")))
      put("aml/stock-secure.tool.md", () => text.replace("tool_id: stock_query", "tool_id: stock_secure"))
    },
    services: { "db.test": `127.0.0.1:${port}` },
  })
  const set = await world.host.secrets.set("stock-db", JSON.stringify({ user: "reader", password: PASSWORD }), {
    shared: true,
  })
  expect(set.ok).toBe(true)
})
beforeEach(() => {
  said = Buffer.alloc(0)
})
afterAll(async () => {
  await world[Symbol.asyncDispose]()
  for (const socket of sockets) socket.destroy()
  await new Promise((resolve) => server.close(resolve))
})

const ask = (tool = "stock-query"): Promise<Envelope> => world.call(tool, { part: "SELECT 1" })

it.each([
  ["a greeting that breaks off", [packet(0, [10])]],
  ["rows of no column", [hello, fine(2), Buffer.concat([packet(1, [1]), packet(2, [0xff, 0xff])])]],
  ["a length beyond the end", [hello, fine(2), Buffer.concat([packet(1, [1]), packet(2, [0xfd, 0xff, 0xff, 0xff])])]],
])("%s ends the call, and nothing else", async (_what, answers) => {
  script = answers
  expect(await ask()).toMatchObject({ ok: false, error: { code: "upstream_error" } })
})

it("a file of this machine is not sent to a server that asks for it", async () => {
  const file = join(world.folder, "loot")
  writeFileSync(file, LOOT)
  script = [hello, fine(2), packet(1, [0xfb], file), fine(3)]
  expect((await ask()).ok).toBe(false)
  expect(said.toString("latin1")).toContain("SET NAMES")
  expect(said.toString("latin1")).not.toContain(LOOT)
})

it("the password is not sent in the clear to a server that asks for it", async () => {
  script = [hello, packet(2, [0xfe], "mysql_clear_password\0"), fine(4)]
  expect((await ask()).ok).toBe(false)
  expect(said.toString("latin1")).toContain("reader")
  expect(said.toString("latin1")).not.toContain(PASSWORD)
})

it("a server without TLS is told nothing, where the author did not give it up", async () => {
  script = [hello, fine(2)]
  expect((await ask("stock-secure")).ok).toBe(false)
  expect(said.toString("latin1")).not.toContain("reader")
})
