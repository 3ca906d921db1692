/** The way from a browser to a program's own listener, with a real listener in the place of the sandbox's. */
import { once } from "node:events"
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http"
import { type AddressInfo, connect } from "node:net"
import { afterEach, beforeEach, expect, it } from "vitest"
import type { RefusedCallback } from "../../../src/host/login/callback/page.ts"
import { type Brought, openProgramCallback } from "../../../src/host/login/callback/program.ts"

const key = { tenant: "local", driver: "gh@1 file:/a", workspace: "w_1", user: "alice" }
const state = "of-this-flow-3f9c"

const listening = async (server: Server): Promise<number> => {
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return (server.address() as AddressInfo).port
}

interface Answered {
  readonly status: number
  readonly headers: IncomingMessage["headers"]
  readonly text: string
}
const browse = async (url: string, headers: Record<string, string> = {}, method = "GET"): Promise<Answered> => {
  const at = new URL(url)
  const [response] = (await once(
    request({
      host: at.hostname,
      port: at.port,
      path: at.pathname + at.search,
      method,
      headers: { host: at.host, ...headers },
    }).end(),
    "response",
  )) as [IncomingMessage]
  let text = ""
  for await (const part of response.setEncoding("utf8")) text += String(part)
  return { status: response.statusCode ?? 0, headers: response.headers, text }
}
const cookieOf = ({ headers }: Answered): string => (headers["set-cookie"]?.[0] ?? "").split(";")[0] ?? ""

/** Stands for the program; `port` is what it names, free on this machine. */
let program: Server
let inside: number
let port: number
let heard: IncomingMessage[]
let answer: (request: IncomingMessage, response: ServerResponse) => void
let refused: RefusedCallback[]
let callback: ReturnType<typeof openProgramCallback>
const pageFor = (name = "127.0.0.1"): string =>
  `https://id.test/authorize?client_id=x&state=${state}&redirect_uri=${encodeURIComponent(`http://${name}:${port}/back`)}`
const throughOf = (brought: Brought): string => (brought.way === "open" ? brought.through : "")

beforeEach(async () => {
  heard = []
  refused = []
  answer = (_request, response) => {
    response.setHeader("set-cookie", "program=1")
    response.setHeader("content-type", "text/html")
    response.end("<p>done</p><script>alert(1)</script>")
  }
  program = createServer((asked, response) => {
    heard.push(asked)
    answer(asked, response)
  })
  inside = await listening(program)
  const free = createServer()
  port = await listening(free)
  free.close()
  await once(free, "close")
  callback = openProgramCallback({
    key,
    forMs: 60_000,
    refused: (why) => refused.push(why),
    reach: async (asked) => {
      if (asked !== port) throw new Error(`port ${asked} was asked for`)
      const connection = connect({ host: "127.0.0.1", port: inside })
      return await once(connection, "connect").then(
        () => connection,
        () => undefined,
      )
    },
  })
})
afterEach(async () => {
  await callback[Symbol.asyncDispose]()
  if (!program.listening) return
  program.closeAllConnections()
  program.close()
  await once(program, "close")
})

it("leads a browser from the address that a person was given to the provider, and its answer to the program, once", async () => {
  const through = throughOf(await callback.bring(pageFor()))
  const entered = await browse(through)
  expect(entered).toMatchObject({ status: 303, headers: { location: pageFor() } })
  expect(entered.headers["set-cookie"]?.[0]).toMatch(/; HttpOnly; SameSite=Lax; Max-Age=60$/)
  const cookie = cookieOf(entered)
  const back = `http://127.0.0.1:${port}/back?code=the-code&state=${state}`
  const answered = await browse(back, { cookie: `other=1; ${cookie}`, referer: "https://id.test/", authorization: "x" })
  expect(answered).toMatchObject({ status: 200, text: "<p>done</p><script>alert(1)</script>" })
  expect(answered.headers["set-cookie"]).toBeUndefined()
  expect(answered.headers["content-security-policy"]).toMatch(/^default-src 'none'.*sandbox$/)
  expect(heard.map(({ url }) => url)).toEqual([`/back?code=the-code&state=${state}`])
  expect(heard[0]?.headers).toEqual({
    host: `127.0.0.1:${port}`,
    accept: "text/html, text/plain",
    "accept-encoding": "identity",
    connection: "close",
  })
  expect(callback.answered.aborted).toBe(true)
  expect((await browse(back, { cookie })).status).toBe(400)
  expect((await browse(through)).status).toBe(400)
  expect(heard).toHaveLength(1)
  expect(refused).toEqual(["used", "used"])
})

it("lets nothing through that is not this browser's answer to this flow; each is refused and told, and uses nothing up", async () => {
  const through = throughOf(await callback.bring(pageFor()))
  const other = throughOf(await callback.bring(pageFor()))
  const cookie = cookieOf(await browse(other))
  const at = `http://127.0.0.1:${port}`
  const good = `${at}/back?code=c&state=${state}`
  const attempts: [RefusedCallback, string, Record<string, string>, string?][] = [
    ["other-browser", good, {}],
    ["other-browser", good, { cookie: `${cookie}x` }],
    ["other-browser", good, { cookie: cookie.slice(0, -1) }],
    ["wrong-host", good, { cookie, host: `localhost:${port}` }],
    ["wrong-host", good, { cookie, host: "evil.test" }],
    ["wrong-origin", good, { cookie, origin: "https://evil.test" }],
    ["wrong-origin", good, { cookie, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image" }],
    ["wrong-origin", good, { cookie, "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" }],
    ["wrong-method", good, { cookie }, "POST"],
    ["wrong-path", `${at}/admin`, { cookie }],
    ["wrong-path", `${at}/back/../admin?state=${state}`, { cookie }],
    ["forged", `${at}/back?code=c`, { cookie }],
    ["forged", `${at}/back?code=c&state=of-another-flow`, { cookie }],
    ["forged", `${at}/back?code=c&state=${state}&state=${state}`, { cookie }],
    ["malformed", `${at}/caisson/`, {}],
    ["malformed", through.slice(0, -4), {}],
    ["forged", `${through.slice(0, 45)}${through[45] === "A" ? "B" : "A"}${through.slice(46)}`, {}],
  ]
  for (const [why, url, headers, method] of attempts) {
    refused.length = 0
    const { status } = await browse(url, headers, method)
    expect([url, headers, status >= 400, refused]).toEqual([url, headers, true, [why]])
  }
  expect(heard).toEqual([])
  expect(await browse(good, { cookie })).toMatchObject({ status: 200 })
})

it("a program's own page leads on, and only where that page led", async () => {
  answer = (asked, response) => {
    if (asked.url === "/auth?start=1") response.writeHead(307, { location: pageFor() }).end()
    else if (asked.url?.startsWith("/back")) response.writeHead(302, { location: "/done" }).end()
    else response.writeHead(200, { "content-type": "text/plain" }).end("done")
  }
  const start = `http://127.0.0.1:${port}/auth?start=1`
  const entered = await browse(throughOf(await callback.bring(start)))
  expect(entered.headers.location).toBe(start)
  const cookie = cookieOf(entered)
  const at = `http://127.0.0.1:${port}`
  expect((await browse(`${at}/back?code=c&state=${state}`, { cookie })).status).toBe(404)
  expect((await browse(start, { cookie })).headers.location).toBe(pageFor())
  expect((await browse(`${at}/done`, { cookie })).status).toBe(404)
  expect((await browse(`${at}/back?code=c&state=${state}`, { cookie })).headers.location).toBe(`${at}/done`)
  expect(await browse(`${at}/done`, { cookie })).toMatchObject({ status: 200, text: "done" })
})

it("opens nothing for an address that names no loopback port, no state, or a second port", async () => {
  const back = encodeURIComponent(`http://127.0.0.1:${port}/`)
  for (const address of [
    "https://id.test/device",
    `https://id.test/?redirect_uri=${back}`,
    `https://id.test/?redirect_uri=${back}&state=short`,
    `https://id.test/?redirect_uri=${back}&redirect_uri=${back}&state=${state}`,
    `https://id.test/?redirect_uri=${encodeURIComponent(`http://127.0.0.1.evil.test:${port}/`)}&state=${state}`,
    `https://id.test/?redirect_uri=${encodeURIComponent(`http://192.168.0.1:${port}/`)}&state=${state}`,
    `https://id.test/?redirect_uri=${encodeURIComponent("http://127.0.0.1:80/")}&state=${state}`,
    `https://id.test/?redirect_uri=${encodeURIComponent(`http://a@127.0.0.1:${port}/`)}&state=${state}`,
  ])
    expect([address, await callback.bring(address)]).toEqual([address, { way: "none" }])
  expect(await callback.bring(pageFor())).toMatchObject({ way: "open", port })
  expect(await callback.bring(`http://127.0.0.1:${port === 65_535 ? 2_000 : port + 1}/`)).toEqual({ way: "none" })
})

it("a port that is taken stays whose it is, and the answer can be pasted; what is pasted is held to the same", async () => {
  const squatter = createServer((_request, response) => response.end("mine"))
  squatter.listen(port, "127.0.0.1")
  await once(squatter, "listening")
  expect(await callback.bring(pageFor())).toEqual({ way: "taken", port })
  const back = `http://127.0.0.1:${port}/back?code=c&state=`
  expect(await callback.paste(`${back}of-another-flow`)).toEqual({ took: false, why: "forged" })
  expect(await callback.paste(`http://localhost:${port}/back?state=${state}`)).toEqual({
    took: false,
    why: "wrong-host",
  })
  expect(await callback.paste("nonsense")).toEqual({ took: false, why: "wrong-host" })
  expect(await callback.paste(` ${back}${state}\n`)).toEqual({ took: true })
  expect(await callback.paste(`${back}${state}`)).toEqual({ took: false, why: "used" })
  expect(heard).toHaveLength(1)
  squatter.close()
})

it("a name that means two addresses is answered on both, and the port is closed with the login", async () => {
  const through = throughOf(await callback.bring(pageFor("localhost")))
  expect(new URL(through).hostname).toBe("localhost")
  const { pathname } = new URL(through)
  const entered = await browse(`http://127.0.0.1:${port}${pathname}`, { host: `localhost:${port}` })
  expect(entered.status).toBe(303)
  await callback[Symbol.asyncDispose]()
  const late = connect({ host: "127.0.0.1", port })
  await expect(once(late, "connect")).rejects.toThrow("ECONNREFUSED")
})

it.each([
  ["ends in the middle", (response: ServerResponse) => void response.destroy()],
  ["is no HTTP", (response: ServerResponse) => void response.socket?.end("hello\r\n\r\n")],
])("a program whose answer %s is told as unanswered", async (_what, act) => {
  answer = (_request, response) => act(response)
  const cookie = cookieOf(await browse(throughOf(await callback.bring(pageFor()))))
  const came = await browse(`http://127.0.0.1:${port}/back?state=${state}`, { cookie })
  expect([came.status, refused]).toEqual([502, ["unanswered"]])
})

it("a page that is too long, or no text, is not shown", async () => {
  answer = (_request, response) => void response.setHeader("content-type", "text/html").end("x".repeat(262_145))
  const cookie = cookieOf(await browse(throughOf(await callback.bring(pageFor()))))
  const came = await browse(`http://127.0.0.1:${port}/back?state=${state}`, { cookie })
  expect(came.text).toContain("This login went back to its program")
})
