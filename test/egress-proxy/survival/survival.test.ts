/** Bytes that ended the whole process once: each sent to a proxy in a process of its own, which must go on serving. */
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Besieged, besieged } from "./besieged.ts"

let proxy: Besieged
beforeEach(async () => {
  proxy = await besieged()
})
afterEach(() => proxy[Symbol.asyncDispose]())

const get = "GET /well HTTP/1.1\r\nHost: api.good.test\r\n\r\n"
const later = {
  "a WebSocket":
    "GET / HTTP/1.1\r\nHost: api.good.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
  "another protocol": "GET / HTTP/1.1\r\nHost: api.good.test\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
  "a tunnel": "CONNECT api.good.test:443 HTTP/1.1\r\nHost: api.good.test\r\n\r\n",
}

describe("the process lives", () => {
  it.each(Object.entries(later))("when %s is asked for behind a request that is not answered yet", async (_, text) => {
    for (const before of [get, `${get}${get}`, `POST /x HTTP/1.1\r\nHost: api.good.test\r\nExpect: 1\r\n\r\n`])
      await proxy.send("tls", [Buffer.from(`${before}${text}`)])
    await proxy.send("tls", [Buffer.from(get), Buffer.from(text)])
    await proxy.serves()
  })

  it("when a datagram comes from port 0, where nothing can be answered", async () => {
    const query = [
      1,
      2,
      1,
      0,
      0,
      1,
      0,
      0,
      0,
      0,
      0,
      0,
      4,
      ...Buffer.from("evil"),
      4,
      ...Buffer.from("test"),
      0,
      0,
      1,
      0,
      1,
    ]
    proxy.datagramFromPortZero(Buffer.from(query))
    proxy.datagramFromPortZero(Buffer.from(query.slice(0, -1)))
    await proxy.serves()
  })

  it("and a WebSocket asked for by itself is put to the upstream", async () => {
    proxy.answer = { bytes: Buffer.from("HTTP/1.1 400 No\r\nContent-Length: 2\r\n\r\nno"), then: "stay" }
    expect(await proxy.send("tls", [Buffer.from(later["a WebSocket"])], 20_000)).toMatch(/^HTTP\/1\.1 400 [^]*no$/)
    await proxy.serves()
  })
})
