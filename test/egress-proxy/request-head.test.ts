/** Request heads, by property: no input crashes, and what is accepted means the same to node:http's own parser. */
import { createServer } from "node:http"
import { Duplex } from "node:stream"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { createHeadScanner, type HeadScan, parseHead } from "../../src/egress-proxy/http/head.ts"
import { judgeRequest } from "../../src/egress-proxy/http/judge.ts"
import { policyFrom } from "../../src/egress-proxy/policy/options.ts"
import { compilePolicy } from "../../src/egress-proxy/policy/compile.ts"
import { corpusPolicy } from "../corpus/egress-cases.ts"
import { hostLike, latinBytes, runs, seeded } from "./arbitraries.ts"

const policy = compilePolicy(policyFrom(corpusPolicy))
const word = fc.constantFrom(
  "GET",
  "POST",
  "CONNECT",
  "get",
  "http://plain.good.test/",
  "HTTP/1.1",
  "HTTP/1.0",
  "HTTP/2.0",
  " ",
  "\t",
  "\r\n",
  "\n",
  "\r",
  ":",
  "Host",
  "Content-Length",
  "Transfer-Encoding",
  "chunked",
  "5",
  "plain.good.test",
  ",",
  "\0",
  "x",
  "Connection",
  "Upgrade",
  "h2c",
  "é",
)
const headText = fc.oneof(
  fc.array(word, { maxLength: 25 }).map((words) => words.join("")),
  fc
    .record({
      host: hostLike,
      headers: fc.array(
        fc.tuple(
          fc.constantFrom("Host", "host", "X", "Content-Length", "Transfer-Encoding", "Expect", "Connection"),
          fc.oneof(hostLike, fc.string({ maxLength: 10 })),
        ),
        { maxLength: 4 },
      ),
    })
    .map(
      ({ host, headers }) =>
        `GET http://${host}/ HTTP/1.1\r\nHost: ${host}${headers.map(([name, value]) => `\r\n${name}: ${value}`).join("")}`,
    ),
  latinBytes.map((bytes) => bytes.toString("latin1")),
)

describe("a request head", () => {
  it("is judged without a crash, whatever its bytes", () => {
    fc.assert(
      fc.property(headText, (text) => {
        const bytes = Buffer.from(text, "latin1")
        expect(["more", "head", "bad"]).toContain(createHeadScanner(65_536).push(bytes).state)
        const judged = judgeRequest(policy, bytes, 128)
        if (judged.kind === "exchange") expect(judged.authority.text).toMatch(/^[a-z0-9._[\]:-]+$/)
      }),
      seeded,
    )
  })

  it("is found at the same place, or refused, however its bytes are cut", () => {
    const feed = (bytes: Buffer, size: number): HeadScan => {
      const scanner = createHeadScanner(65_536)
      let scan: HeadScan = { state: "more" }
      for (let at = 0; at < bytes.length && scan.state === "more"; at += size)
        scan = scanner.push(bytes.subarray(at, at + size))
      return scan
    }
    fc.assert(
      fc.property(headText, fc.integer({ min: 1, max: 40 }), (text, size) => {
        const bytes = Buffer.from(`${text}\r\n\r\nrest`, "latin1")
        const [whole, cut] = [feed(bytes, bytes.length), feed(bytes, size)]
        if (cut.state === "head") expect(whole.state === "head" && whole.head.equals(cut.head)).toBe(true)
        // Refused early: the whole head is refused too.
        if (cut.state === "bad" && whole.state === "head") expect(parseHead(whole.head, 128).ok).toBe(false)
      }),
      seeded,
    )
  })

  it("that is accepted is read by node:http with the same method, target and headers", async () => {
    const accepted = fc.sample(headText, { numRuns: Math.min(runs, 20_000), seed: seeded.seed }).flatMap((text) => {
      const bytes = Buffer.from(text, "latin1")
      const judged = judgeRequest(policy, bytes, 128)
      return judged.kind === "exchange" && !judged.framing.websocket ? [{ bytes, judged }] : []
    })
    expect(accepted.length).toBeGreaterThan(20)
    for (const { bytes, judged } of accepted) {
      const seen = await readByNode(Buffer.concat([bytes, Buffer.from("\r\n\r\n")]))
      expect(seen).toEqual({ method: judged.head.method, url: judged.head.target, headers: judged.head.headers.flat() })
    }
  })
})

/** What node:http makes of the bytes, without a network. */
function readByNode(bytes: Buffer): Promise<{ method: string; url: string; headers: readonly string[] } | "refused"> {
  return new Promise((resolve) => {
    const server = createServer({ insecureHTTPParser: false })
    const stream = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
    server.on("request", (request) => {
      resolve({ method: request.method ?? "", url: request.url ?? "", headers: request.rawHeaders })
      stream.destroy()
    })
    server.on("checkContinue", (request) => server.emit("request", request))
    server.on("clientError", () => resolve("refused"))
    server.emit("connection", stream)
    stream.push(bytes)
  })
}
