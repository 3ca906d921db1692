/** What is written down about a request, and what never is. */
import { Writable } from "node:stream"
import pino from "pino"
import { describe, expect, it } from "vitest"
import { reasonCodes, reasons } from "../../../src/egress-proxy/policy/reasons.ts"
import { createVerdictLog } from "../../../src/egress-proxy/policy/verdict-log.ts"
import { respond, rig, startUpstream } from "../harness.ts"

describe("the verdict log", () => {
  it("writes one JSON line per request, without path, query, header or body", async () => {
    const lines: string[] = []
    const sink = new Writable({ write: (chunk, _encoding, done) => (lines.push(String(chunk)), done()) })
    await using upstream = await startUpstream(respond("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    await using test = await rig(upstream, { logger: pino(sink) })
    const client = test.client()
    client.send(
      "POST http://plain.good.test/PATHSECRET?QUERYSECRET HTTP/1.1\r\nHost: plain.good.test\r\nAuthorization: HEADERSECRET\r\nContent-Length: 10\r\n\r\nBODYSECRET",
    )
    await client.sees(/ok$/)
    client.send("GET http://evil.test/PATHSECRET HTTP/1.1\r\nHost: evil.test\r\nCookie: HEADERSECRET\r\n\r\n")
    await client.sees(/403 Forbidden/)
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      {
        level: 30,
        decision: "allow",
        reason: "allowed",
        protocol: "http",
        host: "plain.good.test",
        port: 80,
        rule: "plain.good.test:80",
        msg: "egress",
      },
      { level: 40, decision: "deny", reason: "host_not_allowed", protocol: "http", host: "evil.test", port: 80 },
    ])
    expect(lines.join("")).not.toMatch(/SECRET/)
  })

  it("reports a method that changes things, unless told otherwise", async () => {
    await using upstream = await startUpstream(respond("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    const post = "POST http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\nContent-Length: 0\r\n\r\n"
    await using reporting = await rig(upstream)
    const first = reporting.client()
    first.send(post)
    await first.sees(/ok$/)
    expect(reporting.verdicts).toMatchObject([{ decision: "allow", hint: reasons.read_only.text }])
    await using silent = await rig(upstream, { readOnlyHttp: "off" })
    const second = silent.client()
    second.send(post)
    await second.sees(/ok$/)
    expect(silent.verdicts[0]).not.toHaveProperty("hint")
  })

  it("reports it as a field of its own, also for the first request inside a tunnel", async () => {
    await using upstream = await startUpstream(respond("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    await using test = await rig(upstream)
    const client = test.client()
    client.send("CONNECT plain.good.test:80 HTTP/1.1\r\n\r\n")
    client.send("POST / HTTP/1.1\r\nHost: plain.good.test\r\nContent-Length: 0\r\n\r\n")
    await client.sees(/ok$/)
    expect(test.verdicts).toMatchObject([{ protocol: "connect" }, { protocol: "http", report: "read_only" }])
    expect(test.verdicts[0]).not.toHaveProperty("report")
  })

  it("collapses a flood of refusals into counts, and never an allow", () => {
    const lines: { reason?: string; count?: number; decision?: string }[] = []
    const logger = { info: (fields: object) => lines.push(fields), warn: (fields: object) => lines.push(fields) }
    const seen: string[] = []
    const log = createVerdictLog({
      logger,
      onVerdict: ({ reason }) => seen.push(reason),
      denialRows: 5,
      refusalLines: 3,
    })
    for (let count = 0; count < 50; count += 1) {
      log.record({ protocol: "dns", code: "host_not_allowed", host: `${count}.evil.test` })
      log.record({ protocol: "dns", code: "allowed", host: "api.good.test" })
    }
    log.record({ protocol: "http", code: "bad_byte" })
    log.flush()
    log.flush()
    expect(seen).toHaveLength(101)
    expect(lines.filter(({ decision }) => decision === "allow")).toHaveLength(50)
    const refused = lines.filter(({ decision }) => decision !== "allow")
    expect(refused.slice(0, 3).every(({ count }) => count === undefined)).toBe(true)
    expect(refused.slice(3)).toEqual([
      { decision: "deny", reason: "host_not_allowed", count: 47 },
      { decision: "malformed", reason: "bad_byte", count: 1 },
    ])
  })

  it("has failed for good when counted refusals cannot be written", () => {
    let broke = 0
    let full = false
    const warn = (): void => {
      if (full) throw new Error("ENOSPC")
    }
    const logger = { info: () => {}, warn }
    const log = createVerdictLog({ logger, denialRows: 5, refusalLines: 1, onBroken: () => (broke += 1) })
    for (let count = 0; count < 3; count += 1) log.record({ protocol: "dns", code: "host_not_allowed" })
    full = true
    log.flush()
    full = false
    expect(log.record({ protocol: "dns", code: "allowed" }).recorded).toBe(false)
    expect([log.broken, broke]).toEqual([true, 1])
  })

  it("adds denials up by reason and target, in bounded memory", () => {
    const log = createVerdictLog({ denialRows: 2, refusalLines: 10 })
    for (const host of ["a.test", "a.test", "b.test", "c.test", "d.test"])
      log.record({ protocol: "dns", code: "host_not_allowed", host })
    log.record({ protocol: "http", code: "dns_failure", host: "a.test" })
    expect(log.denials()).toEqual([
      { layer: "egress", reason: "host_not_allowed", target: "a.test", count: 2 },
      { layer: "egress", reason: "host_not_allowed", target: "b.test", count: 1 },
      { layer: "egress", reason: "host_not_allowed", target: "…", count: 2 },
    ])
  })
})

describe("the table of reasons", () => {
  it("gives every code a class, a fitting status and a text", () => {
    for (const code of reasonCodes) {
      const { class: cls, status, text } = reasons[code]
      expect(text, code).not.toBe("")
      if (cls === "malformed") expect([400, 405, 408, 417, 431], code).toContain(status)
      if (cls === "infrastructure") expect([500, 502, 503, 504], code).toContain(status)
    }
  })

  it("tells a client what to do about every refusal", () => {
    for (const code of reasonCodes)
      if (code !== "allowed" && code !== "closing") expect(reasons[code].hint, code).not.toBe("")
  })
})
