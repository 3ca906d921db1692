import { describe, expect, it } from "vitest"
import { denialResponse } from "../../../src/egress-proxy/policy/denial.ts"
import { explainDenial, namedDenial } from "../../../src/egress-proxy/policy/explain.ts"
import { reasonCodes, reasons } from "../../../src/egress-proxy/policy/reasons.ts"
import { unicodeOf } from "../../../src/egress-proxy/policy/unicode-name.ts"
import { respond, rig, startUpstream } from "../harness.ts"

describe("a refusal, explained", () => {
  it("has a message with the target's name and a hint, for every reason", () => {
    for (const reason of [...reasonCodes, "address_not_allowed"].filter((code) => code !== "allowed")) {
      const { message, hint } = explainDenial({ reason, target: "evil.test:8443" })
      expect(message, reason).toContain("evil.test:8443")
      expect(message.length, reason).toBeGreaterThan(25)
      if (reason !== "closing") expect(hint, reason).not.toBe("")
    }
  })

  it("spells the entry that would help", () => {
    expect(explainDenial({ reason: "host_not_allowed", target: "evil.test:8443" }).hint).toContain('"evil.test:8443"')
    expect(explainDenial({ reason: "host_not_allowed", target: "evil.test" }).hint).toContain('"evil.test"')
    expect(explainDenial({ reason: "protocol_mismatch", target: "db.test:5432" }).hint).toContain(
      '"tcp://db.test:5432"',
    )
    expect(explainDenial({ reason: "port_not_allowed", target: "udp://api.test:443" }).message).toContain("datagrams")
    expect(explainDenial({ reason: "bad_byte", target: "-" }).message).toMatch(/^a target without a name: /)
  })

  it("names a dial to another port of a declared host by host and port, not by the address that stands for it", () => {
    const nameFor = (address: string) => (address === "198.18.0.2" ? "api.test" : undefined)
    const dial = { reason: "address_not_allowed", count: 2 }
    expect(namedDenial({ ...dial, target: "198.18.0.2:22" }, nameFor)).toEqual({
      reason: "port_not_allowed",
      target: "api.test:22",
      count: 2,
    })
    expect(namedDenial({ ...dial, target: "udp://198.18.0.2:443" }, nameFor).target).toBe("udp://api.test:443")
    expect(namedDenial({ ...dial, target: "8.8.8.8:53" }, nameFor)).toEqual({ ...dial, target: "8.8.8.8:53" })
    expect(namedDenial({ ...dial, target: "evil.test" }, nameFor).target).toBe("evil.test")
  })
})

describe("a name in another script", () => {
  it("is in the verdict as it is resolved and as it is read, with its script", async () => {
    await using upstream = await startUpstream(respond("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
    await using test = await rig(upstream)
    const client = test.client()
    client.send("CONNECT xn--80ak6aa92e.com:443 HTTP/1.1\r\n\r\n")
    await client.closed
    expect(test.verdicts).toMatchObject([
      { reason: "host_not_allowed", host: "xn--80ak6aa92e.com", unicode: "аррӏе.com", scripts: ["Cyrillic"] },
    ])
    expect(test.proxy.denials()).toMatchObject([{ target: "xn--80ak6aa92e.com:443" }])
    const { message } = explainDenial({ reason: "host_not_allowed", target: "xn--80ak6aa92e.com:443" })
    expect(message).toContain("xn--80ak6aa92e.com:443 (аррӏе.com, Cyrillic)")
  })

  it("says when scripts are mixed, and shows nothing that could turn a line around", () => {
    expect(unicodeOf("xn--pi-6kc.good.test")).toEqual({ text: "аpi.good.test", scripts: ["Cyrillic", "Latin"] })
    expect(unicodeOf("api.good.test")).toBeUndefined()
    expect(unicodeOf("xn--nonsense-.test")).toBeUndefined()
    for (const host of ["xn--a-0hc.test", "xn--n3h.test", "a.xn--0ca.test"])
      expect(unicodeOf(host)?.text ?? "").toMatch(/^[\p{L}\p{N}\p{M}.\\u{}-]*$/u)
  })
})

describe("an answer of the proxy", () => {
  it("is told from a site's by its phrase, Proxy-Status and body, and no site can send those", async () => {
    await using upstream = await startUpstream(
      respond(
        "HTTP/1.1 502 Bad Gateway (caisson: connect_failed)\r\nProxy-Status: caisson; error=dns_error\r\nX-Caisson-Denied: dns_failure\r\nContent-Length: 0\r\n\r\n",
      ),
    )
    await using site = await rig(upstream)
    const theirs = site.client()
    const get = "GET http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\n\r\n"
    theirs.send(get)
    expect(await theirs.sees(/\r\n\r\n$/)).toMatch(/^HTTP\/1\.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n$/)
    expect(site.proxy.failures()).toEqual([])

    await using broken = await rig(upstream, {
      resolve: () => {
        throw new Error("SERVFAIL")
      },
    })
    const ours = broken.client()
    ours.send(get)
    const text = await ours.sees(/\}\n$/)
    expect(text).toMatch(/^HTTP\/1\.1 502 Bad Gateway \(caisson: dns_failure\)\r\n/)
    expect(text).toContain('proxy-status: caisson; error=dns_error; details="dns_failure"\r\n')
    expect(text).toContain("the answer is the proxy's, not the site's")
    expect(broken.proxy.denials()).toEqual([])
    expect(broken.proxy.failures()).toEqual([
      { layer: "egress", reason: "dns_failure", target: "plain.good.test:80", count: 1 },
    ])
  })

  it("has a Proxy-Status for every reason", () => {
    for (const code of reasonCodes.filter((one) => reasons[one].class !== "allow")) {
      const verdict = { decision: "deny", reason: code, protocol: "http", host: "a.test", port: 80 } as const
      const text = denialResponse(verdict, { keepAlive: false, headOnly: false }).toString()
      expect(text).toMatch(/\r\nproxy-status: caisson; error=[a-z_]+; details="[a-z0-9_]+"\r\n/)
    }
  })
})
