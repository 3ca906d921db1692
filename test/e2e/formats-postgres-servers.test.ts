/** A server that speaks PostgreSQL's protocol and means ill: what a call tells it, and what becomes of the host. */
import { once } from "node:events"
import { type AddressInfo, createServer, type Server, type Socket } from "node:net"
import { createSecureContext, getCACertificates, setDefaultCACertificates, TLSSocket } from "node:tls"
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest"
import { createCallAuthority } from "../../src/egress-proxy/tls/authority.ts"
import type { Envelope } from "../../src/host/types.ts"
import { type FormatsWorld, openFormatsWorld } from "./formats-world.ts"

const PASSWORD = "told-to-nobody"

const int = (value: number, bytes: 1 | 2 | 4): Buffer => {
  const made = Buffer.alloc(bytes)
  made.writeUIntBE(value, 0, bytes)
  return made
}
const message = (kind: string, ...parts: readonly (Buffer | string)[]): Buffer => {
  const body = Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part)))
  return Buffer.concat([Buffer.from(kind), int(body.length + 4, 4), body])
}
const ready = message("Z", "I")
const welcome = Buffer.concat([message("R", int(0, 4)), ready])
const done = Buffer.concat([message("C", "BEGIN\0"), ready])
const column = (count: number): Buffer =>
  message("T", int(count, 2), "n\0", int(0, 4), int(0, 2), int(25, 4), int(65_535, 2), int(0, 4), int(0, 2))

let server: Server
let world: FormatsWorld
let said = Buffer.alloc(0)
let isSecure = false
/** what it answers to the messages of a connection, by their number */
let script: readonly Buffer[] = []
const sockets = new Set<Socket>()
const authority = createCallAuthority({ names: ["db.test"] })
const authorities = getCACertificates("default")
const context = createSecureContext(authority.leafFor("db.test"))

const serve = (socket: Socket): void => {
  sockets.add(socket)
  let turn = 0
  socket.on("error", () => undefined).on("close", () => sockets.delete(socket))
  socket.on("data", (chunk: Buffer) => {
    said = Buffer.concat([said, chunk])
    const answer = script[turn++] ?? ""
    if (turn < script.length) socket.write(answer)
    else socket.end(answer)
  })
}
/** The author wants TLS: what comes first asks for it. */
const ASKS_FOR_TLS = 80_877_103

beforeAll(async () => {
  setDefaultCACertificates([...authorities, authority.caPem])
  server = createServer((socket) =>
    socket.once("data", (first: Buffer) => {
      if (first.length === 8 && first.readUInt32BE(4) === ASKS_FOR_TLS && isSecure) {
        socket.write("S")
        serve(new TLSSocket(socket, { isServer: true, secureContext: context }))
        return
      }
      serve(socket)
      socket.emit("data", first)
    }),
  )
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  world = await openFormatsWorld({
    config: `annotations:
  stock-query: { database: { address: "db.test:5432", name: shop, sql_input: part, tls: false } }
  stock-secure: { database: { address: "db.test:5432", name: shop, sql_input: part } }
`,
    edit: (put) => {
      let text = ""
      put("aml/stock-query.tool.md", (found) => (text = found))
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
  isSecure = false
})
afterAll(async () => {
  await world[Symbol.asyncDispose]()
  for (const socket of sockets) socket.destroy()
  await new Promise((resolve) => server.close(resolve))
  setDefaultCACertificates(authorities)
})

const ask = (tool = "stock-query"): Promise<Envelope> => world.call(tool, { part: "SELECT 1" })

it.each([
  ["a message that is shorter than it says", [message("R")]],
  ["a way to prove oneself that nobody knows", [message("R", int(77, 4))]],
  ["a row of more columns than it has", [welcome, Buffer.concat([column(1), message("D", int(9, 2)), ready])]],
  ["columns that are not there", [welcome, Buffer.concat([column(60_000), ready])]],
  ["a field longer than its row", [welcome, Buffer.concat([column(1), message("D", int(1, 2), int(0x7fffffff, 4))])]],
  ["a row before its columns", [welcome, message("D", int(1, 2), int(0, 4))]],
  ["an error of no text", [message("E", "S")]],
  ["a copy that nobody began", [welcome, message("G", int(0, 1), int(0, 2))]],
  ["a copy to us", [welcome, message("H", int(0, 1), int(0, 2))]],
  ["a kind of message that nobody knows", [message("?", "x")]],
  ["a message of no length", [Buffer.from("R\0\0\0\0")]],
  ["SASL of no words", [message("R", int(10, 4), "\0")]],
  ["SASL that goes on before it began", [message("R", int(11, 4), "r=x,s=y,i=1")]],
  ["SASL that ends before it began", [message("R", int(12, 4), "v=x")]],
  ["an end of a query that nobody asked", [Buffer.concat([welcome, message("C", "SELECT 1\0"), ready])]],
  ["a statement parsed that nobody sent", [Buffer.concat([welcome, message("1"), message("2"), message("n")])]],
])("%s ends the call, and nothing else", async (_what, answers) => {
  script = answers
  expect(await ask()).toMatchObject({ ok: false, error: { code: "upstream_error" } })
})

it("the password is not sent in the clear over a connection without TLS", async () => {
  script = [message("R", int(3, 4)), welcome]
  expect(await ask()).toMatchObject({
    ok: false,
    error: { message: expect.stringContaining("wants the password in the clear") as string, retryable: false },
  })
  expect(said.toString("latin1")).toContain("reader")
  expect(said.toString("latin1")).not.toContain(PASSWORD)
})

it("over TLS a server may want it, and is looked at just as well", async () => {
  isSecure = true
  script = [message("R", int(3, 4)), message("E", "S")]
  expect(await ask("stock-secure")).toMatchObject({
    ok: false,
    error: { message: expect.stringContaining("says what is not of its protocol") as string },
  })
  expect(said.toString("latin1")).toContain(PASSWORD)
})

it("a server without TLS is told nothing, where the author did not give it up", async () => {
  script = [Buffer.from("N"), welcome, done]
  expect((await ask("stock-secure")).ok).toBe(false)
  expect(said.toString("latin1")).not.toContain("reader")
})
