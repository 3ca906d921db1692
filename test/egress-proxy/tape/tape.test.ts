/** Recordings: what is kept of an exchange, what is known again, and what hostile ones are refused for. */
import { describe, expect, test } from "vitest"
import { parseTape, tapeText } from "../../../src/egress-proxy/tape/file.ts"
import { tapeBodyBytes } from "../../../src/egress-proxy/tape/limits.ts"
import { createPlayer } from "../../../src/egress-proxy/tape/player.ts"
import { createRecorder } from "../../../src/egress-proxy/tape/recorder.ts"
import type { TapeExchange, TapeHeader } from "../../../src/egress-proxy/tape/words.ts"

const target = { host: "api.test", port: 443, secure: true }
interface Passed {
  readonly path?: string
  readonly headers?: readonly TapeHeader[]
  readonly sent?: string
  readonly answered?: readonly TapeHeader[]
  readonly came?: string | Buffer
}
const recorded = (passed: Passed, secrets: readonly string[] = []): readonly TapeExchange[] => {
  const recorder = createRecorder(secrets)
  const { path = "/", headers = [], sent = "", answered = [], came = "" } = passed
  const take = recorder.take({ target, method: sent === "" ? "GET" : "POST", path, headers })
  if (sent !== "") take.sent(Buffer.from(sent))
  take.answered(200, "OK", answered)
  take.came(Buffer.from(came))
  take.end()
  return recorder.exchanges()
}
const json: TapeHeader = ["Content-Type", "application/json"]
const value = "abcdefgh-1234-secret"

describe("what is written down", () => {
  test.for<[string, Passed]>([
    ["a bound secret in a body", { came: `it is ${value}` }],
    ["a bound secret in base64", { came: Buffer.from(`user:${value}`).toString("base64") }],
    ["a bound secret in the path", { path: `/at/${value}/x` }],
    [
      "an Authorization header's value where it is echoed",
      { headers: [["authorization", `Bearer ${value}`]], came: value },
    ],
    [
      "a Basic password where it is echoed",
      { headers: [["Authorization", `Basic ${Buffer.from(`me:${value}`).toString("base64")}`]], came: value },
    ],
    ["a cookie where it is echoed", { headers: [["cookie", `a=${value}; b=2`]], came: value }],
    ["a cookie that is set", { answered: [["set-cookie", `sid=${value}; Path=/`]] }],
    ["a query parameter", { path: `/x?access_token=${value}&page=1` }],
    ["a query parameter with an encoded name", { path: `/x?api%5Fkey=${value}` }],
    ["a redirect with a token", { answered: [["location", `https://me:${value}@other.test/?sig=${value}`]] }],
    ["a token in JSON", { answered: [json], came: JSON.stringify({ refresh_token: value, accessToken: value }) }],
    ["a header of its own", { answered: [["X-Auth-Token", value]] }],
  ])("%s is not", ([, passed]) => {
    const bound = passed.headers === undefined && passed.answered === undefined && passed.path?.includes("=") !== true
    const text = tapeText(recorded(passed, bound ? [value] : []))
    expect(text).not.toContain(value)
    expect(text).not.toContain(Buffer.from(value).toString("base64").slice(2, 22))
    expect(parseTape(text)).toMatchObject({ ok: true })
  })

  test("what only looks like one stays: packages by such names, etags, pages", () => {
    const came = JSON.stringify({
      dependencies: { token: "^1.0.0 || ^2.0.0-beta", secret: "npm:other@1.0.0-long" },
      page: 2,
    })
    const [exchange] = recorded({ path: "/p?page=2&monkey=tree", answered: [json, ["ETag", `"${value}"`]], came })
    expect(exchange).toMatchObject({ redacted: false, url: "https://api.test:443/p?page=2&monkey=tree" })
    expect(exchange?.body.toString()).toBe(came)
  })

  test("more than a recording holds is a fault, and nothing of it is kept", () => {
    const recorder = createRecorder([])
    const take = recorder.take({ target, method: "GET", path: "/", headers: [] })
    take.answered(200, "OK", [])
    const block = Buffer.alloc(tapeBodyBytes / 4)
    for (let times = 0; times < 4; times += 1) take.came(block)
    expect(recorder.faults()).toEqual([])
    take.came(Buffer.alloc(1))
    expect(recorder.faults()).toEqual([expect.stringContaining("bytes passed")])
    take.end()
    expect(recorder.exchanges()).toEqual([])
  })

  test("an answer that broke off is no exchange, and one that cannot be searched is a fault", () => {
    const recorder = createRecorder([])
    const broken = recorder.take({ target, method: "GET", path: "/", headers: [] })
    broken.answered(200, "OK", [])
    broken.came(Buffer.from("half"))
    const odd = recorder.take({ target, method: "GET", path: "/z", headers: [] })
    odd.answered(200, "OK", [["content-encoding", "zstd"]])
    odd.came(Buffer.from("zzz"))
    odd.end()
    expect(recorder.exchanges().map(({ url }) => url)).toEqual(["https://api.test:443/z"])
    expect(recorder.faults()).toEqual([expect.stringContaining("content encoding zstd")])
  })
})

describe("a recording as a file", () => {
  const good = tapeText(recorded({ path: "/a", answered: [json], came: "{}", sent: "x=1" }))
  test("says the same after reading, byte for byte", () => {
    const read = parseTape(good)
    expect(read.ok && tapeText(read.value)).toBe(good)
    const bytes = tapeText(recorded({ came: Buffer.from([0, 255, 1, 2]) }))
    const again = parseTape(bytes)
    expect(again.ok && tapeText(again.value)).toBe(bytes)
  })

  test.for<[string, (line: Record<string, Record<string, unknown>>) => void]>([
    ["a body that is not its digest's", (line) => Object.assign(line["response"]?.["body"] as object, { text: "[]" })],
    [
      "a header that frames the message",
      (line) => Object.assign(line["response"] ?? {}, { headers: [["Transfer-Encoding", "chunked"]] }),
    ],
    ["a header with a line break", (line) => Object.assign(line["response"] ?? {}, { headers: [["x", "a\r\nb: c"]] })],
    ["a name that is no token", (line) => Object.assign(line["response"] ?? {}, { headers: [["x y", "a"]] })],
    ["a length of its own", (line) => Object.assign(line["response"] ?? {}, { headers: [["Content-Length", "9"]] })],
    ["an interim status", (line) => Object.assign(line["response"] ?? {}, { status: 101 })],
    ["a phrase with a line break", (line) => Object.assign(line["response"] ?? {}, { phrase: "OK\r\nx: y" })],
    ["an address that is none", (line) => Object.assign(line["request"] ?? {}, { url: "file:///etc/passwd" })],
    ["a method with a space", (line) => Object.assign(line["request"] ?? {}, { method: "GET /" })],
  ])("with %s is refused by its line", ([, bend]) => {
    const [head, first] = good.split("\n")
    const line = JSON.parse(first ?? "") as Record<string, Record<string, unknown>>
    bend(line)
    expect(parseTape(`${head}\n${JSON.stringify(line)}\n`)).toMatchObject({
      ok: false,
      message: expect.stringContaining("line 2"),
    })
  })

  test("of another version, cut short or no recording at all is refused", () => {
    for (const text of [
      "",
      "[]",
      "{}",
      "null\n",
      good.replace(":1,", ":2,"),
      good.split("\n").slice(0, 1).join("\n"),
      `${good}{}\n`,
    ])
      expect(parseTape(text).ok).toBe(false)
  })

  test("bent at random is refused or read, and never throws", () => {
    let seed = Number(process.env["CAISSON_FUZZ_SEED"] ?? 7)
    const next = (below: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff
      return seed % below
    }
    const runs = Number(process.env["CAISSON_FUZZ_RUNS"] ?? 3000)
    const signs = ['"', "{", "}", "[", "]", ":", ",", "\\", "\n", "\0", "9", "é", "\ud800", "null"]
    for (let run = 0; run < runs; run += 1) {
      let text = good
      for (let times = next(4) + 1; times > 0; times -= 1) {
        const at = next(text.length)
        text = text.slice(0, at) + (next(2) === 0 ? (signs[next(signs.length)] ?? "") : "") + text.slice(at + next(3))
      }
      const read = parseTape(text)
      if (read.ok) createPlayer(read.value, [])
      else expect(read.message.length).toBeLessThan(300)
    }
  })
})
