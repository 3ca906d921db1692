/** What a provider may answer, as whoever logs in is told of it. */
import { once } from "node:events"
import { connect, createServer, type AddressInfo, type Server } from "node:net"
import { afterEach, beforeEach, expect, it } from "vitest"
import { fetchOver, NotAsked } from "../../../src/host/drivers/fetch-over.ts"

let server: Server
let answer = ""
beforeEach(async () => {
  server = createServer((socket) => {
    socket.on("error", () => undefined)
    socket.once("data", () => socket.end(Buffer.from(answer, "latin1")))
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
})
afterEach(() => void server.close())

const ask = async (): Promise<Response> => {
  const { port } = server.address() as AddressInfo
  const fetch = fetchOver({
    signal: AbortSignal.timeout(20_000),
    connect: async ({ host }) => {
      const connection = connect({ host, port })
      await once(connection, "connect")
      return { ok: true, connection, address: host }
    },
  })
  return await fetch(`http://127.0.0.1:${port}/token`)
}

it.each(["200 OK", "204 None", "400 Bad", "418 Odd", "599 Last"])(
  "an answer of %s is told as it is",
  async (status) => {
    answer = `HTTP/1.1 ${status}\r\ncontent-length: 0\r\n\r\n`
    expect((await ask()).status).toBe(Number(status.slice(0, 3)))
  },
)

it.each(["600 Beyond", "999 Denied", "099 Low", "000 None"])(
  "an answer of %s is none, and a mistake of nobody's here",
  async (status) => {
    answer = `HTTP/1.1 ${status}\r\ncontent-length: 2\r\n\r\n{}`
    await expect(ask()).rejects.toBeInstanceOf(NotAsked)
  },
)

it.each([
  ["a header's name that is none", "x y: 1"],
  ["a header's value that no text could be", "x-odd: \u0001"],
  ["letters of another alphabet", "x-odd: \u00e9\u00ff"],
  ["a name with no letter", ": 1"],
])("%s breaks an answer off, or is told, and is a mistake of nobody's here", async (_what, header) => {
  answer = `HTTP/1.1 200 OK\r\n${header}\r\ncontent-length: 2\r\n\r\n{}`
  const told = await ask().catch((error: unknown) => error)
  expect(told instanceof Response || told instanceof NotAsked, String(told)).toBe(true)
})
