/** What is captured at a token endpoint, over real TLS on both sides. */
import { once } from "node:events"
import type { IncomingMessage, ServerResponse } from "node:http"
import { gzipSync } from "node:zlib"
import { expect, it } from "vitest"
import { createCapturedTokens } from "../../../src/egress-proxy/tokens/captured.ts"
import { captureLimits } from "../../../src/egress-proxy/tokens/limits.ts"
import { name, upstreamServer, world } from "../tls/intercept-world.ts"
import { type MemoryKeep, memoryKeep, tokensIn } from "./memory-keep.ts"

const path = "/oauth/token"
const capture = { endpoints: [{ host: name, port: 443, path }], hosts: [], idToken: "replace" } as const
const form = { "content-type": "application/x-www-form-urlencoded" }
const placeholderOf = (body: string, field: string): string =>
  String((JSON.parse(body) as Record<string, unknown>)[`${field}_token`])

type Answer = (body: string, request: IncomingMessage, response: ServerResponse) => void

/** A provider that answers a refresh with the next pair of tokens, and detects one that was used before. */
const provider = () => {
  let number = 0
  let refused = 0
  const answer: Answer = (body, _request, response) => {
    const sent = new URLSearchParams(body).get("refresh_token")
    if (sent !== null && sent !== `refresh-real-${number}`) {
      refused += 1
      response.writeHead(400, { "content-type": "application/json" }).end(`{"error":"invalid_grant"}`)
      return
    }
    number += 1
    const tokens = { access_token: `access-real-${number}`, refresh_token: `refresh-real-${number}`, expires_in: 60 }
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(tokens))
  }
  return { answer, refused: () => refused }
}

const open = async (answer: Answer, keep: MemoryKeep = memoryKeep(), off = false) => {
  const bodies = new WeakMap<IncomingMessage, string>()
  const upstream = await upstreamServer((request, response) => {
    const seen = upstream.seen.at(-1)
    bodies.set(request, seen?.body ?? "")
    if (request.url === path) return answer(seen?.body ?? "", request, response)
    // An echo of all that it is told.
    response.writeHead(200, { "x-echo": String(request.headers.authorization ?? "") })
    response.end(`${String(request.headers.authorization)} ${seen?.body ?? ""}`)
  })
  const captured = createCapturedTokens(keep)
  const options = off ? {} : { capture, captured, substitutions: captured.beside([], capture) }
  const { send, raw, codes, open: connect, interceptions } = await world({ upstreamPort: upstream.port, options })
  const post = (body: string, more: { path?: string; headers?: Record<string, string>; method?: string } = {}) =>
    send({ method: "POST", path, body, ...more, headers: { ...form, ...more.headers } })
  return { upstream, keep, captured, send, raw, codes, post, connect, interceptions }
}
const grant = "grant_type=authorization_code&code=one"

it("a program gets placeholders, refreshes with them and calls with them; the tokens are kept, and none of them came in", async () => {
  const { post, send, keep, upstream, codes } = await open(provider().answer)
  const first = await post(grant)
  expect(first.status).toBe(200)
  expect(first.body).not.toContain("real")
  expect(tokensIn(keep, "refresh")).toEqual(["refresh-real-1"])
  expect(keep.now[0]?.expiresAt).toBeGreaterThan(Date.now())
  const [access, refresh] = [placeholderOf(first.body, "access"), placeholderOf(first.body, "refresh")]
  const second = await post(`grant_type=refresh_token&refresh_token=${refresh}`)
  expect(upstream.seen.at(-1)?.body).toBe("grant_type=refresh_token&refresh_token=refresh-real-1")
  expect(second.body).toBe(first.body)
  expect([tokensIn(keep, "refresh"), tokensIn(keep, "access")]).toEqual([["refresh-real-2"], ["access-real-2"]])
  // The same placeholder stands for the new token, and what echoes it tells nothing.
  const called = await send({ path: "/api", headers: { authorization: `Bearer ${access}` } })
  expect(upstream.seen.at(-1)?.raw).toContain("Bearer access-real-2")
  expect([called.body, called.headers["x-echo"]].join()).not.toContain("real")
  expect(codes).toEqual(["allowed", "allowed", "allowed"])
})

it("without the capture the same exchange brings the tokens in", async () => {
  const { post } = await open(provider().answer, memoryKeep(), true)
  expect((await post(grant)).body).toContain("refresh-real-1")
})

it("twenty refreshes at once send each refresh token once, to a provider that would notice", async () => {
  const { answer, refused } = provider()
  const keep = memoryKeep()
  const { post } = await open(answer, keep)
  const refresh = placeholderOf((await post(grant)).body, "refresh")
  const all = await Promise.all(
    Array.from({ length: 20 }, () => post(`grant_type=refresh_token&refresh_token=${refresh}`)),
  )
  expect(all.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200))
  expect([refused(), keep.most, tokensIn(keep, "refresh")]).toEqual([0, 1, ["refresh-real-21"]])
})

it("a token that another process rotated meanwhile is what is sent", async () => {
  const { answer } = provider()
  const keep = memoryKeep()
  const { post, upstream } = await open(answer, keep)
  const refresh = placeholderOf((await post(grant)).body, "refresh")
  keep.now = keep.now.map((login) => ({
    ...login,
    tokens: login.tokens.map((token) => (token.kind === "refresh" ? { ...token, value: "refresh-elsewhere" } : token)),
  }))
  await post(`grant_type=refresh_token&refresh_token=${refresh}`)
  expect(upstream.seen.at(-1)?.body).toContain("refresh_token=refresh-elsewhere")
})

it("an answer that nobody waits for any more is read to its end and kept", async () => {
  const keep = memoryKeep()
  const asked = Promise.withResolvers<ServerResponse>()
  const { connect, interceptions } = await open((_body, _request, response) => asked.resolve(response), keep)
  const socket = await connect()
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: ${name}\r\nContent-Type: ${form["content-type"]}\r\nContent-Length: ${grant.length}\r\n\r\n${grant}`,
  )
  const response = await asked.promise
  socket.destroy()
  await once(socket, "close")
  response.end(`{"access_token":"access-real-1","refresh_token":"refresh-real-1"}`)
  await interceptions[0]?.done
  expect(tokensIn(keep, "refresh")).toEqual(["refresh-real-1"])
})

it("what cannot be kept is not handed out either", async () => {
  const keep = memoryKeep()
  keep.fails = true
  const { post, codes } = await open(provider().answer, keep)
  const answer = await post(grant)
  expect([answer.status, codes.at(-1)]).toEqual([502, "token_answer"])
  expect(answer.body).not.toContain("real-1")
})

const tokens = `{"access_token":"access-real-1","refresh_token":"refresh-real-1"}`
it.each<[string, Answer]>([
  ["gzip", (_b, _q, response) => response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(tokens))],
  [
    "chunks of a byte",
    (_b, _q, response) => {
      for (const sign of tokens) response.write(sign)
      response.end()
    },
  ],
  ["no length", (_b, _q, response) => response.writeHead(200, { connection: "close" }).end(tokens)],
  [
    "headers that repeat it",
    (_b, _q, response) =>
      response
        .writeHead(200, { "x-token": "access-real-1", etag: '"access-real-1"', "set-cookie": "t=refresh-real-1" })
        .end(tokens),
  ],
])("an answer with %s is captured", async (_what, answer) => {
  const { post } = await open(answer)
  const got = await post(grant)
  expect(got.status).toBe(200)
  expect(JSON.stringify([got.raw, got.body])).not.toContain("real-1")
  expect(placeholderOf(got.body, "refresh")).toMatch(/^caisson-refresh-1-/)
})

it.each<[string, Answer]>([
  ["a redirect", (_b, _q, response) => response.writeHead(307, { location: "/elsewhere" }).end(tokens)],
  ["an unknown encoding", (_b, _q, response) => response.writeHead(200, { "content-encoding": "pack200" }).end(tokens)],
  ["a broken encoding", (_b, _q, response) => response.writeHead(200, { "content-encoding": "gzip" }).end(tokens)],
  [
    "too many bytes",
    (_b, _q, response) =>
      response.end(`{"x":"${"x".repeat(captureLimits.answerBytes)}","access_token":"access-real-1"}`),
  ],
  [
    "a bomb",
    (_b, _q, response) =>
      response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(Buffer.alloc(50_000_000))),
  ],
  ["a part", (_b, _q, response) => response.writeHead(206, { "content-range": "bytes 0-9/99" }).end(tokens)],
  [
    "two names alike",
    (_b, _q, response) => response.end(`{"access_token":"access-real-1","access_token":"access-real-2"}`),
  ],
  ["a page", (_b, _q, response) => response.end(`<p>access-real-1</p>`)],
  [
    "an end before its end",
    (_b, _q, response) =>
      void response.writeHead(200, { "content-length": "999" }).write(tokens, () => response.destroy()),
  ],
])("an answer with %s is refused, and none of it passes", async (_what, answer) => {
  const { post, keep, codes } = await open(answer)
  const got = await post(grant)
  expect([got.status, keep.now]).toEqual([502, []])
  expect(["token_answer", "upstream_error"]).toContain(codes.at(-1))
  expect(JSON.stringify([got.raw, got.body])).not.toContain("real-")
})

it("an error passes as it came", async () => {
  const { post } = await open((_b, _q, response) => response.writeHead(400).end(`{"error":"authorization_pending"}`))
  expect(await post(grant)).toMatchObject({ status: 400, body: `{"error":"authorization_pending"}` })
})

it.each([
  ["another path", { path: "/elsewhere" }, "secret_misuse"],
  ["the path in other words", { path: "/oauth/%74oken" }, "token_endpoint"],
  ["the path behind dots", { path: "/x/../oauth/token" }, "token_endpoint"],
  ["a header that names the path", { path: "/", headers: { "x-original-url": path } }, "token_endpoint"],
  ["another host", { headers: { host: "evil.test" } }, "authority_mismatch"],
  ["another port", { headers: { host: `${name}:8443` } }, "authority_mismatch"],
  ["an encoding", { headers: { "content-encoding": "gzip" } }, "unsearchable_body"],
])("a refresh placeholder is worth nothing with %s", async (_what, more, code) => {
  const { post, upstream, codes } = await open(provider().answer)
  const refresh = placeholderOf((await post(grant)).body, "refresh")
  const before = upstream.seen.length
  const got = await post(`refresh_token=${refresh}&x=1`, more)
  expect([codes.at(-1), upstream.seen.length]).toEqual([code, before])
  expect(got.body).not.toContain("refresh-real")
})

it.each([
  ["in the query", (access: string) => ({ path: `/api?t=${access}` })],
  ["in another header", (access: string) => ({ headers: { "x-token": access } })],
  ["in a cookie", (access: string) => ({ headers: { cookie: `t=${access}` } })],
  ["in a body elsewhere", (access: string) => ({ method: "POST", path: "/api", body: access })],
])("an access placeholder is worth nothing %s", async (_what, request) => {
  const { post, send, upstream, codes } = await open(provider().answer)
  const access = placeholderOf((await post(grant)).body, "access")
  const before = upstream.seen.length
  await send(request(access))
  expect([codes.at(-1), upstream.seen.length]).toEqual(["secret_misuse", before])
})

it("a refresh token goes into no header, whatever its placeholder is called", async () => {
  const { post, send, codes } = await open(provider().answer)
  const refresh = placeholderOf((await post(grant)).body, "refresh")
  await send({ path: "/api", headers: { authorization: `Bearer ${refresh}` } })
  expect(codes.at(-1)).toBe("secret_misuse")
})

it.each([
  ["a form", { path: "/v2/token", body: "grant_type=authorization_code&code=x" }],
  ["a query", { path: "/v2/token?grant_type=client_credentials", body: "" }],
  ["pieces", { path: "/v2/token", body: [Buffer.from("x=1&grant%5F"), Buffer.from("type=password")] }],
  ["JSON", { path: "/v2/token", body: `{"grant_type":"x"}` }],
])("tokens are not to be had from another path of the same host, asked for in %s", async (_what, request) => {
  const { send, upstream, codes } = await open(provider().answer)
  await send({ method: "POST", headers: form, ...request })
  expect([codes.at(-1), upstream.seen]).toEqual(["token_endpoint", []])
})

it("a long upload beside a token endpoint passes whole", async () => {
  const { send, upstream } = await open(provider().answer)
  const body = Array.from({ length: 40 }, (_, at) => Buffer.alloc(8_192, 65 + at))
  expect((await send({ method: "POST", path: "/upload", body })).status).toBe(200)
  expect(upstream.seen.at(-1)?.body).toBe(Buffer.concat(body).toString())
})

it("requests that are sent ahead are captured one by one, and an upgrade is not made of one", async () => {
  const { raw, keep, codes } = await open(provider().answer)
  const one = `POST ${path} HTTP/1.1\r\nHost: ${name}\r\nContent-Type: ${form["content-type"]}\r\nContent-Length: ${grant.length}\r\n\r\n${grant}`
  const answered = await raw(one + one + one.replace("Host", "Connection: close\r\nHost"))
  expect(answered.match(/200 OK/g)).toHaveLength(3)
  expect(answered).not.toContain("real")
  expect(keep.now).toHaveLength(3)
  await raw(
    `GET ${path} HTTP/1.1\r\nHost: ${name}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
  )
  expect(codes.at(-1)).toBe("upgrade_not_allowed")
})
