import { describe, expect, it } from "vitest"
import type { HttpCall, HttpSpec } from "../../../src/manifest/types.ts"
import { asDriver, errors, load, warnings } from "../from-text.ts"

const front = (call: string, extra = ""): string => `
name: H
id: h-one
description: d
version: 1.0.0
kind: http
${extra.includes("base_url") ? "" : "base_url: https://api.test/v1/"}
network: { egress: [api.test] }
auth: { state: { env: [KEY] } }
${extra}
implements: [{ tool: t.one, version: ^1.0.0, metadata: { http: { ${call} } } }]`
const spec = (extra: string): HttpSpec => {
  const { body } = asDriver(load("DRIVER.md", front("endpoint: /x", extra), "strict"))
  if (body.kind !== "http") throw new Error("not http")
  return body.http
}
const call = (text: string, extra = ""): HttpCall | undefined =>
  asDriver(load("DRIVER.md", front(text, extra), "strict")).implements[0]?.http
const literal = (text: string) => ({ text, parts: [{ type: "literal", text }] })

describe("an http driver", () => {
  it("has a base, and defaults for its requests", () => {
    expect(spec("")).toEqual({
      base: { origin: "https://api.test", host: "api.test", port: 443, secure: true, path: "/v1" },
      defaultHeaders: [],
      defaultMethod: "POST",
    })
    expect(
      spec(
        'default_method: GET\ndefault_headers: { X-Kind: a, Authorization: "Bearer ${secrets.KEY}" }\nstreaming: { transport: sse, event_field: data, terminator: "[DONE]" }\nrate_limit: { requests_per_minute: 60, burst: 5 }',
      ),
    ).toMatchObject({
      defaultMethod: "GET",
      defaultHeaders: [
        { name: "x-kind", value: literal("a") },
        {
          name: "authorization",
          value: { parts: [{ type: "literal" }, { type: "value", path: { root: "secrets", keys: ["KEY"] } }] },
        },
      ],
      streaming: { transport: "sse", eventField: "data", terminator: "[DONE]" },
      rateLimit: { requestsPerMinute: 60, burst: 5 },
    })
  })
  it("says of each tool what is sent and what is taken of the answer", () => {
    const made = call(
      'endpoint: "/items/${input.q}", method: PUT, headers: { x-kind: b }, query_template: { n: 1, q: "${input.q}" }, body_template: { a: ["${input.q}", null, true, 1.5], b: {} }, response_extract: "$.data[0].url", streaming: { terminator: end }, idempotency_key_header: Idempotency-Key',
      "default_headers: { X-Kind: a, X-Other: o }\nstreaming: { transport: ndjson }",
    )
    expect(made).toMatchObject({
      endpoint: { text: "/items/${input.q}" },
      method: "PUT",
      headers: [
        { name: "x-other", value: literal("o") },
        { name: "x-kind", value: literal("b") },
      ],
      query: [
        { name: "n", value: { type: "plain", value: 1 } },
        { name: "q", value: { type: "text", text: "${input.q}" } },
      ],
      body: {
        type: "object",
        entries: [
          {
            key: "a",
            value: {
              type: "list",
              items: [
                { type: "text" },
                { type: "plain", value: null },
                { type: "plain", value: true },
                { type: "plain", value: 1.5 },
              ],
            },
          },
          { key: "b", value: { type: "object", entries: [] } },
        ],
      },
      extract: [
        { take: "property", name: "data" },
        { take: "item", index: 0 },
        { take: "property", name: "url" },
      ],
      streaming: { transport: "ndjson", terminator: "end" },
      idempotencyKeyHeader: "idempotency-key",
    })
  })
  it("reads a name alone as an input in compat mode, and refuses it in strict mode", () => {
    const written = front('endpoint: /x, body_template: { size: "${ q | default(1) }", home: "a${HOME}" }')
    expect(warnings(load("DRIVER.md", written))).toEqual([
      "template-bare-name @ implements[0].metadata.http.body_template.size",
      "template-bare-name @ implements[0].metadata.http.body_template.home",
    ])
    expect(asDriver(load("DRIVER.md", written)).implements[0]?.http?.body).toMatchObject({
      entries: [
        {
          value: {
            text: "${ q | default(1) }",
            parts: [{ path: { root: "input", keys: ["q"] }, filters: [{ name: "default" }] }],
          },
        },
        { value: { parts: [{ text: "a" }, { path: { root: "input", keys: ["HOME"] } }] } },
      ],
    })
    expect(errors(load("DRIVER.md", written, "strict"))).toHaveLength(2)
  })
  it("takes a path without its slash", () => {
    expect(call("endpoint: items")?.endpoint.text).toBe("/items")
    expect(call("endpoint: items")).toMatchObject({ method: "POST", headers: [], query: [], extract: [] })
  })

  const at = "implements[0].metadata.http"
  it.each([
    ["an endpoint on another host", "endpoint: 'https://evil.test/'", `http-endpoint @ ${at}.endpoint`],
    ["an endpoint of another scheme", "endpoint: 'file:/etc/passwd'", `http-endpoint @ ${at}.endpoint`],
    ["an endpoint without a scheme", "endpoint: //evil.test/x", `http-endpoint @ ${at}.endpoint`],
    ["an endpoint with backslashes", "endpoint: '\\\\evil.test'", `http-endpoint @ ${at}.endpoint`],
    ["an endpoint that climbs", "endpoint: /a/../../b", `http-endpoint @ ${at}.endpoint`],
    ["an endpoint that climbs in code", "endpoint: /a/%2E%2e/b", `http-endpoint @ ${at}.endpoint`],
    ["an endpoint with an end of line", 'endpoint: "/a\\r\\nHost: evil"', `http-endpoint @ ${at}.endpoint`],
    ["an endpoint with a query", "endpoint: '/a?b=c'", `http-endpoint @ ${at}.endpoint`],
    ["an endpoint with a fragment", "endpoint: '/a#b'", `http-endpoint @ ${at}.endpoint`],
    ["an endpoint that is no template", 'endpoint: "/a/${input.}"', `template-syntax @ ${at}.endpoint`],
    ["an endpoint of an unknown source", 'endpoint: "/a/${env.HOME}"', `template-syntax @ ${at}.endpoint`],
    [
      "a header that frames",
      "endpoint: /x, headers: { Content-Length: '5' }",
      `http-header @ ${at}.headers.Content-Length`,
    ],
    ["a header that routes", "endpoint: /x, headers: { host: evil.test }", `http-header @ ${at}.headers.host`],
    [
      "a header for the proxy",
      "endpoint: /x, headers: { Proxy-Connection: close }",
      `http-header @ ${at}.headers.Proxy-Connection`,
    ],
    ["a header that is two", 'endpoint: /x, headers: { X-A: "a\\r\\nX-B: b" }', `http-header @ ${at}.headers.X-A`],
    ["a header with a NUL", 'endpoint: /x, headers: { X-A: "a\\0" }', `template-syntax @ ${at}.headers.X-A`],
    [
      "a header whose name is two",
      'endpoint: /x, headers: { "X-A: b\\r\\nX-B": c }',
      `http-header @ ${at}.headers["X-A: b��X-B"]`,
    ],
    ["a header in two spellings", "endpoint: /x, headers: { X-A: a, x-a: b }", `http-header @ ${at}.headers.x-a`],
    [
      "a credential in a header",
      "endpoint: /x, headers: { X-Api-Key: hunter2 }",
      `plaintext-credential @ ${at}.headers.X-Api-Key`,
    ],
    [
      "a literal Authorization",
      "endpoint: /x, headers: { Authorization: Basic aHVudGVyMg }",
      `plaintext-credential @ ${at}.headers.Authorization`,
    ],
    [
      "a key that goes into the framing",
      "endpoint: /x, idempotency_key_header: Transfer-Encoding",
      `http-header @ ${at}.idempotency_key_header`,
    ],
    [
      "a query value that is a tree",
      "endpoint: /x, query_template: { a: { b: c } }",
      `wrong-type @ ${at}.query_template.a`,
    ],
    [
      "a path that runs a script",
      "endpoint: /x, response_extract: '$[(@.length-1)]'",
      `extract-syntax @ ${at}.response_extract`,
    ],
    ["a path that recurses", "endpoint: /x, response_extract: '$..a'", `extract-syntax @ ${at}.response_extract`],
    [
      "a stream without a transport",
      "endpoint: /x, streaming: { terminator: x }",
      `missing-field @ ${at}.streaming.transport`,
    ],
    ["a method that is none", "endpoint: /x, method: TRACE", `not-one-of @ ${at}.method`],
    ["no endpoint", "method: GET", `missing-field @ ${at}.endpoint`],
  ])("is refused with %s", (_what, text, expected) => {
    const result = load("DRIVER.md", front(text))
    expect(errors(result)).toEqual([expected])
    expect(JSON.stringify(result)).not.toContain("hunter2")
  })
  it.each([
    ["a base that an input chooses", 'base_url: "https://${input.host}/"', ["bad-value", "http-base-url"]],
    ["a base with a password", "base_url: https://u:p@api.test/", ["bad-value", "http-base-url"]],
    ["a base with a query", "base_url: 'https://api.test/?a=b'", ["http-base-url"]],
    ["a base with a fragment", "base_url: 'https://api.test/#a'", ["http-base-url"]],
    ["a base with a port that is none", "base_url: 'https://api.test:99999/'", ["http-base-url"]],
    ["a base that is a file", "base_url: file:///etc", ["bad-value", "http-base-url"]],
  ])("is refused with %s", (_what, extra, rules) => {
    const said = load("DRIVER.md", front("endpoint: /x", extra)).diagnostics.filter((d) => d.severity === "error")
    expect([...new Set(said.map((d) => d.rule))].filter((rule) => !rules.includes(rule))).toEqual([])
    expect(said.length).toBeGreaterThan(0)
    expect(new Set(said.map((d) => d.path))).toEqual(new Set(["base_url"]))
  })
  it("is warned of what travels in the clear, has no value, or is not sent", () => {
    expect(warnings(load("DRIVER.md", front("endpoint: /x", "base_url: http://api.test")))).toEqual([
      "http-plaintext @ base_url",
    ])
    expect(warnings(load("DRIVER.md", front('endpoint: /x, headers: { X-A: "${secrets.OTHER}" }')))).toEqual([
      "secret-undeclared @ auth.state.env",
    ])
    expect(warnings(load("DRIVER.md", front("endpoint: /x, method: GET, body_template: { a: b }")))).toEqual([
      `http-get-body @ ${at}.body_template`,
    ])
  })
})
